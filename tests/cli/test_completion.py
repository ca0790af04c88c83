"""What a shell is told to offer, and how it is told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from relakit.cli import completion
from relakit.cli.completion import complete_model, complete_recipe
from relakit.cli.main import app
from relakit.model.description import WEIGHTS_FILE
from relakit.recipes import recipe_names


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/first/model", "runs/second/model", "rules", "models/en-de", ".runs/model"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / WEIGHTS_FILE).touch()
    (tmp_path / "rulers").mkdir()
    (tmp_path / "own.toml").touch()
    (tmp_path / "models" / "big.toml").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", ["models/en-de", "rules", "runs/first/model", "runs/second/model"]),
        ("ru", ["rules", "runs/first/model", "runs/second/model"]),
        ("runs/", ["runs/first/model", "runs/second/model"]),
        ("runs/f", ["runs/first/model"]),
        ("./m", ["./models/en-de"]),
        (".r", [".runs/model"]),
        ("nowhere/x", []),
    ],
)
def test_models(place: Path, typed: str, expected: list[str]) -> None:
    assert complete_model(typed) == expected
    if typed and not typed.startswith("."):
        assert complete_model(f"{place}/{typed}") == [f"{place}/{path}" for path in expected]


def test_models_at_home(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert complete_model("~/mo") == ["~/models/en-de"]
    assert complete_model("~nobody-of-that-name/mo") == []


def test_a_large_disk_is_not_searched(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MOST_FOLDERS", 3)
    assert complete_model("") == ["rules"]


def test_recipes(place: Path) -> None:
    assert complete_recipe("wmt14") == ["wmt14-en-de", "wmt14-en-fr"]
    assert complete_recipe("o") == ["own.toml"]
    assert complete_recipe("models/") == ["models/big.toml"]
    assert complete_recipe("") == [*recipe_names(), "own.toml"]
    assert complete_recipe("nowhere/") == []


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("relakit tran", ["translate"]),
        ("relakit translate runs/f", ["runs/first/model"]),
        ("relakit translate rules --model mo", ["models/en-de"]),
        ("relakit evaluate mo", ["models/en-de"]),
        ("relakit train multi30k-s", ["multi30k-small"]),
        ("relakit translate rules --top", ["--top-k", "--top-p"]),
    ],
)
def test_bash_asks(words: str, expected: list[str]) -> None:
    asked = {
        "_RELAKIT_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    result = CliRunner().invoke(app, prog_name="relakit", env=asked)
    assert (result.exit_code, result.output.split()) == (0, expected)


def test_the_script_for_a_shell() -> None:
    """In a process of its own: typer asks which shell it was started from, unless told not to."""
    code = "from relakit.cli.main import main; main()"
    command = [sys.executable, "-c", code, "--show-completion", "bash"]
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert "complete -o default -F" in result.stdout
