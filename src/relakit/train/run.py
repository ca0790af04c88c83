"""A training run, from recipe to model directory; `run_folder` says what its folder holds."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from importlib.metadata import version
from pathlib import Path

import torch
from rich.console import Console

from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.stages import OnStage, ignore_stage
from relakit.files.locks import locked
from relakit.files.output_paths import RUN
from relakit.files.writing import WriteError, remove_folder, sweep, write_whole
from relakit.limits import checked_threads
from relakit.model import ModelAbout, save_model
from relakit.threads import set_threads
from relakit.train.averaging import average_weights, checkpoints_of_model
from relakit.train.checkpoint import find_checkpoints
from relakit.train.corpus import languages, learn_languages, open_corpus
from relakit.train.corpus_text import is_out_of_date, note_text
from relakit.train.distributed import World, join_world
from relakit.train.feasibility import check_corpus, check_model, warn_of_short_run
from relakit.train.main_process import is_main_process
from relakit.train.plan import first_epoch, total_updates
from relakit.train.preflight import check_text, settled_settings
from relakit.train.recipe import Recipe
from relakit.train.result import Result, Scores
from relakit.train.resume import check_place_of_model, read_recipe, settle_recipe
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
from relakit.train.starting_model import starting_tokenizers
from relakit.train.terminal import Terminal
from relakit.train.trainer import Ending, Trainer

StageBar = Callable[[], AbstractContextManager[OnStage]]
"""Opens a display of how far the preparation of the corpus has got."""


def run_training(
    recipe: Recipe | None,
    folder: Path,
    *,
    resume: bool = False,
    console: Console | None = None,
    stage_bar: StageBar = lambda: nullcontext(ignore_stage),
    lock: bool = True,
) -> tuple[Result, Ending]:
    """Train in ``folder``.

    Args:
        recipe: what to train. With ``resume`` it may be None, for the recipe in the folder.
        folder: the run's folder.
        resume: continue after the last checkpoint.
        console: where to show progress; None for nowhere.
        stage_bar: shows how far the preparation of the corpus has got.
        lock: keep other processes out of the folder; False if the caller does so.

    Raises:
        BusyError: another process is training there.
        ValueError: the folder's run cannot be resumed, or its corpus cannot be used.
        OSError: the folder holds something else, or cannot be written.
    """
    if recipe is not None:
        recipe = settled_settings(recipe, read_recipe(folder))
    with locked(folder) if lock and is_main_process() else nullcontext():
        recipe = settle_recipe(recipe, folder, resume=resume)
        check_place_of_model(folder)
        check_text(recipe, folder)
        try:
            return _run(recipe, folder, resume, console, stage_bar)
        except WriteError as error:
            if not RUN.is_at(folder):
                raise
            hint = f", then relakit train --resume --out {folder}"
            raise error.renewed(hint=hint) from None


def _run(
    recipe: Recipe, folder: Path, resume: bool, console: Console | None, stage_bar: StageBar
) -> tuple[Result, Ending]:
    set_threads(checked_threads("training.threads", recipe.training.threads, least=0))
    with join_world(recipe.training.device) as world:
        check_model(recipe, world.device)
        console = console if console is not None and world.is_main else Console(quiet=True)
        has_begun = bool(find_checkpoints(folder / CHECKPOINTS, interrupted=True))
        prepares = recipe.data.prepared is None and not (folder / CORPUS).exists()
        world.wait()  # no process may change the folder before all have looked at it
        if world.is_main:
            for place in (folder, folder / CHECKPOINTS):
                sweep(place)
            if not has_begun:
                _clear_other_corpus(recipe, folder)
                _write_recipe(recipe, folder)
                if recipe.data.prepared is None and not (folder / CORPUS).exists():
                    note_text(recipe, folder)  # before it is read: it may change meanwhile
            with stage_bar() as on_stage:
                corpus = open_corpus(
                    recipe.data,
                    folder / CORPUS,
                    tokenizer=starting_tokenizers(recipe),
                    on_stage=on_stage,
                )
        world.wait()
        if not world.is_main:
            corpus = open_corpus(recipe.data, folder / CORPUS)
        check_corpus(recipe, corpus, world.device)
        with closing(_open_logs(recipe, corpus, folder, world, console, resume)) as log:
            trainer = Trainer(recipe, corpus, folder, world, log)
            try:
                checkpoint = trainer.resume() if resume else None
            except ValueError:
                if world.is_main and has_begun and prepares:  # it was made from another text
                    remove_folder(folder / CORPUS)
                raise
            if world.is_main and checkpoint is not None:
                _write_recipe(recipe, folder)  # not before: a refused run stays as it was
            if resume and checkpoint is None:
                console.print("There is no checkpoint yet: starting from the beginning.")
            if checkpoint is None:
                trainer.start()
            ending = trainer.run()
        result = _finish(trainer, ending)
        if world.is_main:
            result.write(folder / RESULT)
        world.wait()
    return result, ending


def remove_run(folder: Path) -> None:
    """Remove what a run wrote into its folder, and the folder if nothing else is in it.

    Raises:
        BusyError: another process is training there.
    """
    with locked(folder):
        # The recipe last: without it, an interrupted removal would leave a folder of strangers.
        for name in sorted(RUN_ENTRIES, key=RECIPE.__eq__):
            path = folder / name
            if path.is_dir():
                remove_folder(path)
            else:
                path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _write_recipe(recipe: Recipe, folder: Path) -> None:
    write_whole(folder / RECIPE, f"{recipe.model_dump_json(indent=2)}\n".encode())


def _clear_other_corpus(recipe: Recipe, folder: Path) -> None:
    """Remove the corpus that an earlier attempt prepared for another recipe, or from other text.

    Only while there are no checkpoints: once there are, the corpus belongs to the run, wherever its
    text is.
    """
    before = read_recipe(folder)
    if before is None:
        return
    starts = before.model.start_from, recipe.model.start_from
    is_other = before.data != recipe.data or starts[0] != starts[1]
    if is_other or is_out_of_date(recipe, folder):
        _remove_corpus(folder)


def _remove_corpus(folder: Path) -> None:
    """Remove what a run prepared for itself; OSError if that cannot be done."""
    for name in (CORPUS, TEXT):
        if (folder / name).exists():
            remove_folder(folder / name)


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

    def warn(text: str) -> None:
        console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)

    logs: list[RunLog] = [LogFile(folder / LOG, resume=resume, warn=warn)]
    if TensorBoard.is_installed():
        logs.append(TensorBoard(folder / CURVES, warn=warn))
    total = _total_updates(recipe, corpus)
    warn_of_short_run(recipe.training, total)
    logs.append(Terminal(console, total_updates=total))
    return RunLogs(logs)


def _total_updates(recipe: Recipe, corpus: PreparedCorpus) -> int | None:
    """How many updates the run will have; approximate for epochs, which may differ by a few."""
    training = recipe.training
    if training.epochs is None:  # a large epoch takes a while to plan
        return training.updates
    return total_updates(training, len(first_epoch(corpus.split("train"), training)))


def _finish(trainer: Trainer, ending: Ending) -> Result:
    """The run's result. A finished run also gets its model directory and final scores.

    A run that was asked to stop also gets a model directory, but does not wait for scores.
    """
    recipe, state = trainer.recipe, trainer.state
    scores: dict[str, Scores] = {}
    averaged = 0
    if ending.verdict == "finished":
        averaged = _take_weights(trainer, is_finished=True)
        for split in trainer.corpus.splits:
            if split != "train":
                scores[split] = trainer.scores(split, beam=recipe.validation.final_beam)
    elif ending.verdict == "stopped" and trainer.world.is_main:
        averaged = _take_weights(trainer, is_finished=False)
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
    if ending.verdict != "failed" and trainer.world.is_main:
        _save(trainer, result)
    return result


def _take_weights(trainer: Trainer, *, is_finished: bool) -> int:
    """Load the average of the last checkpoints into the model; returns how many there were."""
    training = trainer.recipe.training
    last = checkpoints_of_model(trainer.checkpoints, training, is_finished=is_finished)
    trainer.model.load_state_dict(average_weights(last))
    return len(last)


def _started_from(recipe: Recipe) -> dict[str, str]:
    start = recipe.model.start_from
    return {} if start is None else {"started_from": str(start)}


def _save(trainer: Trainer, result: Result) -> None:
    source, target = languages(trainer.recipe.data, trainer.corpus)
    about = ModelAbout(
        source_language=source,
        target_language=target,
        longest_sentence=trainer.corpus.train.longest,
        training={
            "verdict": result.verdict,
            "updates": result.updates,
            "epochs": result.epochs,
            "averaged_checkpoints": result.settings["averaged_checkpoints"],
            "scores": {
                split: {"loss": s.loss, "bleu": s.bleu, "bleu_signature": s.bleu_signature}
                for split, s in result.scores.items()
            },
            "relakit": result.settings["relakit"],
            **_started_from(trainer.recipe),
        },
    )
    save_model(
        trainer.folder / MODEL,
        trainer.model.cpu(),
        trainer.corpus.tokenizers,  # not the file, which may be of another corpus by now
        about,
        languages=learn_languages(trainer.corpus),
    )
