"""Defaults that help texts mention; quick to import."""

from typing import Final

TITLE: Final = "Attention report"
MAX_BYTES: Final = 16_000_000
"""The largest size of report.html: to stay below it, the page shows fewer sentences."""
