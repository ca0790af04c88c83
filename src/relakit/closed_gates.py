"""When a gate of a norm is closed, and when a layer has too many closed gates."""

from typing import Final

CLOSED_BELOW: Final = 0.01
"""A gate is closed if its sigmoid is below this."""
MANY_CLOSED: Final = 0.2
"""A layer with a larger share of closed gates deserves a warning."""


def too_many_closed(share: float) -> bool:
    """Whether a layer's share of closed gates deserves a warning."""
    return share > MANY_CLOSED
