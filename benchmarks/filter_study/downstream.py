"""What filtering gains: models trained on noisy pairs, on the pairs it keeps, and on clean ones."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from record_files import read_record_file, write_record_file
from relakit.bench.machine import Machine, describe_machine
from relakit.data.generated import SPLITS, Split
from relakit.data.noise_draw import CLEAN, NOISE_KINDS
from relakit.data.planted_noise import plant_text_noise
from relakit.files.writing import write_whole
from relakit.reproduce.split_pairs import split_pairs
from relakit.train.recipe_file import load_recipe
from relakit.train.result import read_verdict

NOISE: Final = 0.4
"""Share of all pairs that get noise, divided evenly between the kinds."""
SEED: Final = 1
RECIPE: Final = "demo"
LANGUAGES: Final = ("en", "de")
NOISY, KEPT, CLEAN_PART = "noisy", "kept", "clean"
THREADS: Final = "training.threads"
"""A setting that affects how models are trained, but not which models."""
SETTINGS: Final = "settings.json"
"""A file in the work folder: the settings that its models were trained with."""


@dataclass(frozen=True, kw_only=True)
class DownstreamRecord:
    """Three models that differ in the pairs they were trained on."""

    noise: float
    """Share of the pairs that have noise"""
    pairs: dict[str, int]
    """Number of pairs by model: noisy, kept, clean"""
    bleu: dict[str, float]
    signature: str
    kept_clean: int
    """Clean pairs that the filter kept"""
    settings: tuple[str, ...]
    """Settings of every training run"""
    machine: Machine

    @property
    def changes(self) -> list[str]:
        """Settings that make this a different study."""
        return _changes(self.settings)


def measure_downstream(folder: Path, settings: Sequence[str] = ()) -> DownstreamRecord:
    """Train three models in a folder; anything that already exists there is reused.

    The model trained on the noisy pairs filters those same pairs, so no clean pairs are needed.

    Raises:
        ValueError: the models in the folder were trained with other settings.
    """
    _keep_settings(folder, settings)
    recipe = load_recipe(RECIPE, settings)
    texts = {
        split: [(pair.source, pair.target) for pair in split_pairs(recipe, split)]
        for split in SPLITS
    }
    shares = dict.fromkeys(NOISE_KINDS, NOISE / len(NOISE_KINDS))
    planted = list(plant_text_noise(texts["train"], seed=SEED, shares=shares))
    corpora = {
        NOISY: [pair.texts for pair in planted],
        CLEAN_PART: [pair.texts for pair in planted if pair.label == CLEAN],
    }
    _train(folder, NOISY, corpora[NOISY], texts, settings)
    kept = _filter(folder)
    corpora[KEPT] = [corpora[NOISY][line] for line in kept]
    for name in (KEPT, CLEAN_PART):
        _train(folder, name, corpora[name], texts, settings)
    results = {name: json.loads(_result(folder, name).read_text("utf-8")) for name in corpora}
    return DownstreamRecord(
        noise=NOISE,
        pairs={name: len(pairs) for name, pairs in corpora.items()},
        bleu={name: result["scores"]["test"]["bleu"] for name, result in results.items()},
        signature=results[NOISY]["scores"]["test"]["bleu_signature"],
        kept_clean=sum(planted[line].label == CLEAN for line in kept),
        settings=tuple(settings),
        machine=describe_machine(),
    )


def _keep_settings(folder: Path, settings: Sequence[str]) -> None:
    path = folder / SETTINGS
    is_begun = (folder / f"{NOISY}-text").exists()
    before = json.loads(path.read_text("utf-8")) if path.is_file() else []
    now = _changes(settings)
    if is_begun and before != now:
        raise ValueError(
            f"{folder} has models that were trained with {_in_words(before)}, not with "
            f"{_in_words(now)}; give the same settings as then, or another --work"
        )
    write_whole(path, (json.dumps(now) + "\n").encode())


def _changes(settings: Sequence[str]) -> list[str]:
    return [setting for setting in settings if not setting.startswith(f"{THREADS}=")]


def _in_words(settings: Sequence[str]) -> str:
    return " ".join(f"--set {setting}" for setting in settings) or "no --set"


def _train(
    folder: Path,
    name: str,
    pairs: Iterable[tuple[str, str]],
    texts: Mapping[Split, list[tuple[str, str]]],
    settings: Sequence[str],
) -> None:
    if read_verdict(_result(folder, name)) == "finished":
        return
    corpus, run = folder / f"{name}-text", folder / name
    for split, some in {**texts, "train": list(pairs)}.items():
        for language, side in zip(LANGUAGES, zip(*some, strict=True), strict=True):
            write_whole(corpus / f"{split}.{language}", _lines(side))
    changes = [f'data.folder="{corpus}"', *(s for s in settings if "generated" not in s)]
    arguments = [argument for change in changes for argument in ("--set", change)]
    resume = ["--resume"] if run.exists() else []
    _run("train", RECIPE, "--out", str(run), *arguments, *resume)


def _filter(folder: Path) -> list[int]:
    """The numbers of the lines that were kept, counted from 0."""
    out, corpus = folder / "filtered", folder / f"{NOISY}-text"
    if not (out / "filter.json").is_file():
        files = ("--source", str(corpus / "train.en"), "--target", str(corpus / "train.de"))
        _run("filter", str(folder / NOISY / "model"), *files, "--calibrate", "--output", str(out))
    noisy, kept = _read(corpus, "train"), _read(out, "kept")
    following = next(kept, None)
    lines = []
    for number, pair in enumerate(noisy):
        if pair == following:
            lines.append(number)
            following = next(kept, None)
    return lines


def _read(folder: Path, stem: str) -> Iterator[tuple[str, str]]:
    sides = [(folder / f"{stem}.{one}").read_text("utf-8").split("\n") for one in LANGUAGES]
    return zip(*(side[:-1] for side in sides), strict=True)


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "relakit", *arguments], check=True)


def _result(folder: Path, name: str) -> Path:
    return folder / name / "result.json"


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def write_downstream(path: Path, record: DownstreamRecord) -> None:
    write_record_file(path, record)


def read_downstream(path: Path) -> DownstreamRecord | None:
    if not path.is_file():
        return None
    content = read_record_file(path)
    content["settings"] = tuple(content["settings"])
    return DownstreamRecord(**{**content, "machine": Machine(**content["machine"])})
