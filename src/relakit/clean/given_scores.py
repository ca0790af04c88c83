"""Whether a given table of scores belongs to this text and these models. No torch here."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from relakit.clean.clean_sample import priorities
from relakit.clean.columns import header_line
from relakit.clean.score import SCORED_WITH, ScoreJob
from relakit.clean.score_table import NUMBERS, SCORE_AGAIN, ScoreTable
from relakit.data.parallel_files import NumberedPair, ParallelFiles
from relakit.shards.cutting import Shard
from relakit.shards.engines import Engine
from relakit.shards.ledger import differences
from relakit.shards.receipt import TEXT, Receipt, receipt_path

ROWS: Final = 32
"""How many rows of a table are scored again."""
NEARLY: Final = 1e-3
"""How far a number may be from another processor's, relative to its size if that is above 1."""
MOST_OTHER: Final = 0.1
"""Share of rows that may differ: by rounding, a weight of 0 may not be 0 on another processor."""


@dataclass(frozen=True)
class _Row:
    priority: int
    pair: NumberedPair
    cells: Mapping[str, float | str | None]


def scored_with(table: Path) -> Mapping[str, Any] | None:
    """What the scores of a table depend on besides the pairs; None if no receipt says so."""
    receipt = Receipt.read(table)
    if receipt is None:
        return None
    return {name: receipt.facts.get(name) for name in SCORED_WITH}


def check_is_of_text(table: Path, digest: str, files: ParallelFiles) -> None:
    """Raise ValueError if a receipt says that a table is about other pairs.

    ``digest``: the digest of the pairs at hand.
    """
    receipt = Receipt.read(table)
    before = None if receipt is None else receipt.facts.get(TEXT)
    if before not in (None, digest):
        names = " and ".join(map(str, files.paths))
        raise ValueError(
            f"{table} has scores of another text than that of {names}, as its receipt "
            f"{receipt_path(table).name} tells; {SCORE_AGAIN}"
        )


def check_made_by(table: ScoreTable, files: ParallelFiles, job: ScoreJob, engine: Engine) -> None:
    """Raise ValueError unless a table was made by the models of a job.

    Its receipt says so; without one, some of its rows are scored again.

    Args:
        table: the table that was given.
        files: the pairs that it is about.
        job: scores them, if need be.
        engine: what does the scoring.
    """
    facts = scored_with(table.path)
    if facts is None:
        return _check_rows(table, _some_rows(table, files), job, engine)
    other = differences(facts, job.facts)
    if other is not None:
        raise _made_otherwise(table, other)


def _check_rows(table: ScoreTable, rows: Sequence[_Row], job: ScoreJob, engine: Engine) -> None:
    found = _score(rows, job, engine)
    for name in sorted(NUMBERS, key=lambda name: name != "cross_entropy"):
        other = [
            (row, now[name])
            for row, now in zip(rows, found, strict=True)
            if _differ(row.cells.get(name), now[name])
        ]
        if len(other) > MOST_OTHER * len(rows):
            row, now = other[0]
            raise _made_otherwise(
                table,
                f"it has the {name} {row.cells[name]:.4f} for {job.job.files.unit} "
                f"{row.pair.number:,}, MODEL says {'nothing' if now is None else f'{now:.4f}'}",
            )


def _made_otherwise(table: ScoreTable, how: str) -> ValueError:
    return ValueError(
        f"{table.path} was not made by this MODEL: {how}; give MODEL, --reverse, --languages-from "
        "and --max-tokens as then, score the text again, or leave --scores out"
    )


def _differ(before: float | str | None, now: float | None) -> bool:
    if not isinstance(before, float):
        return False  # nothing was filled in
    return now is None or abs(now - before) > NEARLY * max(1.0, abs(before))


def _some_rows(table: ScoreTable, files: ParallelFiles) -> list[_Row]:
    """Rows with scores from anywhere in the table, in order."""
    rows: list[_Row] = []
    for pairs, block in table.blocks_with_pairs(files):
        order = priorities(block.lines, seed=0)
        for place in np.flatnonzero(~block.is_blank).tolist():
            if len(rows) < ROWS or order[place] < rows[-1].priority:
                row = _Row(int(order[place]), pairs[place], block.cells(place))
                rows = sorted([*rows, row], key=lambda row: row.priority)[:ROWS]
    return sorted(rows, key=lambda row: row.pair.number)


def _score(rows: Sequence[_Row], job: ScoreJob, engine: Engine) -> list[dict[str, float | None]]:
    """The numbers that the same pairs get now."""
    names = header_line().rstrip("\n").split("\t")
    shard = Shard(0, [row.pair for row in rows])
    work = engine.run(job.job.work, iter([shard]), job.job.files.unit, lambda count: None)
    with closing(work) as done:
        lines = [line for _, result in done for line in result.content.decode().split("\n")[:-1]]
    cells = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    return [{name: float(row[name]) if row[name] else None for name in NUMBERS} for row in cells]
