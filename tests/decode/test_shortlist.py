"""Shortlists on disk, and searches that choose among their tokens, in every engine."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import random_model, random_sources

from relakit.data.tokenizer import BEGIN, END, PAD, Tokenizer, learn_tokenizer
from relakit.data.tokenizer_pair import TokenizerPair, tokenizers_fingerprint
from relakit.decode.beam import beam_search
from relakit.decode.choose_engine import why_not_native
from relakit.decode.engine import Engine
from relakit.decode.ensemble import EnsembleEngine
from relakit.decode.native_engine import NativeEngine
from relakit.decode.settings import SearchSettings
from relakit.decode.shortlist import (
    Shortlist,
    ShortlistAbout,
    TokenIds,
    read_shortlist,
    write_shortlist,
)
from relakit.decode.torch_engine import TorchEngine
from relakit.decode.translator import Translator
from relakit.model import Transformer
from relakit.model.description import SHORTLIST_FILE

VOCABULARY = 150
ENGINES = ["native", "int8", "torch", "ensemble"]


def about(**changes: object) -> ShortlistAbout:
    values = {"tokenizers": "x", "is_joint": False, "best": 2, **changes}
    return ShortlistAbout.model_validate(values)


def small(**changes: object) -> Shortlist:
    """Of six source tokens: 4 has 7 and 9, 5 has 9."""
    fields = {
        "starts": np.array([0, 0, 0, 0, 0, 2, 3]),
        "tokens": np.array([7, 9, 9]),
        "frequent": np.array([5]),
        "about": about(),
        **changes,
    }
    return Shortlist(**fields)  # type: ignore[arg-type]


def engine_of(name: str, model: Transformer) -> Engine:
    if name in ("native", "int8") and (reasons := why_not_native(model)):
        pytest.skip("; ".join(reasons))
    if name == "ensemble":
        return EnsembleEngine([TorchEngine(model), TorchEngine(model)])
    return TorchEngine(model) if name == "torch" else NativeEngine(model, in_bytes=name == "int8")


def lists_of(count: int, size: int = 70) -> list[TokenIds]:
    """A list of tokens for each sentence; all differ."""
    generator = np.random.default_rng(5)
    lists = []
    for _ in range(count):
        tokens = generator.choice(np.arange(END + 1, VOCABULARY), size, replace=False)
        lists.append(np.concatenate([[END], np.sort(tokens)]))
    return lists


def search(
    engine: Engine, sources: Sequence[Sequence[int]], lists: list[TokenIds] | None, **options: int
) -> list[list[tuple[list[int], float]]]:
    settings = SearchSettings(max_length=7, **options)  # type: ignore[arg-type]
    ended = [[*source, END] for source in sources]
    found = beam_search(engine, ended, [7] * len(sources), settings, allowed=lists)
    return [[(one.tokens, one.log_probability) for one in best] for best in found]


def test_tokens_of_a_sentence() -> None:
    assert small().tokens_for([4, 4, 5]).tolist() == [END, 5, 7, 9]
    assert small().tokens_for([5]).tolist() == [END, 5, 9]
    assert small().tokens_for([1]).tolist() == [END, 5]
    # What can be copied may be.
    joint = small(about=about(is_joint=True))
    assert joint.tokens_for([1, 5]).tolist() == [END, 1, 5, 9]


@pytest.mark.parametrize("name", ENGINES)
def test_only_listed_tokens_and_their_probabilities(name: str) -> None:
    model = random_model(vocabulary=VOCABULARY)
    sources, lists = random_sources([4, 6, 3], VOCABULARY), lists_of(3)
    found = search(engine_of(name, model), sources, lists)
    free = search(engine_of(name, model), sources, None)
    assert found != free
    for source, allowed, hypotheses in zip(sources, lists, found, strict=True):
        for tokens, log_probability in hypotheses:
            assert set(tokens) <= set(allowed.tolist())
            with torch.no_grad():
                states = model(torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *tokens]]))
                logits = (states @ model.embedding.weight.t())[0, :, torch.from_numpy(allowed)]
            places = [allowed.tolist().index(token) for token in (*tokens, END)]
            each = logits.log_softmax(-1).gather(1, torch.tensor(places)[:, None])
            tolerance = 0.5 if name == "int8" else 1e-4
            assert log_probability == pytest.approx(float(each.sum()), abs=tolerance)


@pytest.mark.parametrize("name", ENGINES)
def test_a_list_of_all_tokens_changes_nothing(name: str) -> None:
    model = random_model(vocabulary=VOCABULARY)
    sources = random_sources([4, 6, 3], VOCABULARY)
    engine = engine_of(name, model)
    everything = np.array([END, *(t for t in range(VOCABULARY) if t not in (PAD, BEGIN, END))])
    found = search(engine, sources, [everything] * 3)
    free = search(engine, sources, None)
    # The two tokens that are never chosen have a little of the probability without a list.
    for listed, plain in zip(itertools.chain(*found), itertools.chain(*free), strict=True):
        assert listed[0] == plain[0]
        assert listed[1] == pytest.approx(plain[1], abs=0.5)


@pytest.mark.parametrize("name", ["native", "int8"])
@pytest.mark.parametrize("beam", [1, 4])
def test_translations_depend_on_their_sentence_alone(name: str, beam: int) -> None:
    engine = engine_of(name, random_model(vocabulary=VOCABULARY))
    sources = random_sources([4, 9, 3, 12, 7], VOCABULARY)
    lists = lists_of(3) + lists_of(2, 20)
    alone = [search(engine, [s], [t], beam=beam)[0] for s, t in zip(sources, lists, strict=True)]
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            assert search(engine, sources, lists, beam=beam) == alone
            assert search(engine, sources[::-1], lists[::-1], beam=beam) == alone[::-1]
    finally:
        torch.set_num_threads(before)


def test_the_engines_agree() -> None:
    model = random_model(vocabulary=VOCABULARY)
    sources, lists = random_sources([4, 6, 3], VOCABULARY), lists_of(3)
    expected = search(TorchEngine(model), sources, lists)
    for name in ("native", "ensemble"):
        found = search(engine_of(name, model), sources, lists)
        for ours, theirs in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
            assert ours[0] == theirs[0]
            assert ours[1] == pytest.approx(theirs[1], abs=1e-4)


def test_least_lengths_and_samples() -> None:
    engine = engine_of("torch", random_model(vocabulary=VOCABULARY))
    sources, lists = random_sources([4, 6], VOCABULARY), lists_of(2, 5)
    for hypotheses in search(engine, sources, lists, min_length=7):
        assert {len(tokens) for tokens, _ in hypotheses} == {7}
    settings = SearchSettings(max_length=7, sample=True, nbest=20)
    ended = [[*source, END] for source in sources]
    for drawn, allowed in zip(
        beam_search(engine, ended, [7, 7], settings, allowed=lists), lists, strict=True
    ):
        assert {token for one in drawn for token in one.tokens} <= set(allowed.tolist())


@pytest.mark.parametrize("bad", [[[]], [[END, VOCABULARY]], [[END, -1]]])
def test_lists_that_cannot_be(bad: list[list[int]]) -> None:
    engine = engine_of("native", random_model(vocabulary=VOCABULARY))
    with pytest.raises(ValueError, match=r"a list must have|is not among the model's 150"):
        search(engine, [[5, 6]], [np.array(one, dtype=np.int64) for one in bad])


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn_tokenizer(["A small dog runs.", "Ein kleiner Hund läuft!"] * 5, vocab_size=300)


def shortlist_for(tokenizer: Tokenizer) -> Shortlist:
    size = tokenizer.size
    return Shortlist(
        starts=np.arange(size + 1),
        tokens=np.arange(size).clip(END + 1),
        frequent=np.array([END + 2]),
        about=about(tokenizers=tokenizers_fingerprint(tokenizer), is_joint=True),
    )


def test_written_and_read(tokenizer: Tokenizer, tmp_path: Path) -> None:
    made = shortlist_for(tokenizer)
    assert write_shortlist(tmp_path, made) == tmp_path / SHORTLIST_FILE
    found = read_shortlist(tmp_path)
    found.check_tokenizers(tokenizer, "the model")
    assert found.about == made.about
    for source in ([5, 6], [7]):
        assert found.tokens_for(source).tolist() == made.tokens_for(source).tolist()


def test_another_tokenizer(tokenizer: Tokenizer) -> None:
    other = learn_tokenizer(["Something else is here, and more of it."] * 5, vocab_size=290)
    for wrong in (other, TokenizerPair(tokenizer, other)):
        with pytest.raises(ValueError, match=r"made for another tokenizer, .*; make it again"):
            shortlist_for(tokenizer).check_tokenizers(wrong, "mine")
        with pytest.raises(ValueError, match="made for another tokenizer"):
            Translator(
                random_model(vocabulary=other.size),
                other,
                shortlist=shortlist_for(tokenizer),
            )
    short = replace(
        small(), about=about(tokenizers=tokenizers_fingerprint(tokenizer), is_joint=True)
    )
    with pytest.raises(ValueError, match="has 6 source tokens"):
        short.check_tokenizers(tokenizer, "mine")


def test_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"there is no .*{SHORTLIST_FILE}; make it from"):
        read_shortlist(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"starts": np.array([0, 1])},
        {"starts": np.array([3])},
        {"starts": np.array([0, 2, 1, 3])},
        {"frequent": np.array([END])},
        {"tokens": np.array([7, -1, 9])},
    ],
)
def test_numbers_that_do_not_fit(changes: dict[str, TokenIds]) -> None:
    with pytest.raises(ValueError, match=r"the shortlist: .*; make it again"):
        small(**changes)


@pytest.mark.parametrize("content", [b"", b"no such file", b"\x10\0\0\0\0\0\0\0" + b"{" * 16])
def test_a_damaged_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / SHORTLIST_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=f"{SHORTLIST_FILE} is damaged, or no shortlist; make it"):
        read_shortlist(tmp_path)


def test_a_file_of_the_future(tokenizer: Tokenizer, tmp_path: Path) -> None:
    made = shortlist_for(tokenizer)
    future = made.about.model_copy(update={"format": 2})
    write_shortlist(tmp_path, replace(made, about=future))
    with pytest.raises(ValueError, match=f"{SHORTLIST_FILE}: format .*; make it again"):
        read_shortlist(tmp_path)
