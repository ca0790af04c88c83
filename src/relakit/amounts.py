"""Amounts as people read them."""

from typing import Final

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_bytes(count: float) -> str:
    """A number of bytes, in memory or on a disk: ``1.5 GiB``."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    digits = 0 if unit == 0 or count >= 100 else 1
    return f"{count:,.{digits}f} {_UNITS[unit]}"


def number_with_noun(number: int, noun: str) -> str:
    """``1 thread``, ``2,000 threads``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
