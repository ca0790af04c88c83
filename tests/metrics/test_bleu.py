import json
import math
from collections import Counter

import pytest
import sacrebleu

from relakit.metrics.bleu import (
    CorpusScore,
    bleu_score,
    corpus_score,
)

HYPOTHESES = [
    "The small dog ran well-known roads, and barked.",
    "Two men are standing in front of a house - old.",
    "A girl says: \u201eHello\u201c to the world.",
]
REFERENCES = [
    "The small dog ran along well-known roads and barked.",
    "Two men are standing before a house - an old one.",
    "A girl says: \u201eGood morning\u201c to the world.",
]


def multi_bleu(hypotheses: list[list[str]], references: list[list[str]]) -> float:
    """BLEU by its definition, as multi-bleu.perl computes it from words."""
    logs = 0.0
    for order in range(1, 5):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            mine, theirs = (
                Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))
                for words in (hypothesis, reference)
            )
            matches += sum((mine & theirs).values())
            total += sum(mine.values())
        if matches == 0:
            return 0.0
        logs += math.log(matches / total) / 4
    length, expected = (sum(map(len, side)) for side in (hypotheses, references))
    brevity = 1.0 if length > expected else math.exp(1 - expected / length)
    return 100 * brevity * math.exp(logs)


def test_bleu_is_that_of_sacrebleu() -> None:
    score = bleu_score(HYPOTHESES, REFERENCES)
    assert score.score == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert score.sentences == 3


def test_chrf_is_that_of_sacrebleu() -> None:
    score = corpus_score("chrF", HYPOTHESES, REFERENCES)
    assert score.score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert score.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def split(lines: list[str]) -> list[list[str]]:
    """The words of these sentences, hyphens and quotation marks on their own."""
    marks = ",.:-\u201e\u201c"
    return ["".join(f" {c} " if c in marks else c for c in line).split() for line in lines]


def test_tokenised_bleu_is_that_of_the_definition_on_split_text() -> None:
    score = corpus_score("tokenised BLEU", HYPOTHESES, REFERENCES)
    assert score.score == pytest.approx(multi_bleu(split(HYPOTHESES), split(REFERENCES)))
    assert score.score != pytest.approx(bleu_score(HYPOTHESES, REFERENCES).score, abs=0.1)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:intl|smooth:none|version:")


def test_tokenised_bleu_is_not_smoothed() -> None:
    assert corpus_score("tokenised BLEU", ["a b c x"], ["a b c d"]).score == 0.0
    assert bleu_score(["a b c x"], ["a b c d"]).score > 0.0


def test_case_counts() -> None:
    assert bleu_score(["a b c d e"], ["a b c d e"]).score == pytest.approx(100.0)
    assert bleu_score(["a b c d E"], ["a b c d e"]).score < 90


def test_scores_go_to_json() -> None:
    score = bleu_score(HYPOTHESES, REFERENCES)
    assert CorpusScore(**json.loads(json.dumps(score.to_json()))) == score


def test_differing_counts() -> None:
    with pytest.raises(ValueError, match="there are 2 translations and 3 references"):
        bleu_score(HYPOTHESES[:2], REFERENCES)


def test_nothing_to_score() -> None:
    with pytest.raises(ValueError, match="there are no translations to score"):
        corpus_score("chrF", [], [])


def test_empty_translations_are_scored() -> None:
    assert corpus_score("BLEU", ["", ""], ["a b c d", "e f g h"]).score == 0.0
