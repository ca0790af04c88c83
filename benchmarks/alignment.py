"""Word alignment: attention, alignment layers and eflomal against gold links.

python benchmarks/alignment.py --help
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Final

import typer

import runs
from alignment_study.material import EUROPARL, RECIPES, STUDIES, Material
from alignment_study.page import make_page
from alignment_study.records import AlignmentRecord, read_alignment_records, write_record
from alignment_study.systems import ATTENTIONS, REVERSE, Learning, ModelStudy, measure_eflomal
from relakit.files.writing import write_whole
from relakit.train.result import read_verdict
from relakit.train.run_folder import RESULT
from runs import HOW, OUTPUT, WHAT, ResultsFolder

app = runs.new_app()

RESULTS: Final = Path("results/alignment")
MODELS: Final = Path("runs/alignment")


@app.command()
def alignment(
    study: Annotated[
        str, typer.Argument(metavar="|".join(STUDIES), help="The corpus.", show_default=False)
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="Folder with europarl-en-de/ and alignment-rwth-de-en/, see docs/reproduction.md.",
            rich_help_panel=WHAT,
        ),
    ] = Path("data"),
    models: Annotated[
        Path,
        typer.Option(
            help="Folder with one folder per study, which holds one folder per model: "
            f"{', '.join(ATTENTIONS)}, and the same names with {REVERSE} for the other direction. "
            "Missing models are left out.",
            rich_help_panel=WHAT,
        ),
    ] = MODELS,
    train: Annotated[
        bool,
        typer.Option(
            "--train",
            help="Train the missing models; each europarl model takes two hours.",
            rich_help_panel=HOW,
        ),
    ] = False,
    eflomal: Annotated[
        bool, typer.Option(help="Compare with eflomal.", rich_help_panel=WHAT)
    ] = True,
    layer_pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The most pairs that alignment layers learn from. \\[default: all]",
            rich_help_panel=HOW,
        ),
    ] = None,
    layer_epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over these pairs. \\[default: depends on their number]",
            rich_help_panel=HOW,
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Folder to keep the models with the chosen heads and alignment layers in, for "
            "benchmarks/filtering.py. \\[default: they are thrown away]",
            file_okay=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    out: ResultsFolder = RESULTS,
) -> None:
    """Score several ways to align words against gold links, and write a page about them."""
    material = Material.of(study, data)
    if keep is not None and any(keep.glob("*")):
        raise ValueError(f"--keep must name an empty or a new folder, and {keep} holds files")
    folder = models / study
    if train:
        _train(material, folder)
    there = [attention for attention in ATTENTIONS if (folder / attention).is_dir()]
    if not there and not eflomal:
        raise ValueError(
            f"{folder} has no model named {' or '.join(ATTENTIONS)}; --train makes them"
        )
    if eflomal:
        for record in measure_eflomal(material, folder / "eflomal-links"):
            _write(out, record)
    learning = Learning(pairs=layer_pairs, epochs=layer_epochs)
    for attention in there:
        with tempfile.TemporaryDirectory() as temporary:
            one = ModelStudy(material, attention, folder, keep or Path(temporary))
            for records in (one.averages(), one.attention(), one.layers(learning)):
                for record in records:
                    _write(out, record)
    typer.echo(f"The page is {_write_page(out)}.", err=True)


def _write(out: Path, record: AlignmentRecord) -> None:
    write_record(out, record)
    _write_page(out)
    typer.echo(f"{record.system}, {record.way}: AER {record.aer.value:.3f}", err=True)


def _write_page(out: Path) -> Path:
    page = out.parent / f"{out.name}.md"
    write_whole(page, make_page(read_alignment_records(out)).encode("utf-8"))
    return page


def _train(material: Material, folder: Path) -> None:
    """Train the missing models with `relakit train`; interrupted runs are resumed."""
    for attention in ATTENTIONS:
        for reverse in (False, True):
            out = folder / f"{attention}{REVERSE if reverse else ''}"
            command = [sys.executable, "-m", "relakit", "train", RECIPES[material.name]]
            command += ["--out", str(out), "--set", f"model.attention={attention}"]
            if material.name == EUROPARL:
                command += ["--set", f'data.folder="{material.recipe.data.folder}"']
            if read_verdict(out / RESULT) == "finished":
                continue
            command += [
                *(["--reverse"] if reverse else []),
                *(["--resume"] if out.exists() else []),
            ]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    runs.run_app(app)
