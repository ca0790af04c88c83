"""The names of the metrics, and how outputs are compared; without sacreBLEU, which takes long."""

from typing import Final, Literal, TypeAlias

MetricName: TypeAlias = Literal["BLEU", "chrF", "tokenised BLEU"]

SAMPLES: Final = 1000
"""Draws of the test set in a comparison."""
COMPARED_BY: Final[tuple[MetricName, ...]] = ("BLEU", "chrF")
