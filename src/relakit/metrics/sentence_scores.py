"""Scores of single sentences, for finding the good and the bad ones. Computed by sacreBLEU."""

from relakit.metrics.bleu import make_metric


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF2 of one translation, from 0 to 100; nothing in place of nothing is perfect."""
    if not hypothesis.strip() and not reference.strip():
        return 100.0
    return float(make_metric("chrF").sentence_score(hypothesis, [reference]).score)
