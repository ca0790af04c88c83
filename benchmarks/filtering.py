"""Filtering: how well scores tell noise from clean pairs, next to other tools' scores.

python benchmarks/filtering.py --help
"""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer

import runs
from filter_study.material import STUDIES, Material
from filter_study.page import downstream_path, write_page
from filter_study.records import with_earlier_row, write_filter_record
from runs import HOW, OUTPUT, WHAT, ResultsFolder

app = runs.new_app()

RESULTS: Final = Path("results/filtering")


@app.command("rank")
def rank(
    study: Annotated[
        str, typer.Argument(metavar="|".join(STUDIES), help="Which pairs.", show_default=False)
    ],
    model: Annotated[
        Path,
        typer.Option(help="A model directory, English to German.", rich_help_panel=WHAT),
    ],
    reverse: Annotated[
        Path | None,
        typer.Option(help="A model for the other direction.", rich_help_panel=WHAT),
    ] = None,
    data: Annotated[
        Path,
        typer.Option(
            help="Folder with multi30k/, europarl-en-de/ and paracrawl-labels/, see "
            "docs/reproduction.md.",
            rich_help_panel=WHAT,
        ),
    ] = Path("data"),
    about: Annotated[
        str, typer.Option(help="Description of the models, for the page.", rich_help_panel=OUTPUT)
    ] = "",
    eflomal: Annotated[
        bool,
        typer.Option(
            help="Compare with eflomal's scores; without, keep an earlier record's of these pairs.",
            rich_help_panel=HOW,
        ),
    ] = True,
    out: ResultsFolder = RESULTS,
) -> None:
    """Plant noise in pairs that a model has not seen, or take judged pairs, and rank them.

    The model should have chosen heads or an alignment layer (relakit align --select, relakit
    train-aligner).
    """
    from filter_study.measure import WORD_ALIGNMENT, Models, measure

    material = Material.of(study, data)
    models = Models(model, reverse, about or f"Models {model} and {reverse or 'none'}")
    with tempfile.TemporaryDirectory() as work:
        record = measure(material, models, Path(work), eflomal=eflomal)
    if not eflomal:
        record = with_earlier_row(out, record, WORD_ALIGNMENT)
    write_filter_record(out, record)
    typer.echo(f"The page is {write_page(out)}.", err=True)


@app.command("downstream")
def downstream(
    work: Annotated[
        Path,
        typer.Option(
            help="Folder for models and texts; an interrupted run resumes there.",
            file_okay=False,
            rich_help_panel=HOW,
        ),
    ] = Path("runs/downstream"),
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Recipe setting, to try things out.", rich_help_panel=HOW),
    ] = None,
    out: ResultsFolder = RESULTS,
) -> None:
    """Train on noisy pairs, on those that a filter keeps, and on the clean ones."""
    from filter_study.downstream import measure_downstream, write_downstream

    write_downstream(downstream_path(out), measure_downstream(work, settings or ()))
    typer.echo(f"The page is {write_page(out)}.", err=True)


if __name__ == "__main__":
    runs.run_app(app)
