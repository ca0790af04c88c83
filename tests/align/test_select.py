"""Which heads are chosen: planted attention must be found."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from random_models import random_model

from relakit.align import select
from relakit.align.aligner import Aligner
from relakit.align.select import (
    Alignable,
    same_words,
    select_by_agreement,
    select_by_gold,
    select_by_same_words,
)
from relakit.analysis.attention_pass import CrossAttention
from relakit.analysis.pairs import AnalysisPair
from relakit.analysis.word_map import words_of_tokens
from relakit.data.tokenizer import Tokenizer

Plant = Callable[[dict[tuple[int, int], str]], None]


@pytest.fixture
def planted(
    tokenizer: Tokenizer, gold_pairs: list[AnalysisPair], monkeypatch: pytest.MonkeyPatch
) -> Plant:
    """Attention of 2 layers and 3 heads: some heads are gold, all others random."""

    def plant(gold_heads: dict[tuple[int, int], str]) -> None:
        def attention(model: object, ids: object) -> Iterator[CrossAttention]:
            random = np.random.default_rng(0)
            for index, (source, target) in enumerate(ids):
                weights = random.random((2, 3, len(target) + 1, len(source) + 1))
                weights *= random.random(weights.shape) < 0.3
                for place, reading in gold_heads.items():
                    weights[place] = gold_weights(tokenizer, gold_pairs[index], source, reading)
                yield CrossAttention(index, weights.astype(np.float32))

        monkeypatch.setattr(select, "capture_cross_attention", attention)

    return plant


def gold_weights(
    tokenizer: Tokenizer, pair: AnalysisPair, source: list[int], reading: str
) -> np.ndarray:
    """1 between the tokens of linked words; of a pair of either direction."""
    turned = tokenizer.encode(pair.source).ids != source
    links = {(t, s) for s, t in pair.gold.sure} if turned else pair.gold.sure
    sides = ((pair.source, pair.source_words), (pair.target, pair.target_words))
    words = [
        words_of_tokens(tokenizer.encode(text).spans, spans)
        for text, spans in (sides[::-1] if turned else sides)
    ]
    weights = np.zeros((len(words[1]) + 1, len(words[0]) + 1))
    for row, target in enumerate(words[1]):
        for column, word in enumerate(words[0]):
            weights[row + (reading == "shifted"), column] = (word, target) in links
    return weights


@pytest.fixture
def alignable(tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]) -> Alignable:
    model = random_model(vocabulary=tokenizer.size, dim=24, heads=3)
    return Alignable(model, tokenizer, gold_pairs, ("some.en", "some.de"))


@pytest.mark.parametrize("by", [select_by_gold, select_by_same_words])
@pytest.mark.parametrize("reading", ["normal", "shifted"])
def test_the_planted_head_is_found(
    planted: Plant, alignable: Alignable, by: Callable[..., object], reading: str
) -> None:
    planted({(1, 2): reading})
    choice = by(alignable)
    assert (choice.layer, choice.heads, choice.reading) == (1, (2,), reading)
    assert choice.chosen.files == ("some.en", "some.de")
    assert choice.chosen.pairs == 30
    if by is select_by_gold:
        assert choice.chosen.by == "aer"
        assert choice.chosen.value < 0.2  # a word with two gold links gets one


def test_two_heads_that_know_different_words_are_read_together(
    planted: Plant, alignable: Alignable, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted({(0, 0): "normal", (0, 1): "normal"})
    whole = select.capture_cross_attention

    def halves(model: object, ids: object) -> Iterator[CrossAttention]:
        for attention in whole(model, ids):
            attention.weights[0, 0, ::2] = 0
            attention.weights[0, 1, 1::2] = 0
            yield attention

    monkeypatch.setattr(select, "capture_cross_attention", halves)
    choice = select_by_gold(alignable)
    assert (choice.layer, choice.heads) == (0, (0, 1))


def test_agreement(planted: Plant, alignable: Alignable, tokenizer: Tokenizer) -> None:
    planted({(1, 0): "normal"})
    other = random_model(vocabulary=tokenizer.size, dim=24, heads=3, seed=1)
    there, back = select_by_agreement(alignable, other, tokenizer)
    for choice in (there, back):
        assert (choice.layer, choice.heads, choice.reading) == (1, (0,), "normal")
        assert choice.chosen.by == "agreement"
        assert choice.chosen.value > 0.5


def test_agreement_is_counted_link_by_link(alignable: Alignable, tokenizer: Tokenizer) -> None:
    other = random_model(vocabulary=tokenizer.size, dim=24, heads=3, seed=1)
    there, back = select_by_agreement(alignable, other, tokenizer)
    forward = Aligner(alignable.model, tokenizer, there)
    backward = Aligner(other, tokenizer, back)
    shared = words = 0
    for pair in alignable.pairs:
        (one,), (two,) = forward.align([pair]), backward.align([pair.reversed()])
        shared += len(one.links & two.reversed().links)
        words += len(pair.source_words) + len(pair.target_words)
    assert there.chosen.value == back.chosen.value == round(2 * shared / words, 4) > 0


def test_a_number_is_kept_for_each_target_word(alignable: Alignable) -> None:
    """Not a matrix of all words, of which thousands do not fit into memory."""
    candidates = select._singles(alignable.model.config)
    for index, best in alignable.links(candidates):
        assert best.shape == (len(candidates), len(alignable.pairs[index].target_words))
        assert best.itemsize == 4


def test_same_words() -> None:
    pair = AnalysisPair.from_texts("In 1999, Rome and Rome.", "1999 in Rome, Paris.")
    # "Rome" appears twice on one side; "in" is the same but for case.
    assert same_words(pair) == [(0, 1), (1, 0), (2, 3), (6, 5)]


def test_without_same_words_the_share_of_linked_words_decides(
    planted: Plant, alignable: Alignable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(select, "same_words", lambda pair: [])
    planted({(1, 1): "normal"})
    choice = select_by_same_words(alignable)
    assert (choice.layer, choice.heads) == (1, (1,))


def test_nothing_to_choose_on(tokenizer: Tokenizer) -> None:
    model = random_model(vocabulary=tokenizer.size)
    with pytest.raises(ValueError, match="there is no pair to choose heads on"):
        Alignable(model, tokenizer, [])
    without = Alignable(model, tokenizer, [AnalysisPair.from_texts("a", "b")])
    with pytest.raises(ValueError, match="there is no sure link in 1 pairs"):
        select_by_gold(without)
