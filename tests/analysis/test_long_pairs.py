"""Pairs that are too long for the memory that attention takes."""

import pytest
from random_models import random_model

from relakit import limits
from relakit.analysis import AnalysisPair, ShortPairs
from relakit.analysis.long_pairs import count_matrices, longest_pair
from relakit.analysis.settings import PAIR_WEIGHTS
from relakit.data.tokenizer import learn_tokenizer
from relakit.decode.translator import Translator
from relakit.model import ModelConfig

WORDS = "a small dog runs over the old bridge"
TOKENIZERS = [learn_tokenizer([WORDS] * 9, vocab_size=size) for size in (320, 261)]
MODELS = {
    f"model {number}": Translator(random_model(vocabulary=tokenizer.size), tokenizer)
    for number, tokenizer in enumerate(TOKENIZERS, start=1)
}
PAIRS = [
    AnalysisPair.from_texts(source, target)
    for source, target in [("dog", "dog"), ("dog " * 9, "a"), ("a", WORDS), ("old", "the")]
]


def test_the_default_fits_the_model() -> None:
    base = ModelConfig(vocabulary=9)
    assert count_matrices(base) == 8 * 18
    assert longest_pair(base) == 681
    assert count_matrices(base) * 682**2 <= PAIR_WEIGHTS < count_matrices(base) * 683**2
    assert longest_pair(base, ["cross"]) == 1181
    assert ShortPairs(PAIRS, MODELS).max_tokens == 1024


def test_a_pair_must_be_short_for_all_models() -> None:
    first = {"model 1": MODELS["model 1"]}
    short = ShortPairs(PAIRS, first, 8)
    assert (short.left_out, list(short), len(short)) == ((2,), [*PAIRS[:1], *PAIRS[2:]], 3)
    both = ShortPairs(PAIRS, MODELS, 8)  # the second has no words, only letters
    assert (both.left_out, list(both), list(both)) == ((2, 3), [PAIRS[0], PAIRS[3]], [*both])


def test_no_pair_is_left() -> None:
    with pytest.raises(ValueError, match="all 4 pairs have more than 1 token on a side: give one"):
        ShortPairs(PAIRS, {"model 2": MODELS["model 2"]}, 1)


def test_more_than_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "machine_memory", lambda: 1 << 30)
    expected = (
        r"recording the attention of model 1 for one pair of 100,000 tokens would need about .* of "
        r"memory, this machine has 1\.0 GiB; set --max-tokens to less"
    )
    with pytest.raises(ValueError, match=expected):
        ShortPairs(PAIRS, MODELS, 100_000)
