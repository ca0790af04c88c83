"""`relakit demo`, much smaller than users see it."""

import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from relakit.cli.main import app
from relakit.report import report_folder
from relakit.train.recipe_file import load_recipe
from relakit.train.run_log import LogFile, UpdateEntry

SMALL = (
    "data.generated.train=400",
    "data.generated.valid=20",
    "data.generated.test=30",
    "data.vocab_size=400",
    "model.dim=16",
    "model.heads=2",
    "training.updates=5",
    "training.batch_tokens=300",
    "training.threads=1",
)


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds, and are tested elsewhere."""
    monkeypatch.setattr(report_folder, "why_no_figures", lambda: "not now")


def run(*arguments: str) -> tuple[int, str]:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    result = CliRunner().invoke(app, ["demo", *arguments, *settings], env={"COLUMNS": "160"})
    return result.exit_code, result.output + result.stderr


def test_leaves_a_model_and_shows_it(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    status, text = run("--out", str(out))
    assert status == 0, text
    assert "Sentences that the model has never seen" in text
    assert text.count("English") >= 6
    assert "On 30 held-out sentences" in text
    assert "which was best on the validation set" in text
    for name in ("BLEU", "tok:13a", "alignment error rate", "target tokens/s"):
        assert name in text
    assert f"relakit translate {out / 'model'}" in text
    assert (out / "model" / "config.json").is_file()
    assert f"open {out / 'report' / 'report.html'} in a browser" in text
    assert (out / "report" / "report.html").is_file()

    status, text = run("--out", str(out))
    assert status == 0, text
    assert "holds a finished demo" in text
    assert "alignment error rate" in text

    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--attention", "softmax"])
    assert "holds a demo with other settings" in str(result.exception)

    status, text = run("--out", str(out), "--again", "--attention", "softmax")
    assert status == 0, text
    assert '"softmax"' in (out / "model" / "config.json").read_text(encoding="utf-8")


def test_again_removes_nothing_but_a_demo(tmp_path: Path) -> None:
    other = {"data": {"folder": "corpus"}, "training": {"epochs": 1}, "description": "mine"}
    (tmp_path / "recipe.json").write_text(json.dumps(other), encoding="utf-8")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--again"])
    assert "holds a run that is not a demo" in str(result.exception)
    assert (tmp_path / "recipe.json").exists()


def test_is_about_the_generated_corpus(tmp_path: Path) -> None:
    settings = ["--set", "data.folder=somewhere", "--out", str(tmp_path / "demo")]
    result = CliRunner().invoke(app, ["demo", *settings])
    assert "the demo needs its generated corpus" in str(result.exception)


def test_is_about_one_direction(tmp_path: Path) -> None:
    settings = ["--set", "data.reverse=true", "--out", str(tmp_path / "demo")]
    result = CliRunner().invoke(app, ["demo", *settings])
    assert "the demo translates from English to German" in str(result.exception)


@pytest.mark.parametrize("problem", ["training.threads=1000", "a file of mine"])
def test_again_checks_before_it_removes(problem: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text(load_recipe("demo").model_dump_json(), encoding="utf-8")
    (tmp_path / "model").mkdir()
    settings = ["--set", problem] if "=" in problem else []
    if not settings:
        (tmp_path / "model" / "mine").touch()
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--again", *settings])
    assert result.exit_code != 0
    assert sorted(tmp_path.rglob("*")) == before


def test_one_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves a model, which is not taken for that of a finished demo."""
    out = tmp_path / "demo"
    log = LogFile.update

    def interrupted(self: LogFile, entry: UpdateEntry) -> None:
        log(self, entry)
        if entry.update == 2:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "update", interrupted)
        status, text = run("--out", str(out))
    assert status == 143, text
    assert (out / "model" / "config.json").is_file()
    status, text = run("--out", str(out))
    assert status == 0, text
    assert "Going on after update 2." in text
    assert "On 30 held-out sentences" in text
