"""Which steps of the decoder follow a word."""

import numpy as np

from relakit.analysis import NO_WORD, query_classes


def test_steps_after_words() -> None:
    """Three tokens of word 0, one of no word, one of word 2; word 1 has no token."""
    words = np.array([0, 0, 0, NO_WORD, 2])
    found = query_classes(words, ["NOUN", "VERB", "PUNCT"])
    assert found == ["<s>", None, None, "NOUN", None, "PUNCT"]
    assert query_classes(np.array([], dtype=np.int64), []) == ["<s>"]
