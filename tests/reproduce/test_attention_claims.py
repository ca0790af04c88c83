"""Claims about attention, on made-up analyses: every verdict can be reached."""

from collections.abc import Sequence

import pytest
from made_up_records import (
    claim_about,
    evidence_of,
    made_up_alignment,
    made_up_analysis,
    made_up_record,
    only_finding,
)

from relakit.analysis.results import ModelAnalysis
from relakit.attention_kinds import AttentionKind
from relakit.reproduce.claims import Finding, Verdict
from relakit.reproduce.page import CLAIMS

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


ALIGNS = [
    f"{reading} attention, {number}"
    for reading in ("normal", "shifted")
    for number in ("the mean of heads", "the best head of a layer")
]


@pytest.mark.parametrize("claim", ALIGNS)
@pytest.mark.parametrize(
    ("ours", "half", "expected"),
    [(0.5, 0.01, "holds"), (0.7, 0.01, "does not hold"), (0.59, 0.05, "not decidable")],
)
def test_single_models_align_better_by_sentences(
    claim: str, ours: float, half: float, expected: Verdict
) -> None:
    evidence = evidence_of(
        made_up_record("rela-g", alignments={"RWTH": made_up_alignment(ours, half)}),
        made_up_record("softmax", alignments={"RWTH": made_up_alignment(0.6, half)}),
        made_up_record("entmax15", alignments={"RWTH": made_up_alignment(0.62, half)}),
    )
    findings = claim_about(claim).find(evidence)
    assert [(finding.setting, finding.verdict) for finding in findings] == [
        (f"Multi30k en-de, tiny, RWTH links, end of sentence {end}", expected)
        for end in ("ignored", "competes")
        for _ in ("softmax", "entmax15")
    ]
    for number, against in enumerate(("60.0 of softmax", "62.0 of entmax15") * 2):
        assert f" against {against}: " in findings[number].measured


def test_a_row_with_a_single_run_is_compared_with_every_run_of_the_other() -> None:
    def found(*ours: float) -> list[Finding]:
        records = [
            made_up_record("rela-g", n, alignments={"RWTH": made_up_alignment(rate)})
            for n, rate in enumerate(ours, 1)
        ]
        other = made_up_record("sparsemax", alignments={"RWTH": made_up_alignment(0.6)})
        return claim_about(ALIGNS[0]).find(evidence_of(*records, other))

    assert [finding.verdict for finding in found(0.5, 0.5, 0.51)] == ["holds"] * 2
    assert [finding.verdict for finding in found(0.5, 0.5, 0.595)] == ["not decidable"] * 2
    # Half widths of 1 point each: 1.4 together, beside the lowest and the highest difference.
    assert found(0.5, 0.52)[0].measured == (
        "51.0 ± 1.4 against 60.0 of sparsemax: -9.0 (-11.4 to -6.6) points of AER"
    )


def test_each_baseline_has_its_own_verdict() -> None:
    rates = {"rela-g": 0.5, "softmax": 0.6, "sparsemax": 0.4}
    records = [
        made_up_record(row, alignments={"RWTH": made_up_alignment(rate)})
        for row, rate in rates.items()
    ]
    findings = claim_about(ALIGNS[0]).find(evidence_of(*records))
    assert [finding.verdict for finding in findings] == ["holds", "does not hold"] * 2


def test_several_models_align_better_by_seeds() -> None:
    def aligned(row: str, *rates: float) -> list[object]:
        return [
            made_up_record(row, n, alignments={"RWTH": made_up_alignment(rate)})
            for n, rate in enumerate(rates, 1)
        ]

    softmax = aligned("softmax", 0.6, 0.61, 0.62)
    for rates, expected in (((0.5, 0.51, 0.52), "holds"), ((0.4, 0.5, 0.75), "not decidable")):
        evidence = evidence_of(*aligned("rela-g", *rates), *softmax)
        found = claim_about(ALIGNS[0]).find(evidence)
        assert [finding.verdict for finding in found] == [expected, expected]
    assert found[0].measured.startswith("55.0 ± 18.0 against 61.0 ± 1.0 of softmax: -6.0 (")


def test_each_gold_set_has_its_finding() -> None:
    golds = {"eflomal": made_up_alignment(0.5), "RWTH": made_up_alignment(0.7)}
    records = [
        made_up_record("rela-g", alignments=golds),
        made_up_record("softmax", alignments={name: made_up_alignment(0.6) for name in golds}),
    ]
    findings = claim_about(ALIGNS[0]).find(evidence_of(*records))
    assert [finding.verdict for finding in findings] == ["does not hold"] * 2 + ["holds"] * 2


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
