"""The command line's own options, and how errors reach the user."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from relakit.cli import main as cli

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def run_relakit(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["relakit", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_version_is_the_one_in_pyproject(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = re.search(r'^version = "(.+)"$', PYPROJECT.read_text(), re.MULTILINE)
    assert declared is not None
    assert run_relakit(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"relakit {declared[1]}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_the_subcommands(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_relakit(monkeypatch, *arguments) == 0
    printed = capsys.readouterr().out
    assert "doctor" in printed
    assert "bench" in printed


def test_without_arguments_it_shows_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_relakit(monkeypatch)
    printed = capsys.readouterr()
    assert "doctor" in printed.out + printed.err


@pytest.mark.parametrize("arguments", [["docter"], ["doctor", "--yaml"]])
def test_wrong_usage_names_the_culprit(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_relakit(monkeypatch, *arguments) == 2
    assert arguments[-1] in capsys.readouterr().err


@pytest.mark.parametrize("error", [ValueError("bad value 3"), OSError("no such file: x.txt")])
class TestUserErrors:
    def test_end_in_one_line(
        self,
        error: Exception,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.delenv("RELAKIT_DEBUG", raising=False)
        monkeypatch.setattr(cli, "app", _raiser(error))
        assert run_relakit(monkeypatch, "doctor") == 1
        assert capsys.readouterr().err == f"relakit: error: {error}\n"

    def test_keep_their_traceback_for_debugging(
        self, error: Exception, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RELAKIT_DEBUG", "1")
        monkeypatch.setattr(cli, "app", _raiser(error))
        with pytest.raises(type(error), match=str(error)):
            cli.main()


def test_a_bug_is_not_dressed_up_as_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "app", _raiser(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_the_commands_do_not_load_torch() -> None:
    """Torch takes seconds to import, and doctor has to report one that is broken."""
    # Only relakit.cli is under test here: the package around it is replaced by an empty one.
    code = """
import importlib.util, sys, types
relakit = types.ModuleType("relakit")
relakit.__path__ = importlib.util.find_spec("relakit").submodule_search_locations
sys.modules["relakit"] = relakit
import relakit.cli.main
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _raiser(error: Exception):
    def app() -> None:
        raise error

    return app


def test_errors_of_the_system_have_no_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", lambda: Path("/no/such/file").read_bytes())
    assert run_relakit(monkeypatch, "doctor") == 1
    assert capsys.readouterr().err == ("relakit: error: /no/such/file: no such file or directory\n")


def test_standard_output_that_is_full(tmp_path: Path) -> None:
    """In a process of its own: Python has a word to say when it ends."""
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        output = full.open("wb")
    except OSError as error:
        pytest.skip(f"devices cannot be made here: {error.strerror}")
    code = "from relakit.cli.main import main; main()"
    with output:
        done = subprocess.run(
            [sys.executable, "-c", code, "--version"],
            stdout=output, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("relakit: error: standard output cannot be written: no space is")
    assert done.stderr.count("\n") == 1
