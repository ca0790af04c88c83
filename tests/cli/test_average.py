"""`relakit average`; which checkpoints it takes is tested in tests/train."""

from pathlib import Path

import pytest
from small_recipe import RECIPE
from typer.testing import CliRunner

import relakit
from relakit.cli.main import app


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("average")
    (folder / "small.toml").write_text(f"{RECIPE}bleu = false\n", encoding="utf-8")
    arguments = ["train", str(folder / "small.toml"), "--out", str(folder / "run")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return folder / "run"


def average(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["average", *map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, f"{type(result.exception).__name__}: {result.exception}"
    return result.exit_code, result.output + result.stderr


def test_a_model_to_translate_with(run: Path, tmp_path: Path) -> None:
    status, text = average(run, "--last", 1, "--out", tmp_path / "model")
    assert status == 0, text
    assert "averaged: update-0000004\n" in text
    assert f"model: {tmp_path / 'model'}" in text
    assert relakit.load(tmp_path / "model").translate(["The dog sleeps."], max_length=3)


def test_named_checkpoints(run: Path, tmp_path: Path) -> None:
    status, text = average(run, "2", "update-0000004", "--out", tmp_path / "model")
    assert (status, "averaged: update-0000002, update-0000004\n" in text) == (0, True)
    status, text = average(run, "2", "--out", tmp_path / "model")
    assert (status, "--force" in text) == (1, True)
    assert average(run, "2", "--out", tmp_path / "model", "--force")[0] == 0


def test_the_run_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run)
    status, text = average(run, "--out", tmp_path / "link", "--force")
    assert (status, "is also RUN" in text) == (1, True)
    assert (run / "recipe.json").exists()
