"""What an output path already holds: inputs that must not be lost, or another kind of folder."""

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder that relakit writes, and the file that identifies it."""

    name: str
    marker: str

    def is_at(self, folder: Path) -> bool:
        return (folder / self.marker).is_file()


RUN: Final = FolderKind("a training run", "recipe.json")
PREPARED: Final = FolderKind("a prepared corpus", "corpus.json")
GENERATED: Final = FolderKind("a generated corpus", "generated.json")
MODEL: Final = FolderKind("a model directory", "config.json")
CHECKPOINT: Final = FolderKind("a checkpoint", "state.json")
FILTERED: Final = FolderKind("a filtered corpus", "filter.json")
REPORT: Final = FolderKind("a report", "report.html")
BENCHMARK: Final = FolderKind("results of a benchmark", "results.json")
FOLDER_KINDS: Final = (RUN, PREPARED, GENERATED, MODEL, CHECKPOINT, FILTERED, REPORT, BENCHMARK)


def what_is_in(folder: Path, *, but: FolderKind | None = None) -> str | None:
    """What relakit wrote into a folder, as in "a training run (recipe.json)"; None if nothing.

    ``but`` is a kind that is allowed to be there.
    """
    found = (kind for kind in FOLDER_KINDS if kind != but and kind.is_at(folder))
    return next((f"{kind.name} ({kind.marker})" for kind in found), None)


def check_is_folder(folder: Path, kind: FolderKind) -> None:
    """Raise FileExistsError if a file is where the folder should go."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; {kind.name} needs a folder")


def check_output_folder(
    folder: Path,
    kind: FolderKind,
    *,
    parts: Collection[str],
    replace: bool,
    advice: str = "choose another folder",
) -> None:
    """Refuse to replace a folder unless it is empty or of the given kind.

    Args:
        folder: the folder that will be written.
        kind: what it may hold if ``replace`` is True.
        parts: names of the files and folders that belong to that kind.
        replace: whether to replace a folder of that kind.
        advice: what the user should do if the folder holds anything else.

    Raises:
        FileExistsError: names what the folder holds.
    """
    check_is_folder(folder, kind)
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    foreign = sorted(names - {*parts})
    if foreign:
        what = what_is_in(folder, but=kind) or repr(foreign[0])
        raise FileExistsError(
            f"{folder} holds {what}, which is not part of {kind.name} and would be lost; {advice}"
        )
    if names and not replace:
        raise FileExistsError(
            f"{folder} holds {kind.name} already; --force replaces it, or choose another folder"
        )


def refuse_inputs(
    option: str, output: Path, inputs: Mapping[str, Path | Sequence[Path] | None]
) -> None:
    """Refuse to overwrite an input, under any name: links lead to the same file.

    Args:
        option: the option that names ``output``, such as ``--output``.
        output: the file or folder that will be written.
        inputs: files and folders that will be read, keyed by the option that names them.

    Raises:
        ValueError: names the output and the input.
    """
    for name, given in inputs.items():
        for path in [given] if isinstance(given, Path) else given or ():
            _refuse_input(option, output, name, path)


def _refuse_input(option: str, output: Path, name: str, path: Path) -> None:
    if _is_same(output, path):
        raise ValueError(
            f"{option} {output} is also {name} {path}, which would be overwritten; choose another "
            "name"
        )
    if output.is_dir() and path.exists() and _is_inside(path, output):
        raise ValueError(
            f"{option} {output} holds {name} {path}, which would be lost; choose another folder"
        )
    if path.is_dir() and output.is_file() and _is_inside(output, path):
        raise ValueError(
            f"{option} {output} is a part of {name} {path}, which would be damaged; choose another "
            "name"
        )


def _is_same(output: Path, path: Path) -> bool:
    """Whether writing one changes the other; a terminal or /dev/null may safely be both."""
    try:
        one, other = os.stat(output), os.stat(path)
    except OSError:
        return False
    is_kept = stat.S_ISREG(one.st_mode) or stat.S_ISDIR(one.st_mode)
    return is_kept and os.path.samestat(one, other)


def _is_inside(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents
