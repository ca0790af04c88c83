"""Pairs that are assumed to be clean, and noise planted in them. No torch here."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from relakit.amounts import number_with_noun
from relakit.clean.calibration_features import RATIO_COLUMNS
from relakit.clean.score_table import Numbers, ScoreTable
from relakit.data.compression import compressed_by_ending
from relakit.data.noise_draw import CLEAN, NOISE_KINDS, NoiseKind
from relakit.data.parallel_files import NumberedPair, ParallelFiles, read_numbered_pairs
from relakit.data.planted_noise import plant_text_noise
from relakit.files.writing import whole_file
from relakit.limits import MAX_LINE_BYTES

FEWEST_PAIRS: Final = 200
"""Fewest clean pairs; with fewer there is too little to learn from."""
POOL: Final = 50_000
"""How many pairs a sample is chosen from, so that memory does not grow with the corpus."""
FEWEST_WORDS: Final = 3
"""Fewest words on each side: hardly any noise can be planted in shorter pairs."""
MOST_RATIO: Final = 2.0
"""How many times longer or shorter than usual a clean target may be."""
NOISE_SHARES: Final[Mapping[NoiseKind, float]] = dict.fromkeys(NOISE_KINDS, 0.18)
"""Share of pairs that each kind of noise is planted in; the others lend it their words."""
MOST_BYTES: Final = MAX_LINE_BYTES // 4
"""Most bytes on each side, as a table line must hold source, target and what is inserted there."""
EITHER_SIDE: Final[tuple[NoiseKind, ...]] = ("language", "copied")
"""Noise that is planted in sources as often as in targets: it looks the same on the other side."""
HELD_OUT: Final = 3
"""Every third pair is held out from the fit."""

PartName: TypeAlias = Literal["fit", "held out"]
PARTS: Final[tuple[PartName, ...]] = get_args(PartName)
_COLUMNS: Final = ("source", "target", "label", "part", "origin")


@dataclass(frozen=True)
class PlantedPair:
    """A pair whose label is known: clean, or the kind of noise that was planted in it."""

    source: str
    target: str
    label: str
    part: PartName
    origin: int
    """The place in the sample of the clean pair that it was made from"""


def sample_of_corpus(
    table: ScoreTable, files: ParallelFiles, count: int, seed: int
) -> tuple[list[NumberedPair], int]:
    """Pairs of a scored corpus that could be clean, and how many there were to choose from.

    They are spread evenly over the corpus, have a few words on each side, are in their languages if
    that is known, and have lengths that go together. How likely a model finds them is not a
    criterion: clean pairs that it finds hard are clean, too.

    Raises:
        OSError, ValueError: something cannot be read, or there are too few such pairs.
    """
    pool = _Pool(seed)
    rows = 0
    for block in table.blocks():
        rows += len(block)
        pool.add(block.lines, block.numbers, _could_be_clean(block.numbers))
    found = _first_usable(files, pool.lines_with_usual_ratios(), count)
    if len(found) < FEWEST_PAIRS:
        raise ValueError(
            f"{table.path}: {number_with_noun(len(found), 'pair')} of {rows:,} could be clean, "
            f"repetitions left out, and calibrating needs at least {FEWEST_PAIRS}; name clean "
            "pairs with --clean SOURCE TARGET, or cut by --keep or --threshold without --calibrate"
        )
    return found, rows


def sample_of_clean(files: ParallelFiles, count: int, seed: int) -> tuple[list[NumberedPair], int]:
    """Pairs that are known to be clean, spread evenly over their files; and how many there were.

    Raises:
        OSError, ValueError: something cannot be read, or there are too few pairs.
    """
    numbers = np.array(
        [
            pair.number
            for pair in read_numbered_pairs(files)
            if all(len(text.split()) >= FEWEST_WORDS for text in pair.texts)
        ],
        dtype=np.int64,
    )
    order = np.argsort(priorities(numbers, seed), kind="stable")[:POOL]
    found = _first_usable(files, numbers[order], count)
    if len(found) < FEWEST_PAIRS:
        raise ValueError(
            f"--clean {files.source}: it has {number_with_noun(len(found), 'pair')} of "
            f"{FEWEST_WORDS} words or more on each side, repetitions left out, and calibrating "
            f"needs at least {FEWEST_PAIRS}"
        )
    return found, len(numbers)


def plant(sample: Sequence[NumberedPair], seed: int) -> Iterator[PlantedPair]:
    """For each part, every pair as it is, then most of them again with noise.

    Noise takes its words from its own part: fitted pairs lend none to held-out ones.
    """
    for part in PARTS:
        places = [
            n for n in range(len(sample)) if (n % HELD_OUT == HELD_OUT - 1) == (part != "fit")
        ]
        texts = [sample[place].texts for place in places]
        for place, text in zip(places, texts, strict=True):
            yield PlantedPair(*text, CLEAN, part, place)
        for place, (texts_now, label) in zip(places, _noisy(texts, seed), strict=True):
            if label != CLEAN:
                yield PlantedPair(*texts_now, label, part, place)


def _noisy(texts: Sequence[tuple[str, str]], seed: int) -> Iterator[tuple[tuple[str, str], str]]:
    """The texts with noise, in targets or (`EITHER_SIDE`) in sources, and the kind of noise."""
    in_targets = plant_text_noise(texts, seed=seed, shares=NOISE_SHARES)
    reversed_texts = [(target, source) for source, target in texts]
    in_sources = plant_text_noise(reversed_texts, seed=seed, shares=NOISE_SHARES)
    turns: Counter[str] = Counter()
    for pair, mirrored in zip(in_targets, in_sources, strict=True):
        turns[pair.label] += 1
        is_turn = pair.label in EITHER_SIDE and turns[pair.label] % 2 == 0
        if is_turn and mirrored.label == pair.label:
            yield (mirrored.target, mirrored.source), mirrored.label
        else:
            yield pair.texts, pair.label


def write_planted(pairs: Iterable[PlantedPair], path: Path) -> ParallelFiles:
    """Write pairs as a table with column names, and return how to read it as pairs."""
    with whole_file(path) as file, compressed_by_ending(path, file) as packed:
        packed.write(("\t".join(_COLUMNS) + "\n").encode())
        for pair in pairs:
            cells = (pair.source, pair.target, pair.label, pair.part, str(pair.origin))
            packed.write(("\t".join(cells) + "\n").encode())
    return ParallelFiles(path, columns=("source", "target"))


def _could_be_clean(numbers: Mapping[str, Numbers]) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        fits = (numbers["source_words"] >= FEWEST_WORDS) & (numbers["target_words"] >= FEWEST_WORDS)
        for side in ("source_language", "target_language"):
            if side in numbers:
                fits &= ~(numbers[side] < 0)  # an unknown language is no objection
    return fits & ~np.isnan(numbers["cross_entropy"])


class _Pool:
    """A draw of `POOL` lines, each with its length ratios."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lines = np.empty(0, dtype=np.int64)
        self._ratios = np.empty((0, len(RATIO_COLUMNS)))

    def add(
        self,
        lines: npt.NDArray[np.int64],
        numbers: Mapping[str, Numbers],
        which: npt.NDArray[np.bool_],
    ) -> None:
        ratios = np.column_stack([np.log(numbers[name][which]) for name in RATIO_COLUMNS])
        self._lines = np.concatenate([self._lines, lines[which]])
        self._ratios = np.concatenate([self._ratios, ratios])
        if len(self._lines) > 2 * POOL:
            self._draw()

    def _draw(self) -> None:
        order = np.argsort(priorities(self._lines, self._seed), kind="stable")[:POOL]
        self._lines, self._ratios = self._lines[order], self._ratios[order]

    def lines_with_usual_ratios(self) -> npt.NDArray[np.int64]:
        """Lines with usual length ratios, in the order in which they are drawn."""
        self._draw()
        if not len(self._lines):
            return self._lines
        distance = np.abs(self._ratios - np.median(self._ratios, axis=0))
        usual: npt.NDArray[np.int64] = self._lines[(distance <= np.log(MOST_RATIO)).all(axis=1)]
        return usual


def priorities(numbers: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.uint64]:
    """Sort keys for an order that looks random, and depends only on each line and the seed."""
    # The mixing function of SplitMix64 (Steele, Lea and Flood 2014).
    state = numbers.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % (1 << 64))
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = state ^ (state >> np.uint64(31))
    return mixed


def _first_usable(
    files: ParallelFiles, lines: npt.NDArray[np.int64], count: int
) -> list[NumberedPair]:
    """The pairs of the first ``count`` usable lines of these, in the order of their files."""
    usable = {pair.number for pair in _distinct(_of_lines(files, lines))}
    first = np.array([line for line in lines if line in usable][:count])
    return list(_of_lines(files, first))


def _of_lines(files: ParallelFiles, lines: npt.NDArray[np.int64]) -> Iterator[NumberedPair]:
    wanted = set(lines.tolist())
    return (pair for pair in read_numbered_pairs(files) if pair.number in wanted)


def _distinct(pairs: Iterable[NumberedPair]) -> Iterator[NumberedPair]:
    """Each pair once, without those that a table line cannot hold: with a tab, or very long."""
    seen: set[bytes] = set()
    for pair in pairs:
        sides = [text.encode() for text in pair.texts]
        # The texts themselves would take much more memory.
        digest = hashlib.blake2b(b"\n".join(sides), digest_size=16).digest()
        fits = max(map(len, sides)) <= MOST_BYTES and not any(b"\t" in side for side in sides)
        if fits and digest not in seen:
            seen.add(digest)
            yield pair
