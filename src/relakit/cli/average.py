"""`relakit average`: make a model from the checkpoints of a run."""

from pathlib import Path
from typing import Annotated

import typer

from relakit.cli.consoles import results_console

WHICH = "Which checkpoints"


def average(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The folder of a training run.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="MODEL", help="The model directory to write."),
    ],
    checkpoints: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Names such as update-0012000, update numbers, or paths, including those of other "
            "runs of the same model. \\[default: the last ones, as at the end of training]",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many of the last checkpoints to average.", rich_help_panel=WHICH
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="The run's tokenizer.json. \\[default: from its corpus]", dir_okay=False),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing model directory.")
    ] = False,
) -> None:
    """Make a model by averaging the weights of a run's checkpoints, whether it is finished or not.

    For example: relakit average runs/mine --last 3 --out runs/mine/model-3
    """
    from relakit.files.output_paths import refuse_inputs
    from relakit.train.averaging import average_run

    refuse_inputs("--out", out, {"RUN": run, "--tokenizer": tokenizer})
    model = average_run(
        run, out, names=checkpoints or (), last=last, tokenizer=tokenizer, replace=force
    )
    names = ", ".join(checkpoint.folder.name for checkpoint in model.checkpoints)
    console = results_console()
    console.print(f"averaged: {names}", soft_wrap=True)
    console.print(f"model: {model.folder}", soft_wrap=True)
