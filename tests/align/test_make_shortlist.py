"""From links of tokens to a shortlist."""

import numpy as np
import pytest
from random_models import random_model

from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice, ChosenOn
from relakit.align.make_shortlist import TokenLinkCounts, count_links, coverage
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer import END, Tokenizer


def aligner_for(tokenizer: Tokenizer, level: str = "token") -> Aligner:
    choice = AlignmentChoice(layer=1, heads=(0, 2), reading="normal", chosen=ChosenOn(by="given"))
    model = random_model("softmax", vocabulary=tokenizer.size)
    return Aligner(model, tokenizer, choice, level=level)  # type: ignore[arg-type]


def test_the_most_frequent_links(tokenizer: Tokenizer) -> None:
    counts = TokenLinkCounts(tokenizer)
    counts.add([10, 11], [20, 21, 22], [(0, 0), (0, 1), (1, 2)])
    counts.add([10], [21, 21], [(0, 0), (0, 1)])
    counts.add([11], [23, END], [(0, 0), (0, 1)])
    made = counts.shortlist(best=1, frequent=1)
    assert made.frequent.tolist() == [21]
    # Token 11 was linked as often with 22 as with 23: the smaller id wins. 10 may be copied. Those
    # of every sentence take no place in the others' lists.
    assert made.tokens_for([10]).tolist() == [END, 10, 20, 21]
    assert made.tokens_for([11]).tolist() == [END, 11, 21, 22]
    wider = counts.shortlist(best=2, frequent=0)
    assert wider.tokens_for([10, 11]).tolist() == [END, 10, 11, 20, 21, 22, 23]
    assert (made.about.pairs, made.about.best) == (3, 1)
    made.check_tokenizers(tokenizer, "the model")


def test_tokens_that_go_with_everything_go_with_nothing(tokenizer: Tokenizer) -> None:
    counts = TokenLinkCounts(tokenizer)
    for other in range(30, 60):
        counts.add([other, 10], [20, 21], [(0, 0), (1, 1)])
    for _ in range(2):
        counts.add([10], [20], [(0, 0)])
    # 20 was linked with 10 as often as 22, but with many others too.
    counts.add([10, 10], [22, 22], [(0, 0), (1, 1)])
    made = counts.shortlist(best=2, frequent=0)
    assert made.tokens_for([10]).tolist() == [END, 10, 21, 22]


def test_links_of_an_aligner(tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]) -> None:
    aligner = aligner_for(tokenizer)
    made = count_links(aligner, iter(gold_pairs)).shortlist(best=tokenizer.size, frequent=0)
    for pair, alignment in zip(gold_pairs, aligner.align(gold_pairs), strict=True):
        source, target = (tokenizer.encode(text).ids for text in (pair.source, pair.target))
        allowed = made.tokens_for(source).tolist()
        assert alignment.scores
        assert {target[to_place] for _, to_place in alignment.scores} <= set(allowed)


def test_a_token_has_at_most_the_best(tokenizer: Tokenizer, gold_pairs: list[AnalysisPair]) -> None:
    counts = count_links(aligner_for(tokenizer), iter(gold_pairs))
    all_sizes = np.diff(counts.shortlist(best=tokenizer.size, frequent=0).starts)
    assert all_sizes.max() > 5 > all_sizes[all_sizes > 0].min()
    sizes = np.diff(counts.shortlist(best=5, frequent=0).starts)
    assert sizes.tolist() == np.minimum(all_sizes, 5).tolist()


def test_words_make_no_shortlist(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="a shortlist is of tokens, but the aligner links words"):
        count_links(aligner_for(tokenizer, "word"), [])


def test_nothing_to_count(tokenizer: Tokenizer) -> None:
    empty = AnalysisPair.from_texts("", "")
    with pytest.raises(ValueError, match="none of 2 pairs has a link"):
        count_links(aligner_for(tokenizer), [empty, empty])


def test_coverage(tokenizer: Tokenizer) -> None:
    counts = TokenLinkCounts(tokenizer)
    counts.add([10], [20], [(0, 0)])
    made = counts.shortlist(best=1, frequent=0)
    found = coverage(made, [[10], [11]], [[20, 21], [11, 20]])
    assert found.share == 0.5
    assert found.size == 2.5
