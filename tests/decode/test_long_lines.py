"""Lines that are too long: what is left of them, and what is said about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relakit.data.tokenizer import Tokenizer, learn_tokenizer
from relakit.decode.long_lines import crop, default_max_tokens, fit_lines, has_at_most
from relakit.decode.settings import TooLong

TOKENIZER = learn_tokenizer(["a small dog runs over the old bridge"] * 9, vocab_size=320)
WORDS = st.text(st.sampled_from("a dogruns über.,«❤️\u0958 "), max_size=60)


def count(text: str) -> int:
    return len(TOKENIZER.encode(text).ids)


@given(text=WORDS, max_tokens=st.integers(1, 80))
def test_what_is_cropped_fits_and_is_the_beginning(text: str, max_tokens: int) -> None:
    assert has_at_most(TOKENIZER, text, max_tokens) == (count(text) <= max_tokens)
    cropped = crop(TOKENIZER, text, max_tokens)
    assert count(cropped) <= max_tokens
    assert TOKENIZER.normalize(text).startswith(TOKENIZER.normalize(cropped))
    if count(text) <= max_tokens:
        assert cropped == text


def test_words_stay_whole() -> None:
    text = "a small dog runs over the old bridge"
    for words in range(1, 9):
        beginning = " ".join(text.split()[:words])
        assert crop(TOKENIZER, text, count(beginning)) == beginning
    assert crop(TOKENIZER, "dog xyzxyzxyz", count("dog xyz")) == "dog"


def test_a_single_endless_word_is_cut() -> None:
    assert crop(TOKENIZER, "x" * 1_000_000, 30) == "x" * 29  # its space is a token too


def test_of_an_endless_line_only_the_beginning_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    original = Tokenizer.encode
    monkeypatch.setattr(
        Tokenizer, "encode", lambda self, text: encoded.append(text) or original(self, text)
    )
    assert not has_at_most(TOKENIZER, "dog " * 200_000, 20)
    assert len(crop(TOKENIZER, "dog " * 200_000, 20).split()) == 20 // count("dog")
    assert max(map(len, encoded)) < 10_000


LONG = [3, 4, 6, 7, 9, 10, 12]
LINES = ["dog " * 30 if number in LONG else f"dog {number}" for number in range(1, 14)]


@pytest.mark.parametrize(
    ("too_long", "left", "done"),
    [
        ("crop", " ".join(["dog"] * 10), "are translated up to token 10"),
        ("skip", "", "are left out"),
    ],
)
def test_as_many_lines_and_the_first_long_ones_are_told(
    too_long: TooLong, left: str, done: str
) -> None:
    told: list[str] = []
    assert count("dog " * 10) == 10
    found = list(
        fit_lines(LINES, TOKENIZER, max_tokens=10, too_long=too_long, name="x", tell=told.append)
    )
    assert found == [left if len(line) > 30 else line for line in LINES]
    assert told == [
        *(f"x, line {n}: it has more than 10 tokens; such lines {done}" for n in LONG[:5]),
        "x: and 2 more such lines",
    ]


def test_an_error_names_the_line_after_all_before_it() -> None:
    lines = fit_lines(LINES, TOKENIZER, max_tokens=10, too_long="error", name="in.txt")
    assert [next(lines), next(lines)] == LINES[:2]
    with pytest.raises(
        ValueError, match=r"^in\.txt, line 3: it has more than 10 tokens; split it, allow more"
    ):
        next(lines)


def test_less_than_one_token() -> None:
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got 0"):
        fit_lines([], TOKENIZER, max_tokens=0)


def test_the_default_fits_the_model() -> None:
    assert [default_max_tokens(longest) for longest in (None, 57, 3000)] == [1024, 1024, 3000]
