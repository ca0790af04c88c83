"""What is counted while pairs are scored, by names that shards add up. No torch here."""

from typing import Final

BLANK: Final = "blank"
"""Pairs with a blank side."""
CROPPED: Final = "cropped"
"""Pairs that were scored by their beginning."""
