"""Shell completion of model directories and recipes. Where there are none, shells offer files.

It is fast and does not load torch: the user has pressed a key and is waiting.
"""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from relakit.model.description import WEIGHTS_FILE
from relakit.recipes import recipe_names

DEPTH: Final = 3
"""How deep to look below the folder that was typed: runs, a run, its model."""
MOST_FOLDERS: Final = 3000
"""How many folders to look at, at most: a key press must not search a whole disk."""


def complete_model(incomplete: str) -> list[str]:
    """Whole paths of model directories: from "ru" to "runs/first/model"."""
    start = Path(os.path.expanduser(incomplete))
    parent = start if incomplete.endswith(os.sep) or not incomplete else start.parent
    beginning = "" if parent == start or not incomplete else start.name
    prefix = incomplete[: len(incomplete) - len(beginning)]
    folders = islice(_folders_below(parent, beginning), MOST_FOLDERS)
    models = (path for path in folders if (path / WEIGHTS_FILE).is_file())
    return sorted(f"{prefix}{path.relative_to(parent)}" for path in models)


def _folders_below(parent: Path, beginning: str, depth: int = 1) -> Iterator[Path]:
    """Folders whose first part starts with ``beginning``; the parent's own come first."""
    try:
        entries = sorted(entry.name for entry in os.scandir(parent) if entry.is_dir())
    except OSError:
        return
    is_hidden_wanted = beginning.startswith(".")
    chosen = [
        parent / name
        for name in entries
        if name.startswith(beginning) and (is_hidden_wanted or not name.startswith("."))
    ]
    yield from chosen
    if depth < DEPTH:
        for folder in chosen:
            yield from _folders_below(folder, "", depth + 1)


def complete_recipe(incomplete: str) -> list[str]:
    """The recipes that come with relakit, and TOML files."""
    names = [name for name in recipe_names() if name.startswith(incomplete)]
    path = Path(incomplete)
    folder = path if incomplete.endswith(os.sep) or not incomplete else path.parent
    prefix = incomplete[: incomplete.rfind(os.sep) + 1]
    files = sorted(
        f"{prefix}{file.name}" for file in Path(os.path.expanduser(folder)).glob("*.toml")
    )
    return names + [file for file in files if file.startswith(incomplete)]
