"""A tokenizer of few pieces, and pairs of the generated corpus."""

import pytest

from relakit.analysis.pairs import AnalysisPair, generated_gold_pair
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer, learn_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """So small that most words have several tokens."""
    pairs = list(generate_pairs(300))
    return learn_tokenizer([t for p in pairs for t in (p.source_text, p.target_text)], 400)


@pytest.fixture(scope="session")
def gold_pairs() -> list[AnalysisPair]:
    return [generated_gold_pair(pair) for pair in generate_pairs(30)]
