"""Names of the metrics, and defaults of comparisons; without sacreBLEU, which is slow to load."""

from typing import Final, Literal, TypeAlias

MetricName: TypeAlias = Literal["BLEU", "chrF", "tokenised BLEU"]

SAMPLES: Final = 1000
"""Draws of the test set in a comparison."""
COMPARED_BY: Final[tuple[MetricName, ...]] = ("BLEU", "chrF")
