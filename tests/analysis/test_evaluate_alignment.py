"""Scores of all layers and heads, against sets of links made pair by pair."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from relakit.analysis import (
    READINGS,
    AlignmentScore,
    AnalysisPair,
    CrossAttention,
    EndWeight,
    GoldAlignment,
    Reading,
    alignment_error_rate,
    analyze,
    capture_cross_attention,
    count_pair_links,
    evaluate_alignment,
    generated_gold_pair,
    split_words,
)
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer
from relakit.model import Transformer

ModelMaker = Callable[[str], Transformer]
Word = list[int]
"""The tokens of a word."""


def gold_pairs(count: int) -> list[AnalysisPair]:
    """Generated pairs; every third link is only possible."""
    found = []
    for pair in map(generated_gold_pair, generate_pairs(count, split="test")):
        links = sorted(pair.gold.sure)
        gold = GoldAlignment(frozenset(links) - set(links[::3]), frozenset(links[::3]))
        found.append(
            AnalysisPair(pair.source, pair.target, pair.source_words, pair.target_words, gold)
        )
    return found


def tokens_of_words(
    tokenizer: Tokenizer, text: str, words: Iterable[tuple[int, int]]
) -> list[Word]:
    spans = tokenizer.encode(text).spans
    return [
        [t for t, (start, end) in enumerate(spans) if start < word[1] and end > word[0]]
        for word in words
    ]


def slow_links(
    matrix: np.ndarray, targets: list[Word], sources: list[Word], shift: int, end: EndWeight
) -> set[tuple[int, int]]:
    """Links from ``[target tokens + 1, source tokens + 1]`` weights, word by word."""
    links = set()
    for target, rows in enumerate(targets):
        averages = [
            float(np.mean([sum(float(matrix[r + shift, c]) for c in columns) for r in rows]))
            for columns in sources
        ]
        at_end = float(np.mean([float(matrix[r + shift, -1]) for r in rows]))
        if max(averages) > 0 and not (end == "competes" and at_end > max(averages)):
            links.add((averages.index(max(averages)), target))
    return links


def slow_score(
    tokenizer: Tokenizer,
    pairs: list[AnalysisPair],
    matrices: Sequence[np.ndarray],
    reading: Reading,
    end: EndWeight,
) -> AlignmentScore:
    """The score of one matrix for each pair."""
    found = []
    for pair, matrix in zip(pairs, matrices, strict=True):
        targets = tokens_of_words(tokenizer, pair.target, pair.target_words)
        sources = tokens_of_words(tokenizer, pair.source, pair.source_words)
        found.append(slow_links(matrix, targets, sources, READINGS.index(reading), end))
    gold = [pair.gold for pair in pairs]
    return alignment_error_rate(found, [g.sure for g in gold], [g.possible for g in gold])


def weights_one_by_one(
    model: Transformer, tokenizer: Tokenizer, pairs: list[AnalysisPair]
) -> list[np.ndarray]:
    found = []
    for pair in pairs:
        ids = tokenizer.encode(pair.source).ids, tokenizer.encode(pair.target).ids
        (attention,) = capture_cross_attention(model, [ids])
        found.append(attention.weights)
    return found


@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_against_links_made_pair_by_pair(
    make_model: ModelMaker, tokenizer: Tokenizer, attention: str
) -> None:
    model, pairs = make_model(attention), gold_pairs(8)
    weights = weights_one_by_one(model, tokenizer, pairs)
    ends: tuple[EndWeight, ...] = ("ignored", "competes")
    for end, reading in product(ends, READINGS):
        result = evaluate_alignment(model, tokenizer, iter(pairs), end=end, batch_tokens=200)
        assert (result.pairs, result.attention, result.settings.end) == (8, attention, end)
        scores = result.scores(reading)
        for layer in range(2):
            average = [w[layer].mean(0) for w in weights]
            assert scores.layers[layer] == slow_score(tokenizer, pairs, average, reading, end)
            for head in range(3):
                one = [w[layer, head] for w in weights]
                assert scores.heads[layer][head] == slow_score(tokenizer, pairs, one, reading, end)


def test_both_treatments_of_the_end_and_each_pair_in_one_pass(
    make_model: ModelMaker, tokenizer: Tokenizer
) -> None:
    model, pairs = make_model("softmax"), gold_pairs(9)
    pairs[4] = AnalysisPair.from_texts(pairs[4].source, pairs[4].target)  # no gold links
    runs: list[str] = []
    hook = model.encoder.register_forward_hook(lambda *_: runs.append("encoder"))
    links = count_pair_links(model, tokenizer, iter(pairs))
    in_one_pass = len(runs)
    count_pair_links(model, tokenizer, iter(pairs), ends=["ignored"])
    hook.remove()
    assert len(runs) == 2 * in_one_pass
    assert list(links) == ["ignored", "competes"]
    for end, counted in links.items():
        assert counted.result == evaluate_alignment(model, tokenizer, pairs, end=end)
        assert counted.indices.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
        for place, index in enumerate(counted.indices):
            (alone,) = count_pair_links(model, tokenizer, [pairs[index]], ends=[end]).values()
            assert np.array_equal(counted.links[place], alone.links[0])
            assert counted.sure[place] == len(pairs[index].gold.sure)
    assert not np.array_equal(links["ignored"].links, links["competes"].links)


def test_the_end_of_the_sentence_takes_links_away(
    make_model: ModelMaker, tokenizer: Tokenizer
) -> None:
    """In softmax attention every target word has a link, unless the end may take it."""
    model, pairs = make_model("softmax"), gold_pairs(12)
    words = sum(len(pair.target_words) for pair in pairs)

    def found(end: EndWeight) -> list[int]:
        result = evaluate_alignment(model, tokenizer, pairs, end=end)
        heads = (*result.normal.heads, *result.shifted.heads)
        return [score.found for layer in heads for score in layer]

    assert found("ignored") == [words] * 12
    assert 0 < min(found("competes")) < words


def planted(
    tokenizer: Tokenizer, pairs: list[AnalysisPair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of a model's: head 0 is gold when predicting, head 1 one step later, head 2 null."""

    def attention(model: object, ids: object, *, batch_tokens: int) -> Iterator[CrossAttention]:
        for index, _ in enumerate(ids):
            pair = pairs[index]
            targets = tokens_of_words(tokenizer, pair.target, pair.target_words)
            sources = tokens_of_words(tokenizer, pair.source, pair.source_words)
            sizes = [sum(map(len, words)) for words in (targets, sources)]
            weights = np.zeros((2, 3, sizes[0] + 1, sizes[1] + 1), dtype=np.float32)
            weights[:, :2, :, -1] = 5.0  # all look at the end, too
            for source, target in pair.gold.sure:
                for row in targets[target]:
                    weights[1, 0, row, sources[source]] = 1.0
                    weights[1, 1, row + 1, sources[source]] = 1.0
            yield CrossAttention(index, weights)

    monkeypatch.setattr(analyze, "capture_cross_attention", attention)


def test_planted_attention(
    make_model: ModelMaker, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that attends to the linked words has one right link for each linked target word."""
    pairs = [generated_gold_pair(pair) for pair in generate_pairs(50, split="test")]
    planted(tokenizer, pairs, monkeypatch)
    result = evaluate_alignment(make_model("rela-g"), tokenizer, pairs)
    linked = sum(len({target for _, target in pair.gold.sure}) for pair in pairs)
    links = sum(len(pair.gold.sure) for pair in pairs)
    perfect = AlignmentScore(linked, links, linked, linked)
    assert result.normal.heads[1][0] == perfect
    assert result.shifted.heads[1][1] == perfect
    for scores in (result.normal, result.shifted):
        assert scores.heads[1][2] == AlignmentScore(0, links, 0, 0)
        assert scores.heads[0] == (AlignmentScore(0, links, 0, 0),) * 3
        assert scores.layers[0].aer == 1.0
    assert (result.normal.best_head, result.shifted.best_head) == ((1, 0), (1, 1))
    assert result.normal.layers[1].aer < 1.0
    assert 0 < result.normal.heads[1][0].aer < 0.15
    assert result.normal.heads[1][1].aer > 0.3
    competing = evaluate_alignment(make_model("rela-g"), tokenizer, pairs, end="competes")
    assert competing.normal.heads[1][0].found < linked


def test_words_without_tokens_and_empty_sides(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    none = GoldAlignment(frozenset())
    pairs = [
        AnalysisPair("", "", (), (), none),
        AnalysisPair("A dog.", "", split_words("A dog."), (), none),
        AnalysisPair("", "Ein Hund.", (), split_words("Ein Hund."), none),
        # Two words on the three characters of one token.
        AnalysisPair("...", "...", ((0, 2), (2, 3)), ((0, 3),), GoldAlignment(frozenset({(0, 0)}))),
    ]
    result = evaluate_alignment(make_model("softmax"), tokenizer, pairs)
    assert result.normal.layers[0] == AlignmentScore(1, 1, 1, 1)
    assert result.pairs == 4


def test_what_cannot_be_evaluated(make_model: ModelMaker, tokenizer: Tokenizer) -> None:
    model = make_model("rela-g")
    with pytest.raises(ValueError, match="the 0 pairs have no sure link"):
        evaluate_alignment(model, tokenizer, [])
    with pytest.raises(ValueError, match="unknown end 'link'; choose one of ignored, competes"):
        evaluate_alignment(model, tokenizer, [], end="link")
    small = Transformer(model.config.model_copy(update={"vocabulary": 300}))
    with pytest.raises(ValueError, match="tokenizer has 400 entries, the model 300"):
        evaluate_alignment(small, tokenizer, [])
