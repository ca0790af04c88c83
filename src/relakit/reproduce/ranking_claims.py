"""Claims about ranking sentence pairs by their null rate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from relakit.analysis.ranking import QualityRanking, RankingAreas
from relakit.reproduce.analyses import PEOPLE, PLANTED
from relakit.reproduce.claims import Claim, Finding, higher
from relakit.reproduce.evidence import Evidence, Setting
from relakit.reproduce.rows import OURS
from relakit.reproduce.statistics import Seeds, over_seeds

CHANCE: Final = 0.5


UNCLAIMED: Final = ("truncated",)
"""Bad pairs that the paper says nothing about: missing text leaves no query without a source."""


def _ranks_planted(evidence: Evidence) -> list[Finding]:
    """One finding for each kind of noise."""
    findings = []
    for setting in evidence.settings():
        rankings = _rankings(evidence, setting, PLANTED)
        for kind in sorted({kind for ranking in rankings for kind in ranking.by_label}):
            areas = [r.by_label[kind] for r in rankings if kind in r.by_label]
            finding = _finding(f"{setting.label}: {kind}", areas)
            if kind in UNCLAIMED:
                where = f"{finding.setting} (not claimed by the paper)"
                finding = replace(finding, setting=where, verdict=None)
            findings.append(finding)
    return findings


def _ranks_judged(evidence: Evidence) -> list[Finding]:
    found = [(setting, _rankings(evidence, setting, PEOPLE)) for setting in evidence.settings()]
    return [
        # The sample was drawn by another score, so it says nothing about shares of good pairs.
        _finding(setting.label, [ranking.overall for ranking in rankings], with_shares=False)
        for setting, rankings in found
        if rankings
    ]


def _rankings(evidence: Evidence, setting: Setting, labels: str) -> list[QualityRanking]:
    runs = evidence.runs(setting, OURS)
    return [run.rankings[labels] for run in runs if labels in run.rankings]


def _finding(where: str, areas: Sequence[RankingAreas], *, with_shares: bool = True) -> Finding:
    """The area should be above chance, in the interval of all seeds together."""
    null = [area.null_rate for area in areas]
    mean = Seeds(tuple(one.value for one in null))
    all_seeds = over_seeds(null)
    head = Seeds(tuple(area.best_head.auc.value for area in areas))
    entropy = Seeds(tuple(area.cross_entropy.value for area in areas))
    measured = [f"AUC {mean.text(2)} ({all_seeds.low:.2f} to {all_seeds.high:.2f})"]
    if with_shares:
        measured.append(_shares_text(areas))
    measured.append(f"best head, chosen on other pairs, AUC {head.text(2)}")
    measured.append(f"by cross-entropy {entropy.text(2)}")
    return Finding(where, "; ".join(measured), mean.n, higher(all_seeds.minus(CHANCE)))


def _shares_text(areas: Sequence[RankingAreas]) -> str:
    lowest, highest, all_ = (
        Seeds(tuple(100 * getattr(area.good_share, where) for area in areas)).text(0)
        for where in ("lowest", "highest", "all")
    )
    return (
        f"good are {lowest}% of the tenth with the lowest null rates, {highest}% of that with the "
        f"highest ({all_}% of all)"
    )


_REPORTED: Final = "of pairs with low null rates about 95% were correct, with high ones 1%"
RANKING_CLAIMS: Final = (
    Claim(
        "Bad pairs have higher null rates than good ones (AUC above 0.5): planted noise",
        _REPORTED,
        _ranks_planted,
    ),
    Claim(
        "Bad pairs have higher null rates than good ones (AUC above 0.5): judged by people",
        _REPORTED,
        _ranks_judged,
    ),
)
