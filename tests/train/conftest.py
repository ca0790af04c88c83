"""A tiny prepared corpus: words to learn by heart."""

import random
from pathlib import Path

import pytest
import torch
from small_runs import recipe_of, weights

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.train.run import run_training

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text files: numbers in English, and in German."""
    folder = tmp_path_factory.mktemp("numbers")
    chance = random.Random(1)
    for name, count in {"train": 600, "valid": 20, "test": 20}.items():
        sentences = [chance.choices(list(WORDS), k=chance.randint(1, 5)) for _ in range(count)]
        source = "".join(" ".join(words) + "\n" for words in sentences)
        target = "".join(" ".join(WORDS[w] for w in words) + "\n" for words in sentences)
        (folder / f"{name}.en").write_text(source, encoding="utf-8")
        (folder / f"{name}.de").write_text(target, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """The same, prepared."""
    folder = tmp_path_factory.mktemp("prepared") / "corpus"
    files = {
        name: ParallelFiles(text_folder / f"{name}.en", text_folder / f"{name}.de")
        for name in ("train", "valid", "test")
    }
    prepare(files, folder, settings=PrepareSettings(vocab_size=300))
    return PreparedCorpus.load(folder)


@pytest.fixture(scope="session")
def undisturbed(
    corpus: PreparedCorpus, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    """The weights of a run that nobody stops."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    run_training(recipe_of(corpus), folder)
    return weights(folder)
