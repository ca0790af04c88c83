"""Claims about ranking sentence pairs by their null rate."""

from typing import Final

from relakit.reproduce.claims import Claim, Find, Finding, all_of, higher
from relakit.reproduce.evidence import Evidence, Setting
from relakit.reproduce.rows import OURS
from relakit.reproduce.statistics import Difference, Seeds

CHANCE: Final = 0.5


def _ranks_pairs(labels: str) -> Find:
    """The area under the ROC curve should be above chance, in the interval of every seed."""

    def find(evidence: Evidence) -> list[Finding]:
        return [
            finding
            for setting in evidence.settings()
            if (finding := _finding(evidence, setting, labels)) is not None
        ]

    return find


def _finding(evidence: Evidence, setting: Setting, labels: str) -> Finding | None:
    runs = evidence.runs(setting, OURS)
    areas = [run.rankings[labels].overall for run in runs if labels in run.rankings]
    if not areas:
        return None
    null = [area.null_rate for area in areas]
    verdicts = [
        higher(Difference(a.value - CHANCE, a.low - CHANCE, a.high - CHANCE, (1, 1))) for a in null
    ]
    low, high = min(a.low for a in null), max(a.high for a in null)
    head = Seeds(tuple(area.best_head.auc.value for area in areas))
    entropy = Seeds(tuple(area.cross_entropy.value for area in areas))
    measured = (
        f"AUC {Seeds(tuple(a.value for a in null)).text(2)} ({low:.2f} to {high:.2f}); best head, "
        f"chosen on other pairs, {head.text(2)}; by cross-entropy {entropy.text(2)}"
    )
    return Finding(setting.label, measured, len(areas), all_of(verdicts))


RANKING_CLAIMS: Final = (
    Claim(
        "The null rate separates good pairs from bad ones: planted noise",
        "of pairs with low null rates about 95% were correct, with high ones 1%",
        _ranks_pairs("planted noise"),
    ),
    Claim(
        "The null rate separates good pairs from bad ones: crawled pairs judged by people",
        "as above",
        _ranks_pairs("ParaCrawl labels"),
    ),
)
