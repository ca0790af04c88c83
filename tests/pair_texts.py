"""Sentence pairs written to two text files, and the options that name these."""

from collections.abc import Sequence
from pathlib import Path

from relakit.data.parallel_files import ParallelFiles


def write_pairs(
    folder: Path, pairs: Sequence[tuple[str, str]], name: str = "text"
) -> ParallelFiles:
    """Write ``folder/name.en`` and ``folder/name.de``."""
    paths = folder / f"{name}.en", folder / f"{name}.de"
    for number, path in enumerate(paths):
        path.write_text("".join(f"{pair[number]}\n" for pair in pairs))
    return ParallelFiles(*paths)


def pair_options(files: ParallelFiles) -> list[object]:
    """What a command is given to read them."""
    return ["--source", files.source, "--target", files.target]
