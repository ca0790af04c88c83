"""Claims about the ranking of pairs, on made-up areas."""

import pytest
from made_up_records import (
    claim_about,
    evidence_of,
    made_up_ranking,
    made_up_record,
    only_finding,
)

from relakit.reproduce.claims import Verdict


@pytest.mark.parametrize(
    ("claim", "labels"),
    [("planted noise", "planted noise"), ("judged by people", "ParaCrawl labels")],
)
@pytest.mark.parametrize(
    ("areas", "expected"),
    [
        ((0.7, 0.6), "holds"),
        ((0.3, 0.4), "does not hold"),
        ((0.7, 0.3), "not decidable"),
        ((0.7, 0.52), "not decidable"),
    ],
)
def test_verdicts(claim: str, labels: str, areas: tuple[float, ...], expected: Verdict) -> None:
    records = [
        made_up_record(seed=n, rankings={labels: made_up_ranking(area)})
        for n, area in enumerate(areas, 1)
    ]
    finding = only_finding(claim, *records)
    assert (finding.verdict, finding.n) == (expected, 2)
    assert "by cross-entropy 0.95 ± 0.00" in finding.measured
    shares = (
        "good are 80 ± 0% of the tenth with the lowest null rates, 20 ± 0% of that with the "
        "highest (50 ± 0% of all)"
    )
    # Pairs that people have labelled were not drawn at random.
    assert (shares in finding.measured) == (claim == "planted noise")


def test_noise_that_the_paper_does_not_speak_of_has_no_verdict() -> None:
    ranking = made_up_ranking(0.9, bad=("inserted", "truncated", "copied"))
    claim = claim_about("planted noise")
    findings = claim.find(evidence_of(made_up_record(rankings={"planted noise": ranking})))
    assert [(f.setting.rpartition(": ")[2], f.verdict) for f in findings] == [
        ("copied", "holds"),
        ("inserted", "holds"),
        ("truncated (not claimed by the paper)", None),
    ]


def test_a_kind_that_one_seed_does_not_have() -> None:
    records = [
        made_up_record(seed=n, rankings={"planted noise": made_up_ranking(0.9, bad=kinds)})
        for n, kinds in enumerate((("inserted",), ("inserted", "shuffled")), 1)
    ]
    findings = claim_about("planted noise").find(evidence_of(*records))
    assert [(f.setting.rpartition(": ")[2], f.n) for f in findings] == [
        ("inserted", 2),
        ("shuffled", 1),
    ]
