"""`relakit train`: from a recipe to a model."""

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relakit.cli.completion import complete_model, complete_recipe
from relakit.cli.consoles import messages_console, results_console
from relakit.recipes import recipe_names
from relakit.train.run_folder import MODEL, RECIPE, RESULT, RUNS

if TYPE_CHECKING:
    from relakit.train.recipe import Recipe


def train(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe that comes with relakit (see --list), or a TOML file. Not needed with "
            "--resume and --out.",
            autocompletion=complete_recipe,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a setting of the recipe (with --resume, of the run's own), such as "
            "training.epochs=3 or data.folder=path/to/corpus. Repeatable.",
        ),
    ] = None,
    reverse: Annotated[
        bool,
        typer.Option(
            "--reverse",
            help="Train the opposite direction on the same corpus: source and target are swapped. "
            "Short for --set data.reverse=true.",
        ),
    ] = False,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Fine-tune: start from the weights, settings and tokenizer of a model directory, "
            "or of a run. Short for --set model.start_from=MODEL.",
            autocompletion=complete_model,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help=f"The run's folder. \\[default: {RUNS}/RECIPE]"),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue from the last checkpoint in the run's folder. Length, validation, "
            "saving, threads and device may change; the rest stays as it was.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the recipe with every setting and, as comments, the size of the corpus and "
            "the model, memory, disk space and time; the time is estimated from a few trial "
            "batches. Nothing is written.",
        ),
    ] = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the recipes that come with relakit, and exit.")
    ] = False,
) -> None:
    """Train a translation model.

    When training is finished, the run's folder holds the model directory (model/), the last
    checkpoints, a log, and result.json with the verdict and the scores. However a run was stopped,
    --resume continues it and arrives at the same weights. A run that is stopped by Ctrl-C or
    SIGTERM also leaves the model so far in model/; relakit average makes a model from any
    checkpoints. Under torchrun, the same command trains with several processes.

    Exit status: 0 finished, 3 training failed (see result.json), 130 or 143 stopped by a signal.
    """
    from relakit.train.recipe_file import load_recipe

    if show_list:
        _list_recipes()
        return
    if recipe is None and not (resume and out is not None):
        raise typer.BadParameter(
            f"name a recipe ({', '.join(recipe_names())}, or a .toml file); it can be left out "
            "only with --resume and --out",
            param_hint="RECIPE",
        )
    changes = [*(settings or ()), *(["data.reverse=true"] if reverse else ())]
    if start_from is not None:
        changes.append(f"model.start_from={json.dumps(str(start_from))}")
    name = Path(str(recipe)).stem + ("-reverse" if reverse else "")
    folder = out if out is not None else Path(RUNS) / name
    wanted = load_recipe(recipe, changes) if recipe is not None else _recipe_of(folder, changes)
    if dry_run:
        _describe(wanted)
    else:
        _train(wanted, folder, resume)


def _describe(recipe: "Recipe") -> None:
    """Print what a run with this recipe would do."""
    from relakit.train.dry_run import dry_run

    typer.echo(dry_run(recipe).describe(), nl=False)


def _recipe_of(folder: Path, changes: list[str]) -> "Recipe":
    """The recipe of the run in a folder, with some settings changed."""
    from relakit.train.recipe_file import change_recipe
    from relakit.train.resume import recipe_to_resume

    return change_recipe(recipe_to_resume(folder), changes, str(folder / RECIPE))


def _train(recipe: "Recipe | None", folder: Path, resume: bool) -> None:
    from rich.text import Text

    from relakit.cli.stage_bar import stage_bar
    from relakit.train.main_process import is_main_process
    from relakit.train.preflight import check_run

    recipe = check_run(recipe, folder, resume=resume)
    from relakit.train.run import run_training

    console = messages_console()
    result, ending = run_training(
        recipe,
        folder,
        resume=resume,
        console=console,
        stage_bar=lambda: stage_bar(console),
    )
    if not is_main_process():  # under torchrun, only one process prints
        console.quiet = True
    style = {"finished": "green", "stopped": "yellow", "failed": "red"}[result.verdict]
    console.print(Text.assemble((result.verdict, style), f": {result.reason}"))
    for split, scores in result.scores.items():
        bleu = "" if scores.bleu is None else f", BLEU {scores.bleu:.2f}"
        console.print(f"{split}: loss {scores.loss:.3f}{bleu}")
    if result.verdict == "finished":
        console.print(f"model: {folder / MODEL}", soft_wrap=True)
    elif result.verdict == "failed":
        console.print(f"details: {folder / RESULT}", soft_wrap=True)
        raise typer.Exit(3)
    else:
        console.print(f"model so far: {folder / MODEL}", soft_wrap=True)
        command = f"relakit train --resume --out {folder}"
        console.print(f"continue with: {command}", soft_wrap=True)
        raise typer.Exit(128 + (ending.signal or signal.SIGTERM))


def _list_recipes() -> None:
    from rich.table import Table

    from relakit.train.recipe_file import describe_recipes

    table = Table(box=None)
    table.add_column("recipe")
    table.add_column("what it trains")
    for name, description in describe_recipes():
        table.add_row(name, description)
    results_console().print(table)
