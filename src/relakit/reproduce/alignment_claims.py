"""Claims about word alignment: Table 5 and Figure 4."""

import math
import statistics
from collections.abc import Sequence
from typing import Final

from relakit.analysis.estimate import Estimate
from relakit.analysis.links import END_WEIGHTS, READINGS, Reading
from relakit.reproduce.claims import Claim, Find, Finding, lower
from relakit.reproduce.evidence import ErrorRate, Evidence, Setting
from relakit.reproduce.paper import TABLE_5
from relakit.reproduce.rows import OURS
from relakit.reproduce.statistics import Difference, Seeds, difference, mean_interval
from relakit.reproduce.studies import COMPARED

OTHERS: Final = tuple(row for row in COMPARED if row != OURS)
"""What ReLA-g is compared with in Table 5."""
NUMBERS: Final = {"aol": "the mean of heads (AoL)", "aoh": "the best head of a layer (AoH)"}


def _aligns_better(reading: Reading, number: str) -> Find:
    """ReLA-g's error rate should be below the rate of each of the others."""

    def find(evidence: Evidence) -> list[Finding]:
        return [
            finding
            for setting in evidence.settings()
            for gold in evidence.gold_sets(setting)
            for end in END_WEIGHTS
            for row in OTHERS
            if (
                finding := _alignment_finding(
                    evidence, setting, row, ErrorRate(gold, end, reading, number)
                )
            )
        ]

    return find


def _alignment_finding(
    evidence: Evidence, setting: Setting, row: str, rate: ErrorRate
) -> Finding | None:
    ours, others = (rate.of(evidence, setting, one) for one in (OURS, row))
    if not ours or not others:
        return None
    our_rates, other_rates = (
        Seeds(tuple(one.value for one in rates)).times(100) for rates in (ours, others)
    )
    gap = difference(our_rates.values, other_rates.values)
    if min(gap.n) == 1:
        gap = _over_sentences(ours, others).times(100)
    measured = (
        f"{our_rates.text()} against {other_rates.text()} of {row}: {gap.text()} points of AER"
    )
    where = f"{setting.label}, {rate.gold} links, end of sentence {rate.end}"
    return Finding(where, measured, gap.n, lower(gap))


def _over_sentences(ours: Sequence[Estimate], others: Sequence[Estimate]) -> Difference:
    """The gap if a row has a single run: from the lowest to the highest limit of all pairs of runs.

    Treats the two as independent. They share their sentences, so the true limits are closer.
    """
    gaps = []
    for first in ours:
        for second in others:
            halves = [(one.high - one.low) / 2 for one in (first, second)]
            gaps.append((first.value - second.value, math.hypot(*halves)))
    return Difference(
        statistics.fmean(value for value, _ in gaps),
        min(value - half for value, half in gaps),
        max(value + half for value, half in gaps),
        (len(ours), len(others)),
    )


def _shifted_is_better(number: str) -> Find:
    """ReLA-g's error rate should be lower with shifted attention than with normal attention."""

    def find(evidence: Evidence) -> list[Finding]:
        return [
            finding
            for setting in evidence.settings()
            for gold in evidence.gold_sets(setting)
            if (finding := _shifted_finding(evidence, setting, gold, number))
        ]

    return find


def _shifted_finding(
    evidence: Evidence, setting: Setting, gold: str, number: str
) -> Finding | None:
    normal, shifted = (
        ErrorRate(gold, "ignored", reading, number).of(evidence, setting, OURS)
        for reading in READINGS
    )
    if not normal:
        return None
    texts = [
        Seeds(tuple(one.value for one in rates)).times(100).text() for rates in (shifted, normal)
    ]
    gap = mean_interval([s.value - n.value for s, n in zip(shifted, normal, strict=True)])
    if len(normal) == 1:
        gap = _over_sentences(shifted, normal)
    measured = f"{texts[0]} against {texts[1]}: {gap.times(100).text()} points of AER"
    return Finding(f"{setting.label}, {gold} links", measured, len(normal), lower(gap))


def _reported_shift(number: str) -> str:
    normal, shifted = (getattr(TABLE_5[OURS], f"{reading}_{number}") for reading in READINGS)
    return f"AER {shifted:.1f} against {normal:.1f}"


def _reported_alignment(reading: Reading, number: str) -> str:
    ours, *others = (getattr(TABLE_5[row], f"{reading}_{number}") for row in (OURS, *OTHERS))
    return f"AER {ours:.1f} against {', '.join(f'{other:.1f}' for other in others)}"


ALIGNMENT_CLAIMS: Final = (
    *(
        Claim(
            f"Aligns better than each of the others: {reading} attention, {NUMBERS[number]}",
            _reported_alignment(reading, number),
            _aligns_better(reading, number),
        )
        for reading in READINGS
        for number in NUMBERS
    ),
    *(
        Claim(
            f"Shifted attention aligns better than normal attention: {text}",
            _reported_shift(number),
            _shifted_is_better(number),
        )
        for number, text in NUMBERS.items()
    ),
)
