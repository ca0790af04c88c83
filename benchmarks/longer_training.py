"""What longer training changes: alignment and null rates of a run's models along the way.

python benchmarks/longer_training.py --help
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

import runs
from longer_study.page import make_page
from longer_study.records import LongerRecord, Measures, read_longer_records, write_longer_record
from relakit.analysis import analyze_model, bootstrap_alignment, count_pair_links
from relakit.decode.translator import Translator
from relakit.files.writing import write_whole
from relakit.known_names import known_name
from relakit.reproduce.analyses import (
    GENERATED_GOLD,
    RWTH_GOLD,
    SILVER,
    gold_pairs,
    wanted_analyses,
)
from relakit.reproduce.corpora import CORPORA, known_scale
from relakit.reproduce.one_run import read_curve
from relakit.reproduce.places import Places
from relakit.reproduce.rows import ALL_ROWS
from relakit.reproduce.runs import Run
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.run_folder import LOG
from runs import HOW, WHAT, ResultsFolder

app = runs.new_app()

RESULTS: Final = Path("results/longer-training")


@app.command()
def longer_training(
    run: Annotated[
        str,
        typer.Argument(help="A run such as deep/multi30k-en-de/rela-g-3.", show_default=False),
    ],
    models: Annotated[
        Path,
        typer.Argument(
            help="Folder with the run's models, each in a folder named by its number of updates: "
            "relakit average RUN --last 5 --out MODELS/3200 makes one while the run trains.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(help="Folder of the corpora; see docs/reproduction.md.", rich_help_panel=WHAT),
    ] = Path("data"),
    runs_folder: Annotated[
        Path,
        typer.Option("--runs", help="Folder in which the run trains.", rich_help_panel=HOW),
    ] = Path("runs/reproduction"),
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Name of the recipe, if the run was trained by `relakit train` with another one.",
            rich_help_panel=HOW,
        ),
    ] = None,
    trained_in: Annotated[
        Path | None,
        typer.Option(
            help="Folder of that run, for the BLEU of its validations.",
            rich_help_panel=HOW,
        ),
    ] = None,
    out: ResultsFolder = RESULTS,
) -> None:
    """Compare a run's earlier models with gold links and with shuffled pairs, and write a page."""
    places = Places(data=data, runs=runs_folder, results=out.parent)
    if trained_in is not None and recipe is None:
        raise ValueError("--trained-in needs --recipe, the recipe of the run in that folder")
    found = _Found(_run_of(run), recipe, trained_in, _updates_in(models))
    for record in _measured(found, places):
        write_longer_record(out, record)
        aol = record.measures.aer["AoL, normal"].value
        typer.echo(f"{record.run.name}, update {record.update:,}: AoL {aol:.3f}", err=True)
    page = out.parent / f"{out.name}.md"
    write_whole(page, make_page(read_longer_records(out), places.records()).encode("utf-8"))
    typer.echo(f"The page is {page}.", err=True)


class _Found(NamedTuple):
    """A run and its models."""

    run: Run
    recipe: str | None
    """None: the recipe of `relakit reproduce`"""
    folder: Path | None
    """Where it was trained with that recipe, if known"""
    models: dict[int, Path]
    """By number of updates"""


def _measured(found: _Found, places: Places) -> Iterator[LongerRecord]:
    run = found.run
    recipe = run.recipe(places.data)
    golds = [
        name for name in (RWTH_GOLD, SILVER, GENERATED_GOLD) if name in wanted_analyses(run, places)
    ]
    if not golds:
        raise ValueError(f"there are no links for {run.corpus} in {places.data}")
    gold = gold_pairs(golds[0], run, recipe, places)
    test = split_pairs(recipe, "test")
    folder = places.folder(run, recipe) if found.recipe is None else found.folder
    log = Path() if folder is None else folder / LOG
    bleus = {point.update: point.bleu for point in read_curve(log)} if log.is_file() else {}
    for update, model in found.models.items():
        translator = Translator.load(model)
        links = count_pair_links(translator.model, translator.tokenizers, gold)["ignored"]
        attention, _ = analyze_model(translator.model, translator.tokenizers, test, name=run.name)
        measures = Measures.of(golds[0], bootstrap_alignment(links), attention)
        yield LongerRecord.of(run, found.recipe, update, bleus.get(update), measures)


def _run_of(name: str) -> Run:
    """The run with a name such as deep/multi30k-en-de/rela-g-3."""
    scale, corpus, row_and_seed = [*name.split("/"), "", ""][:3]
    row, _, seed = row_and_seed.rpartition("-")
    if not seed.isdecimal():
        raise ValueError(f"RUN must be SCALE/CORPUS/ROW-SEED, got {name!r}")
    return Run(
        scale=known_scale(scale),
        corpus=known_name("corpus", corpus, CORPORA),
        row=known_name("row", row, ALL_ROWS),
        seed=int(seed),
    )


def _updates_in(models: Path) -> dict[int, Path]:
    found = {int(path.name): path for path in models.glob("*") if path.name.isdecimal()}
    if not found:
        raise ValueError(
            f"{models} has no folder named by a number of updates; relakit average makes them"
        )
    return dict(sorted(found.items()))


if __name__ == "__main__":
    runs.run_app(app)
