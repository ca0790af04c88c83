import importlib
import json
import math
import re
import sys
from collections import Counter

import pytest
import sacrebleu

from relakit.metrics.bleu import CorpusScore, bleu_score, corpus_score, make_metric
from relakit.metrics.settings import BLEU_TOKENIZERS, METRIC_NAMES, known_metric, tokenizer_for

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


def test_chrf_with_words_is_that_of_sacrebleu() -> None:
    score = corpus_score("chrF++", HYPOTHESES, REFERENCES)
    assert score.score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert "|nc:6|nw:2|" in score.signature


def test_ter_is_that_of_sacrebleu() -> None:
    score = corpus_score("TER", HYPOTHESES, REFERENCES)
    assert score.score == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert "|norm:no|punct:yes|asian:no|" in score.signature


def test_ter_without_spaces_between_words() -> None:
    score = corpus_score("TER", ["小犬"], ["小狗"], tokenizer="zh")
    assert score.score == pytest.approx(50.0)
    assert corpus_score("TER", ["小犬"], ["小狗"]).score == pytest.approx(100.0)


def test_several_references() -> None:
    others = [line.replace("dog", "cat") for line in HYPOTHESES]
    for name in METRIC_NAMES:
        score = corpus_score(name, HYPOTHESES, REFERENCES, others)
        alone = corpus_score(name, HYPOTHESES, REFERENCES)
        assert score.signature.startswith("nrefs:2|")
        assert score.sentences == 3
        assert (score.score < alone.score) == (name == "TER")
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES, others]).score
    assert corpus_score("BLEU", HYPOTHESES, REFERENCES, others).score == expected


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "zh", "char", "none"])
def test_tokenizers_are_those_of_sacrebleu(tokenizer: str) -> None:
    score = corpus_score("BLEU", HYPOTHESES, REFERENCES, tokenizer=tokenizer)
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenizer)
    assert score.score == expected.score
    assert f"|tok:{tokenizer}|" in score.signature


def test_all_tokenizers_exist() -> None:
    assert {*BLEU_TOKENIZERS} <= {*sacrebleu.BLEU.TOKENIZERS}


@pytest.mark.parametrize(
    ("tokenizer", "module", "package"),
    [
        ("ja-mecab", "sacrebleu.tokenizers.tokenizer_ja_mecab", "sacrebleu[ja]"),
        ("ko-mecab", "sacrebleu.tokenizers.tokenizer_ko_mecab", "sacrebleu[ko]"),
        ("flores200", "sentencepiece", "sentencepiece"),
    ],
)
def test_a_tokenizer_whose_package_is_missing(
    tokenizer: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module == "sentencepiece":
        monkeypatch.setitem(sys.modules, module, None)
    else:
        monkeypatch.setattr(importlib.import_module(module), "MeCab", None)
    expected = f"BLEU's tokenizer {tokenizer} needs another package: pip install '{package}'"
    with pytest.raises(ValueError, match=re.escape(expected)):
        make_metric("BLEU", tokenizer)
    make_metric("chrF", tokenizer)


def test_a_tokenizer_that_cannot_be_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("relakit.metrics.bleu.BLEU", lambda **_: unreachable())
    with pytest.raises(ValueError, match=r"flores200 downloads a file .* failed: no network"):
        make_metric("BLEU", "flores200")


def test_tokenizers_by_language() -> None:
    languages = ("de", "zh", "zh_CN", "ja", "jpn", "ko-KR", None)
    expected = ["13a", "zh", "zh", "ja-mecab", "ja-mecab", "ko-mecab", "13a"]
    assert [tokenizer_for(language) for language in languages] == expected


def test_names_of_metrics() -> None:
    given = ("bleu", "CHRF", "chrf++", "Ter", "tokenised-bleu", "tokenised BLEU")
    assert [known_metric(name) for name in given] == [*METRIC_NAMES, "tokenised BLEU"]


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
    with pytest.raises(ValueError, match="there are no references"):
        corpus_score("chrF", HYPOTHESES)


def test_empty_translations_are_scored() -> None:
    assert corpus_score("BLEU", ["", ""], ["a b c d", "e f g h"]).score == 0.0
