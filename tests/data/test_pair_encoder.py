"""Which pairs are kept, and as what."""

import pytest

from relakit.data.pair_encoder import PairEncoder
from relakit.data.prepared_format import SplitCounts
from relakit.data.tokenizer import learn_tokenizer

TOKENIZER = learn_tokenizer(["a b"], 300)
SHORT, LONG = "a b a", " ".join("ab" * 20)
PAIRS = [(LONG, SHORT), (SHORT, SHORT), ("", SHORT), (SHORT, "ha" * 100_000)]


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text).ids


def test_long_pairs_are_left_out() -> None:
    encoder = PairEncoder(TOKENIZER, 6, truncates=False)
    kept = encoder.encode(PAIRS)
    assert kept == ([2], [ids(SHORT)], [ids(SHORT)])
    assert (encoder.read, encoder.empty, encoder.overlong) == (4, 1, 2)
    assert encoder.encode(PAIRS[1:2]).numbers == [5], "numbers go on"
    tokens = 2 * len(ids(SHORT))
    assert encoder.counts("train") == SplitCounts(
        read=5, kept=2, empty=1, overlong=2, source_tokens=tokens, target_tokens=tokens
    )


def test_none_is_left() -> None:
    encoder = PairEncoder(TOKENIZER, 6, truncates=False)
    encoder.encode([PAIRS[0], *PAIRS[2:]])
    message = (
        "^no pair of train is left: of 3 pairs in x, 1 have an empty side and 2 have more than "
        "6 tokens; give other files, or a larger max_tokens$"
    )
    with pytest.raises(ValueError, match=message):
        encoder.counts("train", where=" in x")


def test_long_sentences_are_cut_off() -> None:
    encoder = PairEncoder(TOKENIZER, 6, truncates=True)
    kept = encoder.encode(PAIRS)
    assert kept.numbers == [1, 2, 4]
    assert kept.sources == [ids(LONG)[:6], ids(SHORT), ids(SHORT)]
    assert kept.targets == [ids(SHORT), ids(SHORT), ids("ha" * 10)[:6]]
    assert (encoder.read, encoder.empty, encoder.overlong) == (4, 1, 2)
