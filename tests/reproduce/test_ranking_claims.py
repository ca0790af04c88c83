"""Claims about the ranking of pairs, on made-up areas."""

import pytest
from made_up_records import made_up_ranking, made_up_record, only_finding

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
