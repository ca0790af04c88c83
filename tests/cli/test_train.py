"""`relakit train` on the command line; what a run does is tested in tests/train."""

import json
from pathlib import Path

import pytest
from small_recipe import RECIPE
from typer.testing import CliRunner

from relakit.cli.main import app


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["train", *arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, f"{type(result.exception).__name__}: {result.exception}"
    return result.exit_code, result.output + result.stderr


def test_the_other_direction(recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    status, text = run(recipe, "--out", str(out), "--reverse", "--set", "validation.bleu=false")
    assert status == 0, text
    about = json.loads((out / "model" / "config.json").read_text())
    assert about["languages"] == {"source": "de", "target": "en"}
    corpus = json.loads((out / "corpus" / "corpus.json").read_text())
    assert corpus["settings"]["source_language"] == "en"
    other = tmp_path / "other"  # a corpus that is there already serves both directions
    prepared = ["--set", f"data.prepared={out / 'corpus'}", "--set", "validation.bleu=false"]
    status, text = run(recipe, "--out", str(other), *prepared)
    assert status == 0, text
    about = json.loads((other / "model" / "config.json").read_text())
    assert about["languages"] == {"source": "en", "target": "de"}
    status, text = run(recipe, "--out", str(other), "--resume", "--reverse", *prepared)
    assert status == 1
    assert "data.reverse = False, the recipe says True" in text
    status, text = run("--resume", "--out", str(other), "--reverse")
    assert status == 1
    assert "data.reverse = False, the recipe says True" in text
    assert run("--resume", "--out", str(out), "--reverse")[0] == 0  # as it was


def test_from_recipe_to_model(recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    status, text = run(recipe, "--out", str(out), "--set", "training.updates=5")
    assert status == 0, text
    assert "finished: all 5 updates are done" in text
    assert "BLEU" in text
    assert f"model: {out / 'model'}" in text
    assert sorted(path.name for path in out.iterdir()) == [
        "checkpoints", "corpus", "log.jsonl", "model", "recipe.json", "result.json",
        "tensorboard", "text", "text.json",
    ]  # fmt: skip
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["updates"] == 5
    status, text = run(recipe, "--out", str(out))
    assert (status, "holds a run already" in text) == (1, True)


def test_a_failed_run_has_its_own_status(recipe: str, tmp_path: Path) -> None:
    status, text = run(
        recipe, "--out", str(tmp_path / "run"),
        "--set", "training.learning_rate_factor=1e30", "--set", "training.warmup=1",
    )  # fmt: skip
    assert status == 3, text
    assert "failed: the" in text
    assert "is not finite any more" in text
    assert "result.json" in text


def test_list() -> None:
    status, text = run("--list")
    assert status == 0
    for name in ("demo", "multi30k-small", "multi30k-tiny", "wmt14-en-de", "wmt18-zh-en"):
        assert name in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a recipe"),
        (["--resume"], "name a recipe"),
        (["--resume", "--out", "x", "--set", "training.epochs=1"], "x has no recipe.json, so"),
        (["no-such-recipe"], "there is no recipe 'no-such-recipe'"),
        (["demo", "--set", "training.epoch=1"], "did you mean epochs?"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    status, text = run(*arguments)
    assert status != 0
    assert message in text


def test_a_corpus_that_is_not_there(recipe: str, tmp_path: Path) -> None:
    status, text = run(
        recipe, "--out", str(tmp_path / "run"), "--set", f"data.folder={tmp_path / 'nowhere'}"
    )
    assert status == 1
    assert "nowhere" in text


def test_a_run_goes_on_with_other_settings(recipe: str, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    assert run(recipe, "--out", out, "--set", "validation.bleu=false")[0] == 0
    longer = ("--resume", "--out", out, "--set")
    status, text = run(*longer, "training.updates=6")
    assert status == 0, text
    assert "Going on after update 4." in text
    assert "finished: all 6 updates are done" in text
    status, text = run(*longer, "training.seed=2", "--set", "model.dim=32")
    assert status == 1
    assert "model.dim = 16, the recipe says 32; training.seed = 1, the recipe says 2" in text
    status, text = run(*longer, "training.update=6")
    assert (status, "did you mean updates?" in text) == (1, True)


def test_a_dry_run_writes_nothing(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    status, text = run(recipe, "--dry-run", "--set", "training.updates=7", "--out", "run")
    assert status == 0, text
    assert set(tmp_path.iterdir()) == before
    assert "# updates      7 in all" in text
    assert "\nupdates = 7\n" in text
    (tmp_path / "printed.toml").write_text(text, encoding="utf-8")
    assert run("printed.toml", "--dry-run")[0] == 0
    assert run("--resume", "--dry-run", "--out", "nothing")[1].startswith("ValueError: nothing has")


def test_fine_tuning(recipe: str, tmp_path: Path) -> None:
    base, tuned = tmp_path / "base", tmp_path / "tuned"
    quick = ["--set", "validation.bleu=false"]
    assert run(recipe, "--out", str(base), *quick)[0] == 0
    status, text = run(recipe, "--from", str(base), "--out", str(tuned), *quick)
    assert status == 0, text
    about = json.loads((tuned / "model" / "config.json").read_text())
    assert about["training"]["started_from"] == str(base / "model")
    assert "update 0: validation loss" in text
    other = ["--set", "model.dim=32", "--out", str(tmp_path / "other")]
    status, text = run(recipe, "--from", str(base), *other)
    assert status == 1
    assert "model.dim in the recipe means dim = 32, the model has 16" in text
