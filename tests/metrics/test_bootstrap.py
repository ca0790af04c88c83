import json
import random

import pytest

from relakit import limits
from relakit.metrics import settings
from relakit.metrics.bleu import bleu_score, corpus_score, make_metric
from relakit.metrics.bootstrap import paired_bootstrap
from relakit.metrics.settings import METRIC_NAMES, MetricName, checked_draws

WORDS = ("the", "a", "dog", "runs", "sleeps", "in", "house", "old", "young", "sees", "and", "or")


def sentences(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(6, 14))) for _ in range(count)]


def damaged(lines: list[str], share: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choice(WORDS) if generator.random() < share else w for w in line.split())
        for line in lines
    ]


REFERENCES = sentences(120, seed=0)
GOOD, EQUAL, BAD = (
    damaged(REFERENCES, share, seed) for share, seed in ((0.1, 1), (0.1, 6), (0.3, 3))
)


def test_a_clear_difference() -> None:
    bleu, chrf, _ = paired_bootstrap(BAD, GOOD, REFERENCES)
    assert (bleu.metric, chrf.metric) == ("BLEU", "chrF")
    assert bleu.baseline.score == bleu_score(BAD, REFERENCES).score
    assert bleu.system.score == bleu_score(GOOD, REFERENCES).score
    assert chrf.difference == pytest.approx(
        corpus_score("chrF", GOOD, REFERENCES).score - corpus_score("chrF", BAD, REFERENCES).score
    )
    for compared in (bleu, chrf):
        assert compared.p_value < 0.01
        assert compared.system.mean == pytest.approx(compared.system.score, abs=1)
        assert 0 < compared.system.interval < 10
    assert "|seed:12345|" in bleu.signature
    assert "|bs:1000|" in bleu.signature


def test_no_difference_to_speak_of() -> None:
    bleu, *_ = paired_bootstrap(EQUAL, GOOD, REFERENCES, samples=300)
    assert bleu.p_value > 0.05
    assert "|bs:300|" in bleu.signature


def test_every_metric_and_several_references() -> None:
    compared = paired_bootstrap(
        BAD, GOOD, REFERENCES, EQUAL, metrics=METRIC_NAMES, tokenizer="char", samples=20
    )
    assert [comparison.metric for comparison in compared] == [*METRIC_NAMES]
    for comparison in compared:
        expected = corpus_score(comparison.metric, GOOD, REFERENCES, EQUAL, tokenizer="char")
        assert comparison.system.score == pytest.approx(expected.score)
        assert "nrefs:2|" in comparison.signature
        assert (comparison.difference < 0) == (comparison.metric == "TER")


def test_the_same_every_time() -> None:
    first, second = (paired_bootstrap(BAD, GOOD, REFERENCES, samples=50) for _ in range(2))
    assert first == second


def test_comparisons_go_to_json() -> None:
    bleu, *_ = paired_bootstrap(BAD, GOOD, REFERENCES, samples=20)
    content = json.loads(json.dumps(bleu.to_json()))
    assert content["difference"] == bleu.difference
    assert content["baseline"]["score"] == bleu.baseline.score


def test_differing_counts() -> None:
    with pytest.raises(ValueError, match="there are 119 translations and 120 references"):
        paired_bootstrap(BAD[1:], GOOD, REFERENCES)
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        paired_bootstrap(BAD, GOOD, REFERENCES, samples=0)


@pytest.mark.parametrize("name", METRIC_NAMES)
def test_what_is_kept_of_a_line(name: MetricName) -> None:
    kept = make_metric(name)._extract_corpus_statistics(GOOD[:2], [REFERENCES[:2]])
    assert [len(line) for line in kept] == [settings._COUNTS[name]] * 2


@pytest.mark.parametrize(
    ("metrics", "fitting"),
    [(["TER"], 100), (["BLEU"], 33), (["TER", "chrF++", "BLEU"], 15)],
    ids=str,
)
def test_draws_must_fit_into_memory(
    metrics: list[MetricName], fitting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is of a number in 8 bytes and of the metric's numbers in 4."""
    monkeypatch.setattr(limits, "machine_memory", lambda: 16 * 120 * 100)
    assert checked_draws(fitting, 120, metrics) == fitting
    expected = rf"comparing 120 lines with {fitting + 1} samples would need about .* of memory"
    with pytest.raises(ValueError, match=expected):
        checked_draws(fitting + 1, 120, metrics)
    with pytest.raises(ValueError, match=expected):
        paired_bootstrap(BAD, GOOD, REFERENCES, metrics=metrics, samples=fitting + 1)
