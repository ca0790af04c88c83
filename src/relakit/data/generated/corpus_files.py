"""The generated corpus as files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from relakit.data.generated.noise import plant_noise
from relakit.data.generated.pairs import SPLITS, GeneratedPair, Split, generate_pairs


def write_corpus(
    folder: str | Path,
    *,
    sizes: Mapping[Split, int],
    seed: int = 1,
    noise_share: float = 0.0,
) -> list[Path]:
    """Writes the splits named in `sizes`, and returns the files.

    Line by line, for a split such as "train": `train.en` and `train.de`, text; `train.links`, the
    gold alignment ("0-0 1-2"); `train.en.tags` and `train.de.tags`, one tag per word. With noise,
    which goes into the training split only, `train.noise`: the kind of noise, or "clean".
    The files appear when all of them are complete. Memory does not grow with the training split.
    """
    for split in sizes:
        if split not in SPLITS:
            raise ValueError(f"sizes must name splits among {', '.join(SPLITS)}, got {split!r}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished: list[tuple[Path, Path]] = []
    try:
        for split, size in sizes.items():
            pairs = generate_pairs(size, seed=seed, split=split)
            is_noisy = split == "train" and noise_share > 0
            if is_noisy:
                pairs = plant_noise(pairs, share=noise_share, seed=seed)
            unfinished += _write_split(folder, split, pairs, is_noisy)
        for temporary, final in unfinished:
            os.replace(temporary, final)
    finally:
        for temporary in folder.glob(f"*{_suffix()}"):
            temporary.unlink(missing_ok=True)
    if "train" in sizes and not noise_share:
        # Labels of an earlier corpus would be taken for this one's.
        (folder / "train.noise").unlink(missing_ok=True)
    return [final for _, final in unfinished]


def _suffix() -> str:
    return f".unfinished-{os.getpid()}"


def _write_split(
    folder: Path, split: Split, pairs: Iterator[GeneratedPair], is_noisy: bool
) -> list[tuple[Path, Path]]:
    """Writes under temporary names; returns them with the final ones."""
    names = [f"{split}.{ending}" for ending in ("en", "de", "links", "en.tags", "de.tags")]
    if is_noisy:
        names.append(f"{split}.noise")
    paths = [(folder / f"{name}{_suffix()}", folder / name) for name in names]
    with ExitStack() as stack:
        files = [
            stack.enter_context(temporary.open("w", encoding="utf-8", newline="\n"))
            for temporary, _ in paths
        ]
        for pair in pairs:
            # Without noise there is no file for the label, the last of the fields.
            for file, field in zip(files, _fields(pair), strict=False):
                file.write(field + "\n")
    return paths


def _fields(pair: GeneratedPair) -> tuple[str, ...]:
    return (
        pair.source_text,
        pair.target_text,
        " ".join([f"{left}-{right}" for left, right in pair.links]),
        " ".join(pair.source_tags),
        " ".join(pair.target_tags),
        pair.noise or "clean",
    )
