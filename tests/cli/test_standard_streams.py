"""Standard input and output where a file could be."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from relakit.cli.standard_streams import file_or_stream, shows_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_dash_is_a_stream() -> None:
    assert file_or_stream(None) is file_or_stream(Path("-")) is None
    assert file_or_stream(Path("text")) == Path("text")


def test_no_bar_within_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, file = Console(file=Terminal()), Console(file=io.StringIO())
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert not shows_bar(terminal, None)
    assert shows_bar(terminal, Path("links"))
    assert not shows_bar(file, Path("links"))
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert shows_bar(terminal, None)
    monkeypatch.setattr(sys, "stdout", None)
    assert shows_bar(terminal, None)
