"""Verdicts: each of the three is reached, by intervals and never by a mean alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_records import evidence_of, made_up_record

from relakit.reproduce.claims import (
    Comparison,
    Judge,
    Verdict,
    all_of,
    at_most_below,
    by_count,
    higher,
    lower,
    within,
)
from relakit.reproduce.evidence import bleu
from relakit.reproduce.statistics import Difference


def interval(low: float, high: float) -> Difference:
    return Difference((low + high) / 2, low, high, (3, 3))


OPEN = Difference(5.0, -math.inf, math.inf, (1, 1))


@pytest.mark.parametrize(
    ("judge", "low", "high", "verdict"),
    [
        (higher, 0.1, 2.0, "holds"),
        (higher, -2.0, -0.1, "does not hold"),
        (higher, 0.0, 0.0, "does not hold"),
        (higher, -0.1, 2.0, "not decidable"),
        (lower, -2.0, -0.1, "holds"),
        (lower, 0.1, 2.0, "does not hold"),
        (lower, -2.0, 0.1, "not decidable"),
        (at_most_below(1.0), -0.9, 0.5, "holds"),
        (at_most_below(1.0), -1.0, 9.0, "holds"),
        (at_most_below(1.0), -3.0, -1.1, "does not hold"),
        (at_most_below(1.0), -1.1, 0.5, "not decidable"),
        (within(1.0), -0.9, 0.9, "holds"),
        (within(1.0), 1.1, 2.0, "does not hold"),
        (within(1.0), -2.0, -1.1, "does not hold"),
        (within(1.0), 0.5, 1.5, "not decidable"),
    ],
)
def test_judges(judge: Judge, low: float, high: float, verdict: Verdict) -> None:
    assert judge(interval(low, high)) == verdict


@pytest.mark.parametrize("judge", [higher, lower, at_most_below(1.0), within(1.0)])
def test_an_open_interval_decides_nothing(judge: Judge) -> None:
    assert judge(OPEN) == "not decidable"


@given(st.floats(-10, 10), st.floats(0, 10))
def test_a_wider_interval_never_turns_a_verdict_round(middle: float, half: float) -> None:
    for judge in (higher, lower, at_most_below(1.0), within(1.0)):
        narrow = judge(interval(middle - half, middle + half))
        wide = judge(interval(middle - half - 1, middle + half + 1))
        assert wide in (narrow, "not decidable")


def test_verdicts_of_several_parts() -> None:
    assert all_of(["holds", "holds"]) == "holds"
    assert all_of(["holds", "not decidable"]) == "not decidable"
    assert all_of(["holds", "not decidable", "does not hold"]) == "does not hold"
    assert all_of([]) == "not decidable"


def test_verdicts_by_count() -> None:
    assert [by_count(n, 3) for n in range(4)] == [
        "does not hold", "not decidable", "not decidable", "holds",
    ]  # fmt: skip
    assert {by_count(n, 1) for n in range(2)} == {"not decidable"}


def test_a_comparison_has_a_finding_for_every_setting_with_both_rows() -> None:
    compare = Comparison("rela-g", "softmax", bleu, higher, "BLEU")
    records = [
        made_up_record(row, seed, corpus=corpus, bleu=score + seed / 10)
        for corpus in ("multi30k-en-de", "multi30k-en-fr")
        for row, score in (("rela-g", 33.0), ("softmax", 31.0))
        for seed in (1, 2, 3)
    ]
    lonely = made_up_record("rela-g", corpus="multi30k-de-en")
    first, second = compare(evidence_of(*records, lonely))
    assert first.setting == "Multi30k en-de, tiny"
    assert second.setting == "Multi30k en-fr, tiny"
    assert first.measured == "33.2 ± 0.1 against 31.2 ± 0.1: +2.0 (+1.8 to +2.2) BLEU"
    assert (first.n, first.verdict) == ((3, 3), "holds")


def test_a_comparison_of_single_runs_decides_nothing() -> None:
    compare = Comparison("rela-g", "softmax", bleu, lower, "BLEU")
    (finding,) = compare(
        evidence_of(made_up_record("rela-g", bleu=30.0), made_up_record("softmax", bleu=31.5))
    )
    assert finding.measured == "30.0 against 31.5: -1.5 BLEU"
    assert finding.verdict == "not decidable"
