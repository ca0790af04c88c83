"""What words look like, and which steps follow a word."""

import numpy as np
import pytest

from relakit.analysis import NO_WORD, query_classes, token_class


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (",", "comma"),
        ("、", "comma"),
        (".", "full stop"),
        ("...", "full stop"),
        ("。", "full stop"),
        ("!", "other mark"),
        ("»", "other mark"),
        ("€", "other mark"),
        ("2016", "digit"),
        ("3rd", "digit"),
        ("٣", "digit"),
        ("Hund", "capitalised"),
        ("Übung", "capitalised"),
        ("ǅ", "capitalised"),
        ("hund", "word"),
        ("don't", "word"),
        ("猫", "word"),
    ],
)
def test_token_class(word: str, expected: str) -> None:
    assert token_class(word) == expected


def test_steps_after_words() -> None:
    """Three tokens of word 0, one of no word, one of word 2; word 1 has no token."""
    words = np.array([0, 0, 0, NO_WORD, 2])
    found = query_classes(words, ["NOUN", "VERB", "PUNCT"])
    assert found == ["<s>", None, None, "NOUN", None, "PUNCT"]
    assert query_classes(np.array([], dtype=np.int64), []) == ["<s>"]
