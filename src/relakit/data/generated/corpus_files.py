"""The generated corpus as a folder of text files.

::

    SPLIT.en, SPLIT.de              text, one sentence per line
    SPLIT.links                     gold word alignments: "0-0 1-2", words counted from 0
    SPLIT.en.tags, SPLIT.de.tags    a part-of-speech tag per word
    train.noise                     with noise: "clean", or the kind, a tab and what was done
    generated.json                  the settings and the counts
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from relakit.data.generated.noise import plant_noise
from relakit.data.generated.pairs import GeneratedPair, generate_pairs
from relakit.data.generator_settings import SEED, Split, known_split
from relakit.data.noise_draw import CLEAN, NoiseKind, check_shares
from relakit.data.stages import OnStage, ignore_stage
from relakit.files.locks import locked
from relakit.files.output_paths import GENERATED, check_output_folder
from relakit.files.writing import whole_file, whole_folder, write_whole

DOCUMENT_NAME: Final = GENERATED.marker
FORMAT: Final = "relakit generated corpus"
VERSION: Final = 1
LANGUAGES: Final = ("en", "de")
"""The languages of a pair's source and target."""
_ENDINGS: Final = (*LANGUAGES, "links", *(f"{language}.tags" for language in LANGUAGES))
_STEP: Final = 1000
"""Pairs between two calls to ``on_stage``."""
_NO_NOISE: Final[Mapping[NoiseKind, float]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class GeneratedCounts:
    """What a split holds."""

    pairs: int
    source_words: int
    target_words: int
    links: int
    noise: dict[str, int]
    """Noisy pairs of each kind."""


def write_corpus(
    folder: str | os.PathLike[str],
    *,
    sizes: Mapping[Split, int],
    seed: int = SEED,
    noise: Mapping[NoiseKind, float] = _NO_NOISE,
    replace: bool = False,
    on_stage: OnStage = ignore_stage,
) -> dict[Split, GeneratedCounts]:
    """Generate the splits named in ``sizes`` into a folder, which appears when it is complete.

    Args:
        folder: where to write.
        sizes: the number of sentence pairs in each split.
        seed: different seeds give different sentences.
        noise: the share of training pairs to make noisy in each way. Other splits stay clean, so
            that scores on them mean something.
        replace: replace a corpus that was generated earlier.
        on_stage: called with the progress of the work.

    Memory does not grow with the training split.

    Raises:
        FileExistsError: the folder exists, and ``replace`` is False or it holds something else.
        BusyError: another process is generating a corpus in it.
    """
    folder = Path(folder)
    for split, size in sizes.items():
        if size < 1:
            raise ValueError(f"{known_split(split)} must have at least 1 pair, got {size}")
        known_split(split)
    check_shares(noise)
    check_output_folder(folder, GENERATED, parts=_own_names(folder), replace=replace)
    counts: dict[Split, GeneratedCounts] = {}
    with locked(folder, beside=True), whole_folder(folder) as unfinished:
        for split, size in sizes.items():
            pairs = generate_pairs(size, seed=seed, split=split)
            is_noisy = split == "train" and any(noise.values())
            if is_noisy:
                pairs = plant_noise(pairs, shares=noise, seed=seed)
            counts[split] = _write_split(unfinished, split, pairs, size, is_noisy, on_stage)
        document = {
            "format": FORMAT,
            "version": VERSION,
            "seed": seed,
            "noise": dict(noise),
            "splits": {split: asdict(its_counts) for split, its_counts in counts.items()},
        }
        text = json.dumps(document, indent=1) + "\n"
        write_whole(unfinished / DOCUMENT_NAME, text.encode())
    return counts


def _own_names(folder: Path) -> set[str]:
    """The files that belong to the generated corpus in a folder; none if there is no such corpus.

    Text files with the same names may be the user's own corpus.
    """
    try:
        document = json.loads((folder / DOCUMENT_NAME).read_bytes())
        if document["format"] != FORMAT:
            return set()
        splits: list[str] = list(document["splits"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    names = {f"{split}.{ending}" for split in splits for ending in (*_ENDINGS, "noise")}
    return {DOCUMENT_NAME, *names}


def _write_split(
    folder: Path,
    split: Split,
    pairs: Iterator[GeneratedPair],
    size: int,
    is_noisy: bool,
    on_stage: OnStage,
) -> GeneratedCounts:
    stage = f"generating {split}"
    on_stage(stage, 0, size)
    source_words = target_words = links = 0
    noise: Counter[str] = Counter()
    endings = (*_ENDINGS, "noise") if is_noisy else _ENDINGS
    with ExitStack() as stack:
        files = [
            stack.enter_context(whole_file(folder / f"{split}.{ending}")) for ending in endings
        ]
        for number, pair in enumerate(pairs, start=1):
            # Without noise there is no file for the last field, the label.
            for file, field in zip(files, _fields(pair), strict=False):
                file.write(f"{field}\n".encode())
            source_words += len(pair.source)
            target_words += len(pair.target)
            links += len(pair.links)
            if pair.noise is not None:
                noise[pair.noise.kind] += 1
            if number % _STEP == 0 or number == size:
                on_stage(stage, number, size)
    return GeneratedCounts(
        pairs=size,
        source_words=source_words,
        target_words=target_words,
        links=links,
        noise=dict(sorted(noise.items())),
    )


def _fields(pair: GeneratedPair) -> tuple[str, ...]:
    return (
        pair.source_text,
        pair.target_text,
        " ".join([f"{left}-{right}" for left, right in pair.links]),
        " ".join(pair.source_tags),
        " ".join(pair.target_tags),
        CLEAN if pair.noise is None else f"{pair.noise.kind}\t{pair.noise.what}",
    )
