"""Word alignments by eflomal, a separate program (`pip install 'relakit[reproduce]'`)."""

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
from relakit.reproduce.runs import fingerprint_of

PROGRAM: Final = "eflomal-align"
PRIORS_PROGRAM: Final = "eflomal-makepriors"
FORWARD, REVERSE = "forward", "reverse"
_TEXTS: Final = ("-s", "source", "-t", "target")
_LINKS: Final = ("-f", FORWARD, "-r", REVERSE)


@dataclass(frozen=True)
class TwoWayLinks:
    """Links of one pair in both directions, source word first in both."""

    forward: Links
    reverse: Links


def why_no_eflomal() -> str | None:
    """Why eflomal cannot find links here, if it cannot."""
    if _program() is None:
        return f"there is no {PROGRAM}: pip install 'relakit[reproduce]'"
    return None


def eflomal_links(
    others: Iterable[AnalysisPair], pairs: list[AnalysisPair], cache: Path
) -> list[TwoWayLinks]:
    """The links that eflomal finds for ``pairs`` when it aligns them together with ``others``.

    Args:
        others: more pairs to learn from.
        pairs: the pairs whose links are wanted.
        cache: a folder for the links of these and of other texts. They are kept, as eflomal draws
            random numbers.
    """
    texts = _in_words([*others, *pairs])
    folder = cache / fingerprint_of(texts)
    if not folder.exists():
        _align(texts, keep=len(pairs), folder=folder)
    both = zip(read_pharaoh(folder / FORWARD), read_pharaoh(folder / REVERSE), strict=True)
    return [TwoWayLinks(a.sure, b.sure) for a, b in both]


def _align(texts: list[tuple[str, str]], *, keep: int, folder: Path) -> None:
    """Align all pairs, and write the links of the last ``keep`` pairs in both directions."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        _write_texts(work, texts)
        # -l 5: five times as many iterations as usual, for steady links.
        _run(work, PROGRAM, "-l", "5", *_TEXTS, *_LINKS, "--overwrite")
        if folder.exists():
            return  # another run was faster: all are to be compared with the same links
        with whole_folder(folder) as whole:
            for direction in (FORWARD, REVERSE):
                lines = (work / direction).read_text(encoding="utf-8").splitlines()[-keep:]
                _write(whole / direction, lines)


def eflomal_scores(
    learned: Iterable[AnalysisPair], pairs: Iterable[AnalysisPair]
) -> list[tuple[float, float]]:
    """How unlikely pairs are in both directions, given the words that ``learned`` has linked.

    OpusFilter's word alignment filter uses these scores, with the same settings: low is good.
    """
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        _write_texts(work, _in_words(learned))
        _run(work, PROGRAM, *_TEXTS, *_LINKS, "--overwrite")
        _run(work, PRIORS_PROGRAM, *_TEXTS, *_LINKS, "--priors", "priors")
        _write_texts(work, _in_words(pairs))
        _run(work, PROGRAM, *_TEXTS, "-F", FORWARD, "-R", REVERSE, "-p", "priors", "--overwrite")
        forward, reverse = (
            map(float, (work / file).read_text(encoding="utf-8").split())
            for file in (FORWARD, REVERSE)
        )
        return list(zip(forward, reverse, strict=True))


def _run(folder: Path, program: str, *arguments: str) -> None:
    """Run a program in a folder; ValueError if it fails."""
    path = _program(program) or program
    done = subprocess.run(
        [path, *arguments], cwd=folder, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise ValueError(f"{path} ended with status {done.returncode}: {done.stderr.strip()}")


def _in_words(pairs: Iterable[AnalysisPair]) -> list[tuple[str, str]]:
    """Both sides, with spaces between words."""
    return [
        (_words(pair.source, pair.source_words), _words(pair.target, pair.target_words))
        for pair in pairs
    ]


def _write_texts(folder: Path, texts: list[tuple[str, str]]) -> None:
    _write(folder / "source", (source for source, _ in texts))
    _write(folder / "target", (target for _, target in texts))


def _words(text: str, spans: Iterable[tuple[int, int]]) -> str:
    return " ".join(text[start:end].lower() for start, end in spans)


def _write(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def _program(name: str = PROGRAM) -> str | None:
    """The path of the program, next to our Python or else on the search path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name)
