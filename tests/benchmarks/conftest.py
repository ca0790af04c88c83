"""The benchmarks are scripts beside each other, and so are the peers' workers: no packages."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "peers")]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small prepared corpus, with the splits train and test."""
    from speed_corpus import make_corpus

    return make_corpus(tmp_path_factory.mktemp("corpus"))
