"""What is in a folder, hidden leftovers included."""

from pathlib import Path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
