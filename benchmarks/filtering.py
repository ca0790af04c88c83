"""Filtering: how well scores tell noise from clean pairs, next to other tools' scores.

python benchmarks/filtering.py --help
"""

import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer

import runs
from filter_study.material import STUDIES, Material
from filter_study.page import make_page
from filter_study.records import read_filter_records, write_filter_record
from relakit.files.writing import write_whole
from runs import HOW, OUTPUT, WHAT

app = runs.new_app()

RESULTS: Final = Path("results/filtering")


@app.command()
def filtering(
    study: Annotated[
        str, typer.Argument(metavar="|".join(STUDIES), help="The pairs.", show_default=False)
    ],
    model: Annotated[
        Path,
        typer.Option(help="A model directory, English to German.", rich_help_panel=WHAT),
    ],
    reverse: Annotated[
        Path | None,
        typer.Option(help="One of the other direction.", rich_help_panel=WHAT),
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
        str, typer.Option(help="What the models are, for the page.", rich_help_panel=OUTPUT)
    ] = "",
    eflomal: Annotated[
        bool, typer.Option(help="Compare with eflomal's scores.", rich_help_panel=HOW)
    ] = True,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of the result files; the page lies beside it.",
            file_okay=False,
            rich_help_panel=OUTPUT,
        ),
    ] = RESULTS,
) -> None:
    """Plant noise in pairs that a model has not seen, or take judged ones, and rank them.

    The model should have chosen heads or an alignment layer (relakit align --select, relakit
    train-aligner).
    """
    from filter_study.measure import Models, measure

    material = Material.of(study, data)
    models = Models(model, reverse, about or f"Models {model} and {reverse or 'none'}")
    with tempfile.TemporaryDirectory() as work:
        record = measure(material, models, Path(work), eflomal=eflomal)
    write_filter_record(out, record)
    page = out.parent / f"{out.name}.md"
    write_whole(page, make_page(read_filter_records(out)).encode("utf-8"))
    typer.echo(f"The page is {page}.", err=True)


if __name__ == "__main__":
    runs.run_app(app)
