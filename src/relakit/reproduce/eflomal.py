"""Word alignments by eflomal, a program of its own (`pip install 'relakit[reproduce]'`)."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.analysis import AnalysisPair, read_pharaoh
from relakit.analysis.links import Links
from relakit.files.writing import whole_folder, write_whole

PROGRAM: Final = "eflomal-align"
FORWARD, REVERSE = "forward", "reverse"


@dataclass(frozen=True)
class TwoWayLinks:
    """Links of one pair in both directions, source word first in both."""

    forward: Links
    reverse: Links


def why_no_eflomal() -> str | None:
    """Why there can be no links by eflomal, if there can be none."""
    if _program() is None:
        return f"there is no {PROGRAM}: pip install 'relakit[reproduce]'"
    return None


def eflomal_links(
    others: Iterable[AnalysisPair], pairs: list[AnalysisPair], cache: Path
) -> list[TwoWayLinks]:
    """The links of ``pairs``, which eflomal finds on ``others`` and them together.

    Args:
        others: more pairs to learn from; read only if the links are not there yet.
        pairs: those whose links are wanted.
        cache: a folder for the links, which are kept: eflomal draws random numbers.
    """
    if not cache.exists():
        _align([*others, *pairs], keep=len(pairs), folder=cache)
    both = zip(read_pharaoh(cache / FORWARD), read_pharaoh(cache / REVERSE), strict=True)
    return [TwoWayLinks(a.sure, b.sure) for a, b in both]


def _align(pairs: list[AnalysisPair], *, keep: int, folder: Path) -> None:
    """Align all pairs, and write the links of the last ``keep`` of them in both directions."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        _write(work / "source", (_words(p.source, p.source_words) for p in pairs))
        _write(work / "target", (_words(p.target, p.target_words) for p in pairs))
        # -l 5: five times as many iterations as usual, for steady links.
        command = [_program() or PROGRAM, "-l", "5", "-s", "source", "-t", "target"]
        done = subprocess.run(
            [*command, "-f", FORWARD, "-r", REVERSE, "--overwrite"],
            cwd=work,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ValueError(
                f"{command[0]} ended with status {done.returncode}: {done.stderr.strip()}"
            )
        if folder.exists():
            return  # another run was faster: all are to be compared with the same links
        with whole_folder(folder) as whole:
            for direction in (FORWARD, REVERSE):
                lines = (work / direction).read_text(encoding="utf-8").splitlines()[-keep:]
                _write(whole / direction, lines)


def _words(text: str, spans: Iterable[tuple[int, int]]) -> str:
    return " ".join(text[start:end].lower() for start, end in spans)


def _write(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def _program() -> str | None:
    """The program, beside our Python or on the path."""
    beside = Path(sys.executable).with_name(PROGRAM)
    return str(beside) if beside.is_file() else shutil.which(PROGRAM)
