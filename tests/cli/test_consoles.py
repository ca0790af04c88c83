"""What commands print is printed as it is."""

import pytest
from rich.table import Table

from relakit.cli.consoles import messages_console, results_console

TEXT = "runs/[red]mine[/red] :smile: 12.5"


def test_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    results_console().print(TEXT)
    messages_console().print(TEXT)
    printed = capsys.readouterr()
    assert printed.out == printed.err == f"{TEXT}\n"


def test_cells_too(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table()
    table.add_column("model")
    table.add_row(TEXT)
    results_console().print(table)
    assert TEXT in capsys.readouterr().out
