"""The plan: what is done, what is left, and how long that takes."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from made_up_records import (
    made_up_alignment,
    made_up_analysis,
    made_up_ranking,
    made_up_record,
)

from relakit.analysis.results import ModelAnalysis
from relakit.files.locks import locked
from relakit.reproduce.analyses import GENERATED_GOLD, PLANTED
from relakit.reproduce.places import Places
from relakit.reproduce.plan import Step, latest_update, make_plan, share_done
from relakit.reproduce.records import RunRecord
from relakit.reproduce.runs import Run, portable_recipe

RUN = Run(scale="tiny", corpus="demo", row="rela-g", seed=1)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(data=tmp_path / "data", runs=tmp_path / "runs", results=tmp_path / "results")


def only_step(places: Places, run: Run = RUN) -> Step:
    (step,) = make_plan([run], places).steps
    return step


def complete(places: Places, run: Run = RUN, **changed: Any) -> RunRecord:
    """The record of a run, with all that is wanted of it."""
    fields: dict[str, Any] = {
        "corpus": run.corpus,
        "recipe": portable_recipe(run.recipe(places.data)),
        "attention": made_up_analysis(),
        "alignments": {GENERATED_GOLD: made_up_alignment(0.5)},
        "rankings": {PLANTED: made_up_ranking(0.6)},
    }
    return made_up_record(run.row, run.seed, **{**fields, **changed})


def write_log(places: Places, *entries: dict[str, Any], end: str = "\n") -> Path:
    folder = places.folder(RUN, RUN.recipe(places.data))
    folder.mkdir(parents=True)
    text = "\n".join(json.dumps(entry) for entry in entries) + end
    (folder / "log.jsonl").write_text(text, encoding="utf-8")
    return folder


def update(number: int, epoch: int) -> dict[str, Any]:
    return {"kind": "update", "update": number, "epoch": epoch, "loss": 3.0}


def test_to_train(places: Places) -> None:
    step = only_step(places)
    assert (step.state, step.is_open, step.note) == ("to train", True, "")
    assert step.minutes == RUN.about_corpus.minutes["tiny"]
    assert step.folder == places.folder(RUN, RUN.recipe(places.data))


def test_to_resume(places: Places) -> None:
    recipe = RUN.recipe(places.data)
    epochs = recipe.training.epochs
    assert epochs == 5
    write_log(places, update(1, 1), update(2, 3), {"kind": "validation"})
    step = only_step(places)
    assert step.state == "to resume"
    assert step.minutes == pytest.approx(RUN.about_corpus.minutes["tiny"] * (1 - 2 / 5))


def test_done(places: Places) -> None:
    complete(places).write(places.results)
    step = only_step(places)
    assert (step.state, step.is_open, step.minutes) == ("done", False, 0.0)


def test_a_failed_run_is_done(places: Places) -> None:
    record = complete(places, bleu=None, attention=None, alignments=None, rankings=None)
    record.write(places.results)
    assert only_step(places).state == "done"


@pytest.mark.parametrize(
    "training",
    [{"warmup": 17}, {"a_setting_that_is_no_more": 1}],
    ids=["another value", "unknown"],
)
def test_outdated_settings_are_trained_again(training: dict[str, Any], places: Places) -> None:
    recipe = portable_recipe(RUN.recipe(places.data))
    recipe["training"] = {**recipe["training"], **training}
    complete(places, recipe=recipe).write(places.results)
    step = only_step(places)
    assert step.state == "to train"
    assert step.note == "its settings have changed since it was made"


def test_settings_that_an_older_version_did_not_know_are_defaults(places: Places) -> None:
    recipe = portable_recipe(RUN.recipe(places.data))
    assert recipe["training"].pop("clip_norm") == 0.0
    complete(places, recipe=recipe).write(places.results)
    assert only_step(places).state == "done"


@pytest.mark.parametrize(
    ("missing", "names"),
    [
        ({"attention": None}, "attention"),
        ({"rankings": {}, "alignments": {}}, f"{PLANTED}, {GENERATED_GOLD}"),
    ],
)
def test_missing_analyses(
    missing: dict[str, ModelAnalysis | None], names: str, places: Places
) -> None:
    complete(places, **missing).write(places.results)
    step = only_step(places)
    assert step.state == "done", "there is no model to analyze"
    assert step.note.endswith(f"({names})")
    assert not step.is_open
    (places.folder(RUN, RUN.recipe(places.data)) / "model").mkdir(parents=True)
    step = only_step(places)
    assert (step.state, step.note) == ("to analyze", f"missing: {names}")
    assert step.is_open


def test_the_model_of_another_training_is_not_analyzed(places: Places) -> None:
    record = complete(places, attention=None)
    weights = places.folder(RUN, RUN.recipe(places.data)) / "model" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    for content, state in ((b"ours", "to analyze"), (b"theirs", "done")):
        digest = hashlib.sha256(b"ours").hexdigest()
        weights.write_bytes(content)
        record.model_copy(update={"weights_digest": digest}).write(places.results)
        step = only_step(places)
        assert step.state == state
    assert step.note == (
        f"{weights.parent} is not the model that the result file is about: it was trained anew "
        "(attention)"
    )


def test_what_another_process_makes_is_left_to_it(places: Places) -> None:
    folder = places.folder(RUN, RUN.recipe(places.data))
    with locked(folder):
        step = only_step(places)
        assert (step.state, step.is_open) == ("being made elsewhere", False)
        assert str(folder) in step.note
    assert only_step(places).state == "to train"
    complete(places).write(places.results)
    with locked(folder):
        assert only_step(places).state == "done"


def test_missing_data(places: Places) -> None:
    run = Run(scale="tiny", corpus="multi30k-en-de", row="rela-g", seed=1)
    step = only_step(places, run)
    assert (step.state, step.is_open) == ("impossible", False)
    assert str(places.data / "multi30k") in step.note
    made_up_record().write(places.results)
    assert only_step(places, run).state == "done", "what is there needs no data"
    other = {**made_up_record().recipe}
    other["training"] = {**other["training"], "warmup": 17}
    made_up_record(recipe=other).write(places.results)
    assert only_step(places, run).state == "impossible", "it is of another recipe"


def test_times_follow_what_was_measured(places: Places) -> None:
    complete(places, Run(scale="tiny", corpus="demo", row="rela-g", seed=2), seconds=120.0).write(
        places.results
    )
    assert only_step(places).minutes == 2.0, "by another seed"
    slow = Run(scale="tiny", corpus="demo", row="softmax", seed=1)
    assert only_step(places, slow).minutes == 2.0, "by another row"


def test_plan_adds_up(places: Places) -> None:
    runs = [Run(scale="tiny", corpus="demo", row="rela-g", seed=seed) for seed in (1, 2, 3)]
    complete(places, runs[1], seconds=60.0).write(places.results)
    plan = make_plan(runs, places)
    assert [step.run.seed for step in plan.open] == [1, 3]
    assert plan.core_minutes == 2.0


def test_share_done_by_updates(places: Places) -> None:
    recipe = RUN.recipe(places.data)
    training = recipe.training.model_copy(update={"epochs": None, "updates": 100})
    by_updates = recipe.model_copy(update={"training": training})
    folder = write_log(places, update(25, 1))
    assert share_done(folder, by_updates) == 0.25
    assert share_done(folder, recipe) == 0.01, "it has begun"
    assert share_done(places.runs / "nowhere", recipe) == 0.0


def test_share_done_is_never_all(places: Places) -> None:
    folder = write_log(places, update(9999, 6))
    assert share_done(folder, RUN.recipe(places.data)) == 0.99


def test_a_log_that_is_being_written(places: Places) -> None:
    """The end of a long log, whose first and last lines are cut."""
    entries = [update(number, 1) for number in range(1, 400)]
    folder = write_log(places, *entries, end='\n{"kind": "upd')
    entry = latest_update(folder)
    assert entry is not None
    assert entry["update"] == 399


def test_no_update_yet(places: Places) -> None:
    assert latest_update(write_log(places, {"kind": "validation"})) is None
