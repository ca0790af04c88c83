"""Defaults that help texts name; light."""

from typing import Final

TITLE: Final = "Attention report"
MAX_BYTES: Final = 16_000_000
"""Of report.html: with more, fewer sentences can be looked at."""
