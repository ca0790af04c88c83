"""What layers learn from: labels of tokens, and links of two models."""

import numpy as np
import torch
from random_models import random_model

from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice, ChosenOn
from relakit.align.lessons import Lesson, links_of_two_models, make_lessons, token_labels
from relakit.align.states import state_batches
from relakit.analysis.aer import AlignmentScore
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer import Tokenizer


def lesson(
    sources: list[int],
    targets: list[int],
    sure: list[tuple[int, int]],
    disputed: list[tuple[int, int]],
    *,
    is_complete: bool = True,
) -> Lesson:
    """Tokens by their words; ids do not matter."""

    def array(values: object) -> np.ndarray:
        return np.array(values, dtype=np.int32)

    return Lesson(
        array([7] * len(sources)),
        array([8] * len(targets)),
        array(sources),
        array(targets),
        (max(sources) + 1, max(targets) + 1),
        array(sure).reshape(-1, 2),
        array(disputed).reshape(-1, 2),
        is_complete,
    )


def test_labels_of_tokens() -> None:
    lessons = [
        # Source words 0 0 1 and a token of none; target words 0 1 1.
        lesson([0, 0, 1, -1], [0, 1, 1], sure=[(0, 1)], disputed=[(1, 0)]),
        lesson([0], [0], sure=[(0, 0)], disputed=[]),
    ]
    (states,) = state_batches(random_model(), [one.tokens for one in lessons])
    linked, known = token_labels(states, lessons)
    assert linked.shape == known.shape == (2, states.target.size(1), states.source.size(1))
    rows = {index: row for row, index in enumerate(states.indices)}
    first, second = rows[0], rows[1]
    assert linked[first, :3, :4].tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    assert known[first, :3, :4].tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert linked[second].sum() == known[second].sum() == 1, "not the ends, not the padding"
    assert known[first].sum() == 8


def test_words_of_which_nothing_is_known() -> None:
    """Of a lesson that has some of the links: words that have one have no other."""
    some = lesson([0, 1, 2], [0, 1, 2], sure=[(0, 1)], disputed=[(0, 2)], is_complete=False)
    (states,) = state_batches(random_model(), [some.tokens])
    linked, known = token_labels(states, [some])
    assert linked[0, :3, :3].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert known[0, :3, :3].tolist() == [[1, 0, 0], [1, 1, 1], [0, 0, 0]]
    # Right, disputed, wrong, and two of which nobody knows.
    found = some.score(frozenset({(0, 1), (0, 2), (1, 1), (1, 0), (2, 2)}))
    assert found == AlignmentScore.of({(0, 1), (0, 2), (1, 1)}, some.links)


def test_states_are_of_the_pairs_given() -> None:
    """A shuffled pass gives the same states, in another order."""
    model = random_model()
    pairs = [([7, 8, 9][: 1 + n % 3], [10 + n]) for n in range(9)]
    plain = {
        i: s
        for b in state_batches(model, pairs, batch_tokens=32)
        for i, s in zip(b.indices, b.target, strict=True)
    }
    order = [b.indices[0] for b in state_batches(model, pairs, batch_tokens=32)]
    random = np.random.default_rng(0)
    shuffled = list(state_batches(model, pairs, batch_tokens=32, shuffle=random))
    assert [b.indices[0] for b in shuffled] != order
    for batch in shuffled:
        for index, states in zip(batch.indices, batch.target, strict=True):
            assert torch.equal(states, plain[index])


def test_lessons_of_pairs(tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]) -> None:
    links = [
        GoldAlignment(pair.gold.sure, {(0, 0), *pair.gold.sure}) for pair in gold_pairs if pair.gold
    ]
    for pair, known, made in zip(
        gold_pairs,
        links,
        make_lessons(tokenizer, gold_pairs, links, are_complete=True),
        strict=True,
    ):
        assert made.tokens == (tokenizer.encode(pair.source).ids, tokenizer.encode(pair.target).ids)
        assert made.links == known
        assert made.word_counts == (len(pair.source_words), len(pair.target_words))


def test_what_both_models_read_is_sure(
    tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]
) -> None:
    choice = AlignmentChoice(layer=1, heads=(0,), reading="normal", chosen=ChosenOn(by="given"))
    forward, backward = (
        Aligner(random_model(vocabulary=tokenizer.size, seed=seed), tokenizer, choice)
        for seed in (0, 1)
    )
    there = [one.links for one in forward.align(gold_pairs)]
    back = [
        one.reversed().links for one in backward.align([pair.reversed() for pair in gold_pairs])
    ]
    found = list(links_of_two_models(forward, backward, gold_pairs))
    assert [one.sure for one in found] == [a & b for a, b in zip(there, back, strict=True)]
    assert [one.possible for one in found] == [a | b for a, b in zip(there, back, strict=True)]
    assert any(one.sure for one in found)
