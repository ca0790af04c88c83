"""Scores of single sentences, to find the good and the bad ones. Computed by sacreBLEU."""

from relakit.metrics.bleu import make_metric


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF2 of one translation, from 0 to 100; an empty one for an empty reference is perfect."""
    if not hypothesis.strip() and not reference.strip():
        return 100.0
    return float(make_metric("chrF").sentence_score(hypothesis, [reference]).score)
