"""chrF of single sentences, where there may be nothing at all."""

import pytest
from sacrebleu import sentence_chrf as sacrebleu_chrf

from relakit.metrics.sentence_scores import sentence_chrf


def test_it_is_sacrebleu_s() -> None:
    ours = sentence_chrf("the cat sat on a mat", "the cat sat on the mat")
    assert ours == pytest.approx(
        sacrebleu_chrf("the cat sat on a mat", ["the cat sat on the mat"]).score
    )
    assert 50 < ours < 100


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("", "", 100),
        (" ", "", 100),
        ("", "a word", 0),
        ("a word", "", 0),
        ("a word", "a word", 100),
    ],
)
def test_empty_sides(output: str, reference: str, expected: float) -> None:
    assert sentence_chrf(output, reference) == expected
