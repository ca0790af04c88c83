"""A tokenizer of few pieces, and pairs of the generated corpus."""

import pytest
from small_tokenizer import small_tokenizer

from relakit.analysis.pairs import AnalysisPair, generated_gold_pair
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return small_tokenizer()


@pytest.fixture(scope="session")
def gold_pairs() -> list[AnalysisPair]:
    return [generated_gold_pair(pair) for pair in generate_pairs(30)]
