"""Running `relakit translate` without a new process, which takes seconds to import torch."""

import io
import sys

import pytest
from translate_runs import Result, Run

from relakit.cli import main as cli


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the command in this process, with ``text`` as its standard input."""

    def run(*arguments: object, text: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["relakit", "translate", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return Result(int(caught.value.code or 0), *capsysbinary.readouterr())

    return run
