"""Batches of a search are cut to fit into memory, and what cannot fit is refused."""

import pytest
from random_models import random_model, random_sources

from relakit import limits
from relakit.decode import search_memory
from relakit.decode.search_memory import sentence_bytes, within_memory
from relakit.decode.settings import SearchSettings
from relakit.model import ModelConfig

CONFIG = ModelConfig(vocabulary=1000, dim=8, heads=1, decoder_layers=3)
ROW = 2 * 8 * 3 * 4


def set_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in (limits, search_memory):
        monkeypatch.setattr(module, "machine_memory", lambda: size)


def test_bytes_of_a_sentence() -> None:
    assert sentence_bytes(CONFIG, 1, 9) == 10 * (ROW + 1) + 4000
    assert sentence_bytes(CONFIG, 5, 9) == 5 * (10 * (ROW + 5) + 4000)


def test_batches_are_cut_by_their_longest_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    set_memory(monkeypatch, 4 * 3 * sentence_bytes(CONFIG, 2, 50))
    batches = [[4, 1, 0, 3], [2], [5, 6]]
    found = within_memory(batches, [CONFIG], beam=2, limits=[40, 40, 90, 40, 50, 5, 5])
    assert list(found) == [[4, 1, 0], [3], [2], [5, 6]]


def test_a_sentence_that_cannot_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    set_memory(monkeypatch, 1 << 20)
    expected = (
        r"a search with a beam of 500 for a translation of up to 70 tokens would need about "
        r"\d+\.\d MiB of memory, this machine has 1\.0 MiB; choose a smaller beam, or a smaller max"
    )
    with pytest.raises(ValueError, match=expected):
        list(within_memory([[0]], [CONFIG], beam=500, limits=[70]))


def test_many_samples_of_a_sentence() -> None:
    with pytest.raises(
        ValueError, match=r"^nbest must be at most 1,000, got 100,000: with a model"
    ):
        SearchSettings(sample=True, nbest=100_000)


def test_models_that_translate_together(monkeypatch: pytest.MonkeyPatch) -> None:
    set_memory(monkeypatch, 4 * 2 * sentence_bytes(CONFIG, 2, 50))
    found = within_memory([[0, 1]], [CONFIG, CONFIG], beam=2, limits=[50, 50])
    assert list(found) == [[0], [1]]


def test_the_translator_cuts_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from relakit.data.tokenizer import learn_tokenizer
    from relakit.decode import translator as module

    tokenizer = learn_tokenizer(["a b c"] * 9, vocab_size=290)
    translator = module.Translator(random_model(vocabulary=tokenizer.size), tokenizer)
    sources = random_sources([5, 9, 3, 7], vocabulary=tokenizer.size)
    expected = translator.translate_ids(sources, beam=2)
    sizes: list[int] = []
    search = module.beam_search

    def watched(engine: object, batch: list[list[int]], *others: object, **named: object) -> object:
        sizes.append(len(batch))
        return search(engine, batch, *others, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "beam_search", watched)
    assert [e[0].tokens for e in translator.translate_ids(sources, beam=2)] == [
        e[0].tokens for e in expected
    ]
    assert sizes == [4]
    config = translator.model.config
    set_memory(monkeypatch, 4 * sentence_bytes(config, 2, 2 * 9 + 20))
    found = translator.translate_ids(sources, beam=2)
    assert [e[0].tokens for e in found] == [e[0].tokens for e in expected]
    assert sizes == [4, 1, 1, 1, 1]
    with pytest.raises(ValueError, match="a translation of up to 1,000,000 tokens would need"):
        translator.translate_ids(sources, max_length=1_000_000)
