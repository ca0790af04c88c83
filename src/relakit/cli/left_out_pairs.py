"""What `relakit analyze` says about pairs that are too long."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from relakit.amounts import number_with_noun

if TYPE_CHECKING:
    from relakit.analysis import ShortPairs

REPORTED: Final = 5
"""How many pairs are named by their line numbers."""


def report_left_out(pairs: "ShortPairs", source: Path, too_long: str) -> None:
    """Say on stderr which pairs are too long; ValueError if there must be none."""
    if not pairs.left_out:
        return
    first = ", ".join(f"{number:,}" for number in pairs.left_out[:REPORTED])
    more = len(pairs.left_out) - REPORTED
    lines = "line" if len(pairs.left_out) == 1 else "lines"
    problem = (
        f"{source}, {lines} {first}{f' and {more:,} more' if more > 0 else ''}: more than "
        f"{number_with_noun(pairs.max_tokens, 'token')} on a side"
    )
    if too_long == "error":
        raise ValueError(
            f"{problem}; leave them out with --too-long skip, or allow more with --max-tokens"
        )
    typer.echo(f"relakit: {problem}; left out (--max-tokens)", err=True)


def described_left_out(pairs: "ShortPairs") -> dict[str, str]:
    """How many pairs were left out and why, for the report."""
    if not pairs.left_out:
        return {}
    count = number_with_noun(len(pairs.left_out), "pair")
    return {"left out": f"{count} with more than {pairs.max_tokens:,} tokens on a side"}
