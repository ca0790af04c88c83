"""Claims about word alignment, on made-up error rates."""

import pytest
from made_up_records import (
    claim_about,
    evidence_of,
    made_up_alignment,
    made_up_record,
    only_finding,
)

from relakit.reproduce.claims import Finding, Verdict

ALIGNS = [
    f"Aligns better than each of the others: {reading} attention, {number}"
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


def test_numbers_of_runs_on_both_sides() -> None:
    records = [
        made_up_record(row, n, alignments={"RWTH": made_up_alignment(rate)})
        for row, rate, seeds in (("rela-g", 0.5, 3), ("softmax", 0.6, 1))
        for n in range(1, seeds + 1)
    ]
    findings = claim_about(ALIGNS[0]).find(evidence_of(*records))
    assert [finding.n for finding in findings] == [(3, 1)] * 2


def test_rates_against_other_links_are_not_compared() -> None:
    """Links by eflomal are random: two of its runs give two gold sets."""

    def found(**others: object) -> list[Finding]:
        ours = [
            made_up_record("rela-g", n, alignments={"eflomal": made_up_alignment(0.5, digest="a")})
            for n in (1, 2)
        ]
        other = made_up_alignment(0.6, **others)
        records = [*ours, made_up_record("softmax", alignments={"eflomal": other})]
        return claim_about(ALIGNS[0]).find(evidence_of(*records))

    assert found(digest="a")
    assert found(), "from before digests, as many links"
    assert not found(digest="b")
    assert not found(sure=101)


@pytest.mark.parametrize("number", ["the mean of heads", "the best head of a layer"])
def test_shifted_attention_aligns_better(number: str) -> None:
    claim = f"Shifted attention aligns better than normal attention: {number}"

    def found(*rates: tuple[float, float]) -> Finding:
        return only_finding(
            claim,
            *(
                made_up_record(
                    seed=n, alignments={"RWTH": made_up_alignment(normal, shifted=shifted)}
                )
                for n, (normal, shifted) in enumerate(rates, 1)
            ),
        )

    better = found((0.6, 0.5))
    assert (better.verdict, better.n) == ("holds", 1)
    assert better.setting == "Multi30k en-de, tiny, RWTH links"
    assert better.measured == "50.0 against 60.0: -10.0 (-11.4 to -8.6) points of AER"
    assert found((0.5, 0.6)).verdict == "does not hold"
    assert found((0.6, 0.595)).verdict == "not decidable"
    # Of several seeds it is their differences that count, not how far the seeds lie apart.
    assert found((0.9, 0.8), (0.6, 0.505), (0.3, 0.2)).verdict == "holds"
    assert found((0.6, 0.5), (0.6, 0.7)).verdict == "not decidable"
