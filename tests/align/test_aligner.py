"""Streams of pairs, in order, by one model or by two."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from model_folders import write_model
from random_models import random_model

from relakit.align import aligner
from relakit.align.aligner import WINDOW, Aligner, TwoWayAligner
from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.analysis.links import links_of_heads
from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.word_map import words_of_tokens
from relakit.data.tokenizer import BEGIN, END, Tokenizer
from relakit.model import ModelAbout, Transformer
from relakit.nn.capture import capture


def choose(layer: int = 1, heads: tuple[int, ...] = (0, 2), **changes: str) -> AlignmentChoice:
    values = {"reading": "normal", **changes}
    return AlignmentChoice(layer=layer, heads=heads, chosen=ChosenOn(by="given"), **values)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return random_model("rela-g", vocabulary=tokenizer.size)


@pytest.mark.parametrize("reading", ["normal", "shifted"])
@pytest.mark.parametrize("end", ["ignored", "competes"])
def test_against_attention_of_single_pairs(
    model: Transformer,
    tokenizer: Tokenizer,
    gold_pairs: list[AnalysisPair],
    reading: str,
    end: str,
) -> None:
    aligner = Aligner(model, tokenizer, choose(layer=0, heads=(3,), reading=reading, end=end))
    for pair, found in zip(gold_pairs, aligner.align(gold_pairs), strict=True):
        source, target = tokenizer.encode(pair.source), tokenizer.encode(pair.target)
        with torch.no_grad(), capture(model, "decoder.layers.*.cross_attention") as records:
            model(torch.tensor([[*source.ids, END]]), torch.tensor([[BEGIN, *target.ids]]))
        weights = np.stack([one.weights[0].numpy() for (one,) in records.values()])
        expected = links_of_heads(
            weights,
            words_of_tokens(source.spans, pair.source_words),
            words_of_tokens(target.spans, pair.target_words),
            source_count=len(pair.source_words),
            target_count=len(pair.target_words),
            end=end,
        )[["normal", "shifted"].index(reading), 0, 3]
        assert found.links == {(int(s), t) for t, s in enumerate(expected) if s >= 0}


def test_no_pair_depends_on_the_others(
    model: Transformer, tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]
) -> None:
    aligner = Aligner(model, tokenizer, choose())
    together = list(aligner.align(gold_pairs))
    assert list(aligner.align(gold_pairs, batch_tokens=1)) == together
    assert list(aligner.align(reversed(gold_pairs))) == together[::-1]
    assert any(one.scores for one in together)


def test_as_many_as_there_are_pairs(model: Transformer, tokenizer: Tokenizer) -> None:
    texts = [("", ""), ("a b", ""), (" ", "c"), ("a b", "c d"), ("word " * 50, "c")]
    aligner = Aligner(model, tokenizer, choose(), max_tokens=40)
    found = list(aligner.align(AnalysisPair.from_texts(*pair) for pair in texts))
    assert [(one.source_count, one.target_count) for one in found] == [
        (0, 0), (2, 0), (0, 1), (2, 2), (50, 1),
    ]  # fmt: skip
    assert [one.null_rate is None for one in found] == [True, True, True, False, True]
    assert not any(found[i].scores for i in (0, 1, 2, 4))


def test_pairs_are_read_as_they_are_needed(model: Transformer, tokenizer: Tokenizer) -> None:
    read = 0

    def stream() -> Iterator[AnalysisPair]:
        nonlocal read
        while True:
            read += 1
            yield AnalysisPair.from_texts("", "")

    found = Aligner(model, tokenizer, choose()).align(stream())
    for _ in range(WINDOW + 1):
        next(found)
    assert read == 2 * WINDOW


def test_tokens_instead_of_words(model: Transformer, tokenizer: Tokenizer) -> None:
    pair = AnalysisPair.from_texts("unbelievable", "unglaublich")
    (found,) = Aligner(model, tokenizer, choose(), level="token").align([pair])
    assert found.source_count == len(tokenizer.encode(pair.source).ids) > 1
    assert found.target_count == len(tokenizer.encode(pair.target).ids) > 1


def test_tokens_of_pairs_that_are_not_computed(model: Transformer, tokenizer: Tokenizer) -> None:
    pairs = [AnalysisPair.from_texts(*both) for both in (("unbelievable", ""), ("word " * 50, "a"))]
    aligner = Aligner(model, tokenizer, choose(), level="token", max_tokens=40)
    for pair, found in zip(pairs, aligner.align(pairs), strict=True):
        counts = [len(tokenizer.encode(text).ids) for text in (pair.source, pair.target)]
        assert [found.source_count, found.target_count] == counts
        assert found.null_rate is None


def test_the_longest_pair_is_what_one_layer_allows(tokenizer: Tokenizer) -> None:
    """All layers together would allow 1,022 tokens."""
    deep = random_model(vocabulary=tokenizer.size, dim=16, heads=16, feed_forward=8)
    about = ModelAbout(longest_sentence=5000)
    assert Aligner(deep, tokenizer, choose(), about=about).max_tokens == 2047
    assert Aligner(deep, tokenizer, choose()).max_tokens == 1024


def test_mutual_links_know_what_the_end_does(
    model: Transformer, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []

    def read(weights: object, words: object, **options: object) -> None:
        asked.append(options)

    monkeypatch.setattr(aligner, "read_mutual_links", read)
    pair = AnalysisPair.from_texts("a b", "c d")
    for end in ("ignored", "competes"):
        list(Aligner(model, tokenizer, choose(end=end)).mutual_links([pair]))
    assert asked == [{"shift": 0, "end": "ignored"}, {"shift": 0, "end": "competes"}]


def test_two_directions(
    model: Transformer, tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]
) -> None:
    forward = Aligner(model, tokenizer, choose())
    backward = Aligner(random_model(vocabulary=tokenizer.size, seed=1), tokenizer, choose(layer=0))
    pairs = [*gold_pairs, AnalysisPair.from_texts("", "x")]
    there, back = (
        list(forward.align(pairs)),
        list(backward.align([pair.reversed() for pair in pairs])),
    )
    both = list(TwoWayAligner(forward, backward, "intersection").align(pairs))
    either = list(TwoWayAligner(forward, backward, "union").align(pairs))
    for one, two, shared, all_links in zip(there, back, both, either, strict=True):
        turned = {(t, s) for s, t in two.links}
        assert shared.links == one.links & turned
        assert all_links.links == one.links | turned
    assert any(one.scores for one in both)


def test_a_pair_must_fit_both(model: Transformer, tokenizer: Tokenizer) -> None:
    forward = Aligner(model, tokenizer, choose(), max_tokens=40)
    backward = Aligner(model, tokenizer, choose(), max_tokens=2)
    pair = AnalysisPair.from_texts("a b c d", "e f g h")
    (found,) = TwoWayAligner(forward, backward, "union").align([pair])
    assert next(forward.align([pair])).scores
    assert not found.scores


def test_models_of_one_direction(model: Transformer, tokenizer: Tokenizer) -> None:
    aligners = [
        Aligner(model, tokenizer, choose(), about=ModelAbout(source_language=s, target_language=t))
        for s, t in (("en", "de"), ("de", "en"), ("en", "de"))
    ]
    TwoWayAligner(aligners[0], aligners[1], "union")
    with pytest.raises(ValueError, match=r"opposite directions.*'en'.*'de'.*--reverse"):
        TwoWayAligner(aligners[0], aligners[2], "union")


def test_loading(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    with pytest.raises(ValueError, match=r"does not say which heads align.*--select"):
        Aligner.load(folder)
    write_choice(folder, choose(layer=0, heads=(0,)))
    assert Aligner.load(folder).choice.heads == (0,)
    assert Aligner.load(str(folder)).choice.heads == (0,)
    assert Aligner.load(folder, choice=choose(layer=0, heads=(1,))).choice.heads == (1,)
    with pytest.raises(ValueError, match="there is no layer 10"):
        Aligner.load(folder, choice=choose(layer=9))
