"""Claims about attention, on made-up analyses: every verdict can be reached."""

from collections.abc import Sequence

import pytest
from made_up_records import (
    claim_about,
    evidence_of,
    made_up_analysis,
    made_up_record,
    only_finding,
)

from relakit.analysis.results import ModelAnalysis
from relakit.attention_kinds import AttentionKind
from relakit.reproduce.claims import Verdict
from relakit.reproduce.claims_part import CLAIMS

RATES: tuple[float, ...] = (0.3, 0.4, 0.5)


def verdict(claim: str, *analyses: ModelAnalysis) -> Verdict:
    records = [made_up_record(seed=n, attention=one) for n, one in enumerate(analyses, 1)]
    return only_finding(claim, *records).verdict


def near(rates: Sequence[float], step: float) -> list[float]:
    return [rate + step for rate in rates]


def sparse(kind: AttentionKind, *rates: Sequence[float]) -> list[ModelAnalysis]:
    return [made_up_analysis(sparsity={kind: one}) for one in rates]


def null(kind: AttentionKind, *rates: Sequence[float]) -> list[ModelAnalysis]:
    return [made_up_analysis(null_rate={kind: one}) for one in rates]


def test_cross_attention_is_sparsest() -> None:
    claim = "Cross-attention is the sparsest"
    assert verdict(claim, *sparse("cross", [0.8] * 3, [0.81] * 3)) == "holds"
    assert verdict(claim, *sparse("cross", [0.2] * 3, [0.21] * 3)) == "does not hold"
    assert verdict(claim, *sparse("cross", [0.8] * 3, [0.2] * 3)) == "not decidable"
    assert verdict(claim, *sparse("cross", [0.8] * 3)) == "not decidable", "one seed"


@pytest.mark.parametrize(
    ("claim", "kind", "analyses"),
    [
        ("Decoder self-attention is sparser", "decoder", sparse),
        ("Cross-attention is sparser", "cross", sparse),
        ("Decoder self-attention is null more often", "decoder", null),
    ],
)
def test_what_rises_with_depth(claim: str, kind: AttentionKind, analyses: type) -> None:
    up, steeper, down = RATES, (0.3, 0.4, 0.52), RATES[::-1]
    assert verdict(claim, *analyses(kind, up, steeper)) == "holds"
    assert verdict(claim, *analyses(kind, down, steeper[::-1])) == "does not hold"
    assert verdict(claim, *analyses(kind, up, down)) == "not decidable"


def test_layers_are_shown_in_percent() -> None:
    records = [
        made_up_record(seed=n, attention=made_up_analysis(sparsity={"cross": near(RATES, step)}))
        for n, step in ((1, 0.0), (2, 0.02))
    ]
    finding = only_finding("Cross-attention is sparser", *records)
    assert finding.measured.startswith("by layer 31%, 41%, 51%; last minus first +20.0")


def test_peak_in_the_middle() -> None:
    claim = "null most often at a layer in the middle"
    middle, end = [0.1, 0.6, 0.2], [0.1, 0.2, 0.6]
    assert verdict(claim, *null("cross", middle, middle)) == "holds"
    assert verdict(claim, *null("cross", middle, end)) == "not decidable"
    assert verdict(claim, *null("cross", end, end[::-1])) == "does not hold"
    (record,) = (made_up_record(attention=one) for one in null("cross", middle))
    assert only_finding(claim, record).measured == "by layer 10%, 60%, 20%; peak at layer 2"


def test_encoder_has_the_fewest_nulls() -> None:
    claim = "encoder has the fewest null queries"
    assert verdict(claim, *null("encoder", [0.0] * 3, [0.01] * 3)) == "holds"
    assert verdict(claim, *null("encoder", [0.3] * 3, [0.31] * 3)) == "does not hold"
    assert verdict(claim, *null("encoder", [0.0] * 3, [0.3] * 3)) == "not decidable"


def test_gap_of_shuffled_pairs() -> None:
    everywhere, later = (
        "Targets with a wrong source are null more often",
        "every layer but the first",
    )
    above, below, both = (0.05, 0.04, 0.06), (-0.05, -0.06, -0.04), (0.0, -0.01, 0.01)

    def of(claim: str, *gaps: tuple[float, float, float]) -> Verdict:
        return verdict(claim, made_up_analysis(gap=gaps))

    for claim in (everywhere, later):
        assert of(claim, above, above, above) == "holds"
        assert of(claim, above, above, below) == "does not hold"
        assert of(claim, above, both, above) == "not decidable"
        seeds = [made_up_analysis(gap=[one] * 3) for one in (above, both)]
        assert verdict(claim, *seeds) == "not decidable", "every seed counts"
    assert of(everywhere, below, above, above) == "does not hold"
    assert of(later, below, above, above) == "holds"


def test_gaps_over_queries_and_over_sentences_must_agree() -> None:
    claim = "Targets with a wrong source are null more often"
    above, below = (0.05, 0.04, 0.06), (-0.05, -0.06, -0.04)
    contrary = made_up_analysis(gap=[above] * 3, query_gap=[0.05, -0.01, 0.05])
    assert verdict(claim, contrary) == "not decidable"
    contrary = made_up_analysis(gap=[above, below, above], query_gap=[0.05, 0.01, 0.05])
    assert verdict(claim, contrary) == "not decidable"
    finding = only_finding(claim, made_up_record(attention=contrary))
    assert finding.measured == (
        "points by layer, over queries / over sentences: +5.0 / +5.0 (+4.0 to +6.0); "
        "+1.0 / -5.0 (-6.0 to -4.0); +5.0 / +5.0 (+4.0 to +6.0)"
    )


def test_one_of_several_layers_must_be_clearly_below() -> None:
    """By chance, one of many intervals lies on the wrong side."""
    claim = "Targets with a wrong source are null more often"
    above = (0.05, 0.04, 0.06)
    barely, clearly = (-0.05, -0.098, -0.002), (-0.05, -0.08, -0.02)
    assert verdict(claim, made_up_analysis(gap=[above, above, barely])) == "not decidable"
    assert verdict(claim, made_up_analysis(gap=[above, above, clearly])) == "does not hold"


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ((0.9, 0.91), "holds"),
        ((0.1, 0.11), "does not hold"),
        ((0.1, 0.9), "not decidable"),
    ],
)
def test_diversity(kind: str, ours: tuple[float, float], expected: Verdict) -> None:
    """Ours is taken at its worst temperature, the others at their best row."""
    records = [
        made_up_record(seed=n, attention=made_up_analysis(diversity={"1": 5.0, "0.1": value}))
        for n, value in enumerate(ours, 1)
    ]
    for row, value in (("softmax", 0.2), ("entmax15", 0.5)):
        records += [
            made_up_record(row, n, attention=made_up_analysis(diversity={"1": value + n / 1000}))
            for n in (1, 2)
        ]
    findings = claim_about(f"at every temperature: {kind}").find(evidence_of(*records))
    assert [("of softmax" in f.measured, "of entmax15" in f.measured) for f in findings] == [
        (True, False),
        (False, True),
    ]
    assert findings[1].verdict == expected


def test_heads_that_specialise() -> None:
    claim = "Heads specialise"

    def head(null_rate: float, after_comma: float) -> ModelAnalysis:
        rates: dict[AttentionKind, list[float]] = {"cross": [0.1, null_rate, 0.1]}
        return made_up_analysis(null_rate=rates, after_comma=after_comma, classes="tags")

    assert verdict(claim, head(0.95, 0.02), head(0.95, 0.02)) == "holds"
    assert verdict(claim, head(0.95, 0.02)) == "not decidable", "one seed"
    assert verdict(claim, head(0.95, 0.5), head(0.7, 0.02)) == "does not hold"
    assert verdict(claim, head(0.95, 0.02), head(0.95, 0.5)) == "not decidable"
    rare = made_up_analysis(
        null_rate={"cross": [0.95] * 3}, after_comma=0.0, commas=99, classes="tags"
    )
    assert verdict(claim, rare, rare) == "does not hold", "too few to tell"
    shapes = made_up_analysis(null_rate={"cross": [0.95] * 3}, after_comma=0.5)
    assert verdict(claim, shapes) == "not decidable", "there may be one that waits for verbs"
    finding = only_finding(claim, made_up_record(attention=head(0.95, 0.02)))
    assert finding.measured == (
        "1 of 1 models have such a head; one is null 95% of the time, 2% after comma"
    )


def test_without_runs_nothing_is_found() -> None:
    nothing = evidence_of()
    assert [claim.find(nothing) for claim in CLAIMS] == [[] for _ in CLAIMS]


def test_runs_without_analyses_decide_nothing_about_attention() -> None:
    records = [made_up_record(row) for row in ("rela-g", "softmax")]
    assert claim_about("Cross-attention is the sparsest").find(evidence_of(*records)) == []
