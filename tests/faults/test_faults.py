"""Broken inputs and wrong uses: each is one clear line, and leaves everything as it was."""

from pathlib import Path

import pytest
from all_rows import TABLES
from fault_rows import Row, check, run

pytestmark = pytest.mark.xdist_group("faults")

ROWS = [
    pytest.param(fault, id=f"{table}: {fault.broken}")
    for table, rows in TABLES.items()
    for fault in rows
]


def test_there_are_many() -> None:
    assert len(ROWS) >= 200
    assert len({param.id for param in ROWS}) == len(ROWS), "each has a name of its own"


@pytest.mark.parametrize("fault", ROWS)
def test_fault(fault: Row, folder: Path) -> None:
    check(fault, folder)


@pytest.mark.parametrize(
    "command",
    [
        "translate model --input text.en --output out.de",
        "train --resume --out run",
        "average run --out out",
        "evaluate --hypothesis text.en --reference text.de",
        "analyze model --source text.en --target text.de --gold gold --no-translate --out report",
        "score model --source text.en --target text.de --output scores.tsv",
        "filter model --source text.en --target text.de --keep 0.5 --output out",
    ],
)
def test_without_a_fault_it_works(command: str, folder: Path) -> None:
    """So that each row fails for what is broken, and not for the folder that it starts from."""
    assert run(command.split(), folder).code == 0
