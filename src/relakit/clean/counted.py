"""What is counted while pairs are scored: names whose counts shards add up. No torch here."""

from typing import Final

BLANK: Final = "blank"
"""Pairs with a blank side."""
CROPPED: Final = "cropped"
"""Pairs of which only the beginning was scored."""
