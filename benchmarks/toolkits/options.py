"""Options that training and decoding have in common."""

from pathlib import Path
from typing import Annotated

import typer

from runs import WHAT

PeerPython = Annotated[
    Path,
    typer.Option(help="The Python that has the peers installed.", rich_help_panel=WHAT),
]
PeerScripts = Annotated[
    Path, typer.Option(help="Folder with the peers' worker scripts.", rich_help_panel=WHAT)
]
Corpus = Annotated[
    Path | None,
    typer.Option(
        help="Folder written by `relakit prepare`. \\[default: a generated corpus]",
        file_okay=False,
        rich_help_panel=WHAT,
    ),
]
