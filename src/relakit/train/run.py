"""A training run in a folder, from recipe to model directory; `run_folder` says what it holds."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console

from relakit.data.prepared_format import TOKENIZER_NAME
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.stages import OnStage, ignore_stage
from relakit.model import ModelAbout, save_model
from relakit.train.checkpoint import average_weights, find_checkpoints
from relakit.train.corpus import open_corpus
from relakit.train.distributed import World, join_world
from relakit.train.plan import plan_updates
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.result import Result, Scores
from relakit.train.run_folder import (
    CHECKPOINTS,
    CORPUS,
    CURVES,
    LOG,
    MODEL,
    RECIPE,
    RESULT,
    RUN_ENTRIES,
    TEXT,
)
from relakit.train.run_log import LogFile, RunLog, RunLogs, TensorBoard
from relakit.train.terminal import Terminal
from relakit.train.trainer import Ending, Trainer
from relakit.writing import write_whole

StageBar = Callable[[], AbstractContextManager[OnStage]]
"""Opens what shows how far the preparation of the corpus is."""

MAY_CHANGE: Final = (
    "description",
    "data.folder",
    "data.prepared",
    "training.epochs",
    "training.updates",
    "training.threads",
    "training.device",
    "training.give_up_after",
    "validation",
)
"""What a resumed run may do differently: none of it changes the updates that are made. The corpus
may move, but not change: the trainer compares."""


def run_training(
    recipe: Recipe | None,
    folder: Path,
    *,
    resume: bool = False,
    console: Console | None = None,
    stage_bar: StageBar = lambda: nullcontext(ignore_stage),
) -> tuple[Result, Ending]:
    """Train in ``folder``.

    Args:
        recipe: what to train. With ``resume`` it may be None: that of the folder then.
        folder: the run's folder.
        resume: go on after the last checkpoint.
        console: where to show how it goes; None for nowhere.
        stage_bar: shows how far the preparation of the corpus is.
    """
    recipe = _settle_recipe(recipe, folder, resume=resume)
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    with join_world(recipe.training.device) as world:
        console = console if console is not None and world.is_main else Console(quiet=True)
        world.wait()  # nobody may change the folder before all have looked at it
        if world.is_main:
            _clear_other_corpus(recipe, folder)
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / RECIPE, f"{recipe.model_dump_json(indent=2)}\n".encode())
            with stage_bar() as on_stage:
                corpus = open_corpus(recipe.data, folder / CORPUS, on_stage=on_stage)
        world.wait()
        if not world.is_main:
            corpus = open_corpus(recipe.data, folder / CORPUS)
        with closing(_open_logs(recipe, corpus, folder, world, console, resume)) as log:
            trainer = Trainer(recipe, corpus, folder, world, log)
            if resume and trainer.resume() is None:
                console.print("There is no checkpoint yet: starting from the beginning.")
            ending = trainer.run()
        result = _finish(trainer, ending)
        if world.is_main:
            result.write(folder / RESULT)
        world.wait()
    return result, ending


def _settle_recipe(recipe: Recipe | None, folder: Path, *, resume: bool) -> Recipe:
    before = read_recipe(folder)
    if before is None:
        if recipe is None:
            raise ValueError(f"{folder} has no recipe.json, so there is nothing to resume")
        return recipe
    if recipe is None:
        return before
    if not find_checkpoints(folder / CHECKPOINTS, interrupted=True):
        return recipe  # it did not get to its first checkpoint: nothing is lost
    if not resume:
        raise FileExistsError(
            f"{folder} holds a run already; go on with it by --resume, or choose another --out"
        )
    for key, old, new in lasting_differences(before, recipe):
        raise ValueError(
            f"{folder} was trained with {key} = {old!r}, the recipe says {new!r}; a resumed "
            "run keeps the settings it was started with"
        )
    return recipe


def lasting_differences(before: Recipe, recipe: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """Settings in which a resumed run may not differ, but does; both values of each."""
    both = before.model_dump(mode="json"), recipe.model_dump(mode="json")
    return (found for found in _differences(*both) if not found[0].startswith(MAY_CHANGE))


def read_recipe(folder: Path) -> Recipe | None:
    """The recipe of the run in a folder; None if there is none."""
    path = folder / RECIPE
    if not path.exists():
        return None
    try:
        return make_recipe(json.loads(path.read_text(encoding="utf-8")), str(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from None


def remove_run(folder: Path) -> None:
    """Remove what a run wrote into its folder, and the folder if nothing else is in it."""
    for name in RUN_ENTRIES:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _clear_other_corpus(recipe: Recipe, folder: Path) -> None:
    """Remove the corpus that an earlier attempt prepared for another recipe."""
    before = read_recipe(folder)
    if before is not None and before.data != recipe.data:
        for name in (CORPUS, TEXT):
            shutil.rmtree(folder / name, ignore_errors=True)


def _differences(
    old: dict[str, Any], new: dict[str, Any], section: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Keys with other values, as in ``training.epochs``, and both values."""
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _differences(before, after, f"{section}{key}.")
        elif before != after:
            yield section + key, before, after


def _open_logs(
    recipe: Recipe,
    corpus: PreparedCorpus,
    folder: Path,
    world: World,
    console: Console,
    resume: bool,
) -> RunLogs:
    if not world.is_main:
        return RunLogs([])
    logs: list[RunLog] = [LogFile(folder / LOG, resume=resume)]
    if TensorBoard.is_installed():
        logs.append(TensorBoard(folder / CURVES))
    logs.append(Terminal(console, total_updates=_total_updates(recipe, corpus)))
    return RunLogs(logs)


def _total_updates(recipe: Recipe, corpus: PreparedCorpus) -> int | None:
    """How many updates the run will have; for epochs about, as they may differ by a few."""
    training = recipe.training
    if training.epochs is None:
        return training.updates
    updates = plan_updates(
        corpus.split("train"),
        batch_tokens=training.batch_tokens,
        update_tokens=training.update_tokens,
        seed=training.seed,
    )
    in_epoch = next(update.number for update in updates if update.is_last_of_epoch)
    return min(training.epochs * in_epoch, training.updates or training.epochs * in_epoch)


def _finish(trainer: Trainer, ending: Ending) -> Result:
    """The run's result; a finished run also gets its model directory and final scores."""
    recipe, state = trainer.recipe, trainer.state
    scores: dict[str, Scores] = {}
    averaged = 0
    if ending.verdict == "finished":
        averaged = _take_final_weights(trainer)
        for split in trainer.corpus.splits:
            if split != "train":
                scores[split] = trainer.scores(split, beam=recipe.validation.final_beam)
    result = Result(
        verdict=ending.verdict,
        reason=ending.reason,
        updates=state.update,
        epochs=float(state.epochs_done),
        seconds=state.seconds,
        target_tokens=state.target_tokens,
        parameters=sum(p.numel() for p in trainer.model.parameters()),
        scores=scores,
        settings={
            "recipe": recipe.model_dump(mode="json"),
            "relakit": version("relakit"),
            "torch": torch.__version__,
            "device": str(trainer.world.device),
            "precision": str(trainer.precision),
            "processes": trainer.world.size,
            "threads": torch.get_num_threads(),
            "averaged_checkpoints": averaged,
        },
    )
    if ending.verdict == "finished" and trainer.world.is_main:
        _save(trainer, result)
    return result


def _take_final_weights(trainer: Trainer) -> int:
    """Put the average of the last checkpoints into the model; returns how many there were."""
    training = trainer.recipe.training
    last = find_checkpoints(trainer.checkpoints)[-(training.keep if training.average else 1) :]
    trainer.model.load_state_dict(average_weights(last))
    return len(last)


def _save(trainer: Trainer, result: Result) -> None:
    data = trainer.recipe.data
    source, target = (data.target, data.source) if data.reverse else (data.source, data.target)
    about = ModelAbout(
        source_language=trainer.corpus.source_language or source,
        target_language=trainer.corpus.target_language or target,
        training={
            "updates": result.updates,
            "epochs": result.epochs,
            "averaged_checkpoints": result.settings["averaged_checkpoints"],
            "scores": {
                split: {"loss": s.loss, "bleu": s.bleu, "bleu_signature": s.bleu_signature}
                for split, s in result.scores.items()
            },
            "relakit": result.settings["relakit"],
        },
    )
    tokenizer = trainer.corpus.folder / TOKENIZER_NAME
    save_model(trainer.folder / MODEL, trainer.model.cpu(), tokenizer, about)
