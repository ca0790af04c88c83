"""benchmarks/longer_training.py: models on the way, their result files, their page."""

import json
from pathlib import Path

import pytest
from random_models import random_model
from typer.testing import CliRunner, Result

import longer_training
from longer_study.records import COLUMNS, read_longer_records
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import learn_tokenizer
from relakit.model import ModelAbout, save_model
from relakit.reproduce.runs import Run
from relakit.train.recipe import Recipe
from relakit.train.run_folder import LOG

RUN = "deep/generated/rela-g-3"
UPDATES = (10, 200)
LAYERS = 2


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models of a run with random weights, and a corpus as small."""
    recipe = Recipe.model_validate(
        {"data": {"generated": {"train": 60, "valid": 20, "test": 12}}, "training": {"updates": 1}}
    )
    monkeypatch.setattr(Run, "recipe", lambda run, data: recipe)
    texts = [text for pair in generate_pairs(60) for text in (pair.source_text, pair.target_text)]
    tokenizer = learn_tokenizer(texts, 300)
    tokenizer.save(tmp_path / "tokenizer.json")
    for update in UPDATES:
        model = random_model(vocabulary=tokenizer.size, seed=update, dim=16, heads=2)
        folder = tmp_path / "models" / str(update)
        save_model(folder, model, tmp_path / "tokenizer.json", ModelAbout("en", "de"))
    return tmp_path / "models"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(longer_training.app, list(map(str, arguments)))


def test_each_model_is_measured(models: Path, tmp_path: Path) -> None:
    log = tmp_path / "runs" / "deep" / "generated"
    out = tmp_path / "results" / "longer-training"
    result = run(RUN, models, "--runs", log, "--out", out)
    assert result.exit_code == 0, result.output
    records = read_longer_records(out)
    assert [(record.run.name, record.update) for record in records] == [
        (RUN, update) for update in UPDATES
    ]
    first, second = (record.measures for record in records)
    assert set(first.aer) == set(COLUMNS)
    assert len(first.gaps) == LAYERS
    assert first != second
    page = (tmp_path / "results" / "longer-training.md").read_text(encoding="utf-8")
    aer = first.aer["AoH, shifted"]
    assert f" {100 * aer.value:.1f} ({100 * aer.low:.1f} to {100 * aer.high:.1f}) |" in page
    assert [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")] == [
        "| updates", "| ---:", "| 10", "| 200",
    ]  # fmt: skip


def test_a_run_of_another_recipe_stands_apart(models: Path, tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    trained.mkdir()
    scores = {"loss": 3.0, "bleu": 12.5}
    line = {"kind": "validation", "update": 200, "training_loss": 3.5, "scores": scores}
    (trained / LOG).write_text(json.dumps(line) + "\n", encoding="utf-8")
    out = tmp_path / "results" / "longer-training"
    assert run(RUN, models, "--out", out).exit_code == 0
    result = run(RUN, models, "--recipe", "short", "--trained-in", trained, "--out", out)
    assert result.exit_code == 0, result.output
    found = [(record.recipe, record.update, record.bleu) for record in read_longer_records(out)]
    assert found == [
        (None, 10, None), (None, 200, None), ("short", 10, None), ("short", 200, 12.5)
    ]  # fmt: skip
    page = (tmp_path / "results" / "longer-training.md").read_text(encoding="utf-8")
    assert "rela-g, seed 3\n" in page
    assert "rela-g, seed 3, recipe short\n" in page
    refused = run(RUN, models, "--trained-in", trained)
    assert "--trained-in needs --recipe" in str(refused.exception)


@pytest.mark.parametrize(("row", "gaps"), [("rela-g", LAYERS), ("softmax", 0)])
def test_gaps_are_shown_where_queries_may_be_null(
    row: str, gaps: int, models: Path, tmp_path: Path
) -> None:
    result = run(f"deep/generated/{row}-3", models, "--out", tmp_path / "longer-training")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "longer-training.md").read_text(encoding="utf-8")
    assert page.count("| gap, layer ") == gaps


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deep/generated", "RUN must be SCALE/CORPUS/ROW-SEED, got 'deep/generated'"),
        ("deep/klingon/rela-g-1", "unknown corpus 'klingon'"),
        ("deep/generated/relu-g-1", "unknown row 'relu-g'"),
        (RUN, "has no folder named by a number of updates; relakit average makes them"),
    ],
)
def test_mistakes(name: str, message: str, tmp_path: Path) -> None:
    assert message in str(run(name, tmp_path).exception)
