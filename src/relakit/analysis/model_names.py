"""The names of models in an analysis. No torch here."""

from collections.abc import Sequence
from pathlib import Path


def name_models(folders: Sequence[Path]) -> list[str]:
    """A distinct name for each model directory."""
    resolved = [folder.resolve() for folder in folders]
    # The folder of a run's model is always called "model".
    names = [path.parent.name if path.name == "model" else path.name for path in resolved]
    if len(set(names)) == len(names):
        return names
    return [f"{name} {number}" for number, name in enumerate(names, start=1)]
