"""What `relakit filter` leaves in its folder, and what may already be there. No torch here."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from relakit.clean.counted import BLANK
from relakit.clean.cut import Cut
from relakit.clean.measures import Look, Measure
from relakit.clean.score_table import ScoreBlock
from relakit.data.compression import compressed_by_ending
from relakit.data.json_file import read_json
from relakit.data.parallel_files import NumberedPair
from relakit.files.output_paths import FILTERED, check_output_folder
from relakit.files.writing import check_writable, sweep, whole_file
from relakit.shards.ledger import parts_folder
from relakit.shards.receipt import receipt_path
from relakit.shards.run import has_parts

SCORES: Final = "scores.tsv.gz"
PLANTED: Final = "planted.tsv.gz"
PLANTED_SCORES: Final = "planted-scores.tsv.gz"
CALIBRATION: Final = "calibration.json"
REJECTED: Final = "rejected.tsv.gz"
SUMMARY: Final = FILTERED.marker
PAGE: Final = "report.html"
UNSCORED: Final = "no score"
"""Why a pair is rejected that has scores, but not the one it is ranked by."""
_KEPT: Final = re.compile(r"kept\.([\w-]+)(?:\.gz)?")


def kept_anyway(folder: Path, *, planted: bool) -> list[str]:
    """Files of a folder that stay when it is replaced: scores, which take long to compute.

    ``planted``: also those of planted noise, on which the calibration was fitted.
    """
    outputs = [Path(SCORES), *([Path(PLANTED_SCORES)] if planted else [])]
    names = [str(path) for output in outputs for path in (output, receipt_path(output))]
    return [name for name in (*names, *([PLANTED] if planted else [])) if (folder / name).is_file()]


def has_scores(folder: Path) -> bool:
    """Whether a folder has scores of all or some pairs, from which a job can resume."""
    outputs = [folder / name for name in (SCORES, PLANTED_SCORES)]
    return any(output.is_file() or has_parts(output) for output in outputs)


def earlier_languages(folder: Path, inputs: Sequence[Path]) -> tuple[str, str] | None:
    """The languages in the names of pairs already kept from the same files; None if there are none.

    Without a model, nothing else tells the languages.
    """
    path = folder / SUMMARY
    try:
        summary = read_json(path) if path.is_file() else {}
        before = [Path(name).resolve() for name in summary["input"]]
        matches = [_KEPT.fullmatch(name) for name in summary["files"]]
    except (ValueError, KeyError, TypeError):
        return None
    names = [match[1] for match in matches if match]
    if before != [path.resolve() for path in inputs] or len(names) != 2:
        return None
    return names[0], names[1]


def check_filter_folder(folder: Path, *, scores: Path | None) -> None:
    """Raise OSError if a folder certainly cannot be written, or holds what would be lost.

    What an earlier command left, finished or not, may be there; what a killed command was writing
    is removed.

    Args:
        folder: the folder that will be written.
        scores: a table that was given; None: the scores in the folder are used, or finished.
    """
    target = Path(os.path.realpath(folder))
    sweep(target.parent, target.name)  # left by a command killed while it replaced the folder
    sweep(target)
    found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    parts = set(kept_anyway(folder, planted=True))
    unfinished = [str(parts_folder(Path(name))) for name in (SCORES, PLANTED_SCORES)]
    if scores is None:
        parts |= {*unfinished}
    elif SCORES in found and not (scores.exists() and scores.samefile(folder / SCORES)):
        raise FileExistsError(
            f"{folder} holds other scores ({SCORES}) than --scores {scores}, which would be lost; "
            "remove them, or choose another folder"
        )
    elif unfinished[0] in found:
        raise FileExistsError(
            f"{folder} holds scores that are not finished ({unfinished[0]}); give the command "
            "again that made them, or choose another folder"
        )
    if SUMMARY in found:
        parts |= {CALIBRATION, REJECTED, SUMMARY, PAGE, *filter(_KEPT.fullmatch, found)}
    check_output_folder(folder, FILTERED, parts=parts | {unfinished[1]}, replace=True)
    check_writable(folder, is_folder=True)


@contextmanager
def empty_folder_removed(folder: Path) -> Iterator[None]:
    """Leave no folder behind if the block fails before anything worth keeping was done."""
    was_there = folder.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            with suppress(OSError):  # something is in it, or it was never made
                folder.rmdir()
        raise


def kept_names(languages: tuple[str, str] | None, *, compress: bool) -> tuple[str, str]:
    """The names of the files with the kept pairs."""
    ending = ".gz" if compress else ""
    source, target = languages or ("source", "target")
    if source == target or not all(re.fullmatch(r"[\w-]+", name) for name in (source, target)):
        source, target = "source", "target"
    return f"kept.{source}{ending}", f"kept.{target}{ending}"


@dataclass
class FilterCounts:
    """How many pairs were kept, and why others were not."""

    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def rejected(self) -> int:
        return self.reasons.total()

    @property
    def pairs(self) -> int:
        return self.kept + self.rejected


class PairWriter:
    """Writes pairs to the files where they belong."""

    def __init__(self, kept: tuple[BinaryIO, BinaryIO], rejected: BinaryIO) -> None:
        self._kept = kept
        self._rejected = rejected
        self.counts: Final = FilterCounts()

    def write(self, pairs: list[NumberedPair], block: ScoreBlock, look: Look, cut: Cut) -> None:
        """Write the pairs of a block."""
        for place, pair in enumerate(pairs):
            if cut.kept[block.start + place]:
                self.counts.kept += 1
                for file, text in zip(self._kept, pair.texts, strict=True):
                    file.write(text.encode() + b"\n")
                continue
            kind, value, reason = why_rejected(block, place, look, cut)
            self.counts.reasons[kind] += 1
            # A tab in a text would add a column.
            texts = (text.replace("\t", " ") for text in pair.texts)
            cells = (str(pair.number), value, reason, *texts)
            self._rejected.write(("\t".join(cells) + "\n").encode())


def why_rejected(block: ScoreBlock, place: int, look: Look, cut: Cut) -> tuple[str, str, str]:
    """A word to count by, the number the pair is ranked by, and the reason in words."""
    if block.is_blank[place]:
        return BLANK, "", BLANK
    badness = cut.badness[block.start + place]
    if badness != badness:  # NaN
        return UNSCORED, "", UNSCORED
    return look.kind(place), f"{look.value(place):.6g}", look.reason(place, cut.limit)


@contextmanager
def pair_writer(folder: Path, names: tuple[str, str], measure: Measure) -> Iterator[PairWriter]:
    """A writer into files of a folder, which are whole at the end."""
    with ExitStack() as stack:

        def opened(name: str) -> BinaryIO:
            path = folder / name
            file = stack.enter_context(whole_file(path))
            return stack.enter_context(compressed_by_ending(path, file))

        kept = opened(names[0]), opened(names[1])
        rejected = opened(REJECTED)
        rejected.write(f"line\t{measure.name}\treason\tsource\ttarget\n".encode())
        yield PairWriter(kept, rejected)
