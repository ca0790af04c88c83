"""The page's part about the paper's claims: how often each verdict was reached, and on what."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Final, get_args

from relakit.reproduce.alignment_claims import ALIGNMENT_CLAIMS
from relakit.reproduce.attention_claims import ATTENTION_CLAIMS
from relakit.reproduce.claims import Claim, Finding, Verdict
from relakit.reproduce.evidence import Evidence
from relakit.reproduce.markdown import table
from relakit.reproduce.ranking_claims import RANKING_CLAIMS
from relakit.reproduce.speed import SPEED_CLAIMS
from relakit.reproduce.translation_claims import MARGIN, TRANSLATION_CLAIMS

CLAIMS: Final = (
    *TRANSLATION_CLAIMS,
    *SPEED_CLAIMS,
    *ALIGNMENT_CLAIMS,
    *ATTENTION_CLAIMS,
    *RANKING_CLAIMS,
)
_HOW_JUDGED: Final = (
    "A verdict follows from an interval, never from a mean alone: over seeds by Welch's t test, or "
    "over the sentences of one model. If the interval includes both answers, the claim is not "
    "decidable. Nor is it with one seed (n = 1), except for speed, which is measured in rounds, "
    "and for intervals over sentences, which speak of these models only and not of others that "
    "might be trained. "
    f"“As good as” allows {MARGIN:g} BLEU: in the paper's Table 1, comparable scores differ by "
    "less, losses by more. "
    "A claim that each run either confirms or refutes holds if there are two runs or more and all "
    "confirm it."
)


def claims_part(evidence: Evidence) -> str:
    """Every claim with its verdicts, then the collapsed details of what was measured for it."""
    found = [(claim, claim.find(evidence)) for claim in CLAIMS]
    parts = [
        "## Claims",
        _HOW_JUDGED,
        "How often each verdict was reached. A claim is judged on every corpus, and against every "
        "baseline and gold set it is about:",
        _summary(found),
        "What was measured for each claim:",
        *(_details(claim, findings) for claim, findings in found),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(found: Sequence[tuple[Claim, Sequence[Finding]]]) -> str:
    """One row per claim, so that a claim with many findings does not count as many."""
    verdicts = get_args(Verdict)
    rows = []
    for claim, findings in found:
        counts = Counter(finding.verdict for finding in findings)
        rows.append([claim.text, *(str(counts[one] or "") for one in verdicts)])
    return table(["claim", *verdicts], rows)


def _details(claim: Claim, findings: Sequence[Finding]) -> str:
    """The collapsed details of a claim: what the paper says, and one row per finding."""
    headings = ["where", "measured here", "n", "verdict"]
    rows = [_row(finding) for finding in findings]
    parts = [
        f"<details><summary>{escape(claim.text, quote=False)}</summary>",
        f"The paper: {claim.paper}.",
        table(headings, rows, left=len(headings)) if rows else "Here: not measured yet.",
        "</details>",
    ]
    return "\n\n".join(parts)


def _row(finding: Finding) -> list[str]:
    verdict = "" if finding.verdict is None else f"**{finding.verdict}**"
    return [finding.setting, finding.measured, _n_text(finding.n), verdict]


def _n_text(n: int | tuple[int, int]) -> str:
    """``3``, or ``3 / 1`` for two sides with different numbers of runs."""
    sides = {n} if isinstance(n, int) else dict.fromkeys(n)
    return " / ".join(map(str, sides))
