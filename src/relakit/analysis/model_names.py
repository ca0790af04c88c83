"""What models are called in an analysis; found without torch."""

from collections.abc import Sequence
from pathlib import Path


def name_models(folders: Sequence[Path]) -> list[str]:
    """A name for each model directory, by which they can be told apart."""
    resolved = [folder.resolve() for folder in folders]
    # A run's model is in a folder that is always called "model".
    names = [path.parent.name if path.name == "model" else path.name for path in resolved]
    if len(set(names)) == len(names):
        return names
    return [f"{name} {number}" for number, name in enumerate(names, start=1)]
