"""The options of commands that translate, and the translator they ask for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relakit.decode.settings import PRECISIONS, known_precision

if TYPE_CHECKING:
    from relakit.decode.translator import Translator

SEARCH, COMPUTATION = "The search", "The computation"

Beam = Annotated[
    int,
    typer.Option(
        help="Hypotheses that are followed at once; 1 is greedy search.", rich_help_panel=SEARCH
    ),
]
LengthPenalty = Annotated[
    float,
    typer.Option(
        help="alpha in log-probability / ((5 + length) / 6)^alpha.", rich_help_panel=SEARCH
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        help="Most tokens in a translation. \\[default: twice as many as in its source, plus 20]",
        rich_help_panel=SEARCH,
    ),
]
BatchTokens = Annotated[
    int,
    typer.Option(
        help="Source tokens, padding included, that are translated at once.",
        rich_help_panel=COMPUTATION,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(help="CPU threads. \\[default: PyTorch's choice]", rich_help_panel=COMPUTATION),
]
PrecisionName = Annotated[
    str,
    typer.Option(
        metavar="|".join(PRECISIONS),
        help="int8: weights of one byte, the fastest on a CPU; scores differ a little. auto: bf16 "
        "where the device computes with it, else fp32.",
        rich_help_panel=COMPUTATION,
    ),
]
Device = Annotated[str, typer.Option(help="Such as cpu or cuda:0.", rich_help_panel=COMPUTATION)]


def load_translator(
    model: Path, *, threads: int | None, precision: str, device: str
) -> "Translator":
    """Read a model directory and set PyTorch's threads; ValueError if the device cannot be used."""
    import torch

    from relakit.decode.translator import Translator

    if threads is not None:
        if threads < 1:
            raise ValueError(f"--threads must be at least 1, got {threads}")
        torch.set_num_threads(threads)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {device!r} cannot be used: {reason}") from None
    return Translator.load(model, device=device, precision=known_precision(precision))
