"""Numbers, heads and differences, worded for sentences."""

from collections.abc import Sequence
from typing import Final

from relakit.analysis.results import HeadValues

MOST_NAMED: Final = 3
"""How many heads one sentence lists at most"""


def signed(value: float, digits: int) -> str:
    """The number with its sign, or with both signs if it rounds to 0."""
    text = f"{abs(value):.{digits}f}"
    sign = "\N{PLUS-MINUS SIGN}" if not float(text) else "+" if value > 0 else "\N{MINUS SIGN}"
    return f"{sign}{text}"


def heads_with(values: HeadValues) -> list[tuple[int, int, float]]:
    """Layer, head and value of each head that has a value."""
    return [
        (layer, head, value)
        for layer, of_layer in enumerate(values)
        for head, value in enumerate(of_layer)
        if value is not None
    ]


def places(heads: Sequence[tuple[int, int, float]]) -> str:
    """The first few of these heads, each with its share."""
    named = [f"{place(layer, head)} ({percent(value)})" for layer, head, value in heads]
    more = len(named) - MOST_NAMED
    return "; ".join([*named[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def place(layer: int, head: int) -> str:
    """A head's layer and number, counted from 1 as people do."""
    return f"layer {layer + 1}, head {head + 1}"


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
