"""Word by word: as much as possible is the same, and the output can be read in it."""

import random
from difflib import SequenceMatcher

import pytest

from relakit.analysis import split_words
from relakit.report.word_difference import word_difference


def difference(reference: str, output: str) -> list[tuple[str, str]]:
    return [*word_difference(reference, output, split_words(reference), split_words(output))]


@pytest.mark.parametrize(
    ("reference", "output", "expected"),
    [
        ("a b c", "a b c", [("same", "a b c")]),
        ("a b c", "a c", [("same", "a"), ("missing", "b"), ("same", " "), ("same", "c")]),
        ("a c", "a b c",
         [("same", "a"), ("same", " "), ("added", "b"), ("same", " "), ("same", "c")]),
        ("a b", "a x", [("same", "a"), ("missing", "b"), ("same", " "), ("added", "x")]),
        ("a b.", "", [("missing", "a b.")]),
        ("", "a b.", [("added", "a b.")]),
        ("", "", []),
        ("a", " a ", [("same", " "), ("same", "a"), ("same", " ")]),
        ("Hund,", "Hund.", [("same", "Hund"), ("missing", ","), ("added", ".")]),
    ],
)  # fmt: skip
def test_known_cases(reference: str, output: str, expected: list[tuple[str, str]]) -> None:
    assert difference(reference, output) == expected


def test_random_sentences() -> None:
    """The output comes back, the missing words too, and no shorter edit is known to difflib."""
    chance = random.Random(1)
    for _ in range(200):
        reference, output = (
            " ".join(chance.choices("abcd", k=chance.randrange(12))) for _ in range(2)
        )
        pieces = difference(reference, output)
        assert "".join(text for status, text in pieces if status != "missing") == output
        same = [text for status, text in pieces if status == "same"]
        missing = [text for status, text in pieces if status == "missing"]
        kept = sum(len(text.split()) for text in same)
        assert kept + sum(len(text.split()) for text in missing) == len(reference.split())
        blocks = SequenceMatcher(None, reference.split(), output.split(), autojunk=False)
        assert kept >= sum(block.size for block in blocks.get_matching_blocks())
