"""Model directories that are made once, and pairs to score."""

from pathlib import Path

import pytest
from clean_models import ModelWriter, write_clean_model

from relakit.data.generated import generate_pairs
from relakit.data.parallel_files import NumberedPair

TEST = [(pair.source_text, pair.target_text) for pair in generate_pairs(40, split="test")]


@pytest.fixture(scope="session")
def write_model(tmp_path_factory: pytest.TempPathFactory) -> ModelWriter:
    """Writes a model directory; the same arguments give the same one."""
    made: dict[tuple[object, ...], Path] = {}

    def write(attention: str = "rela-g", *, reverse: bool = False, seed: int = 0) -> Path:
        key = attention, reverse, seed
        if key not in made:
            folder = tmp_path_factory.mktemp("models")
            made[key] = write_clean_model(folder, attention, reverse, seed)
        return made[key]

    return write


@pytest.fixture(scope="session")
def pairs() -> list[NumberedPair]:
    """Of all lengths, some with a blank side."""
    texts = [*TEST, ("", "Ein Hund."), ("A dog.", " "), ("one", "x " * 70), ("two " * 50, "y")]
    return [NumberedPair(number, *pair) for number, pair in enumerate(texts, start=1)]
