"""Word alignments to compare attention with: by people, by the generator, or by eflomal."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from relakit.analysis import AnalysisPair, GoldAlignment, read_gold, read_pharaoh
from relakit.analysis.word_map import join_words
from relakit.data.parallel_files import ParallelFiles, read_pairs
from relakit.files.writing import whole_folder, write_whole
from relakit.reproduce.corpora import Corpus
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe import Recipe

RWTH: Final = "alignment-rwth-de-en"
"""The paper's set: German-English, 508 pairs; its folder under the data."""
RWTH_FILES: Final = "test.{}.gz"
ALIGNER: Final = "eflomal-align"


def rwth_pairs(data: Path, corpus: Corpus) -> list[AnalysisPair]:
    """The paper's gold set in the direction of a German and English corpus.

    Its words have spaces around them. The models have learnt from ordinary text, so it is written
    as that.
    """
    folder = data / RWTH
    source, target, talp = (
        folder / RWTH_FILES.format(name) for name in (corpus.source, corpus.target, "talp")
    )
    texts = list(read_pairs(ParallelFiles(source, target)))
    links = list(read_gold(talp, format="talp"))
    if len(links) != len(texts):
        raise ValueError(
            f"{source} has {len(texts):,} lines, {talp} has {len(links):,}: each must be about one "
            "sentence pair"
        )
    if corpus.source == "en":  # the file names the German word first
        links = [one.reversed() for one in links]
    return [_joined(*text, gold) for text, gold in zip(texts, links, strict=True)]


def _joined(source: str, target: str, gold: GoldAlignment) -> AnalysisPair:
    source_text, source_words = join_words(source.split())
    target_text, target_words = join_words(target.split())
    return AnalysisPair(source_text, target_text, source_words, target_words, gold)


def why_no_silver() -> str | None:
    """Why there can be no links by eflomal, if there can be none."""
    if _aligner() is None:
        return f"there is no {ALIGNER}: pip install 'relakit[reproduce]'"
    return None


def silver_pairs(recipe: Recipe, cache: Path) -> list[AnalysisPair]:
    """The test set with eflomal's links, which were found on all pairs of the corpus together.

    Links of both directions are sure, those of one direction possible.

    Args:
        recipe: whose corpus to align.
        cache: a folder for the links, which are kept: eflomal draws random numbers.
    """
    test = split_pairs(recipe, "test")
    if not cache.exists():
        others = [*split_pairs(recipe, "train"), *split_pairs(recipe, "valid")]
        _align([*others, *test], keep=len(test), folder=cache)
    both = zip(read_pharaoh(cache / "forward"), read_pharaoh(cache / "reverse"), strict=True)
    silver = [GoldAlignment(a.sure & b.sure, a.sure | b.sure) for a, b in both]
    return [replace(pair, gold=gold) for pair, gold in zip(test, silver, strict=True)]


def _align(pairs: list[AnalysisPair], *, keep: int, folder: Path) -> None:
    """Align all pairs, and write the links of the last ``keep`` of them in both directions."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        _write(work / "source", (_words(p.source, p.source_words) for p in pairs))
        _write(work / "target", (_words(p.target, p.target_words) for p in pairs))
        # -l 5: five times as many iterations as usual, for steady links.
        command = [_aligner() or ALIGNER, "-l", "5", "-s", "source", "-t", "target"]
        done = subprocess.run(
            [*command, "-f", "forward", "-r", "reverse", "--overwrite"],
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
            for direction in ("forward", "reverse"):
                lines = (work / direction).read_text(encoding="utf-8").splitlines()[-keep:]
                _write(whole / direction, lines)


def _words(text: str, spans: Iterable[tuple[int, int]]) -> str:
    return " ".join(text[start:end].lower() for start, end in spans)


def _write(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def _aligner() -> str | None:
    """The program, beside our Python or on the path."""
    beside = Path(sys.executable).with_name(ALIGNER)
    return str(beside) if beside.is_file() else shutil.which(ALIGNER)
