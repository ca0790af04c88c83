"""Where tokens are in the text that they decode to, whatever a model may write."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relakit.data.imported_tokenizer import import_tokenizer
from relakit.data.token_spans import bytes_of_letters, bytes_of_pieces, decoded_spans
from relakit.data.tokenizer import END, PAD, UNKNOWN, Tokenizer, learn_tokenizer

FILES = Path(__file__).parent / "sentencepiece"
LINES = ["A man's dog runs, and the dogs run.", "Der Hund läuft über die Straße, «alt»!"] * 20
KINDS = {
    "bytes": learn_tokenizer(LINES, 400),
    "unigram": import_tokenizer(FILES / "unigram.model"),
    "bpe": import_tokenizer(FILES / "bpe.model"),
}


def parts_of(tokenizer: Tokenizer, ids: list[int]) -> list[bytes]:
    names = [tokenizer.tokens[id] for id in ids if tokenizer.is_text(id) and id != UNKNOWN]
    return bytes_of_letters(names) if tokenizer is KINDS["bytes"] else bytes_of_pieces(names)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_spans_are_places_in_the_decoded_text(kind: str, data: st.DataObject) -> None:
    """Any ids: half characters, bytes that are none, spaces anywhere, special tokens."""
    tokenizer = KINDS[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.size - 1), max_size=12))
    text, spans = tokenizer.decode(ids), tokenizer.decoded(ids).spans
    assert len(spans) == len(ids)
    in_text = [span for id, span in zip(ids, spans, strict=True) if tokenizer.is_text(id)]
    assert in_text == sorted(in_text)
    covered = {place for first, last in in_text for place in range(first, last)}
    assert covered == {place for place, letter in enumerate(text) if letter != " "}
    for first, last in in_text:
        assert text[first:last] == text[first:last].strip()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_the_text_is_the_decoded_one(kind: str, data: st.DataObject) -> None:
    tokenizer = KINDS[kind]
    ids = data.draw(st.lists(st.integers(END + 1, tokenizer.size - 1), max_size=12))
    assert decoded_spans(parts_of(tokenizer, ids))[0] == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["A man's dog runs!", "läuft über «die» Straße, 3½ ☃ x", "Hund"])
def test_own_tokens_are_where_encoding_has_them(kind: str, text: str) -> None:
    tokenizer = KINDS[kind]
    encoded = tokenizer.encode(text)
    if UNKNOWN not in encoded.ids and tokenizer.normalize(text) == text:
        assert tokenizer.decoded(encoded.ids) == encoded


def test_tokens_that_are_not_those_of_the_text() -> None:
    tokenizer = KINDS["bytes"]
    single = [tokenizer.tokens.index(letter) for letter in "Ġdog"]
    assert tokenizer.encode("dog").ids != single
    assert tokenizer.decoded(single).spans == [(0, 1), (0, 1), (1, 2), (2, 3)]


def test_what_is_not_in_the_text_has_an_empty_span() -> None:
    tokenizer = KINDS["bytes"]
    dog, space = tokenizer.encode("dog").ids, tokenizer.tokens.index("Ġ")
    assert tokenizer.decoded([PAD, *dog, END, space]).spans == [
        (0, 0), *tokenizer.encode("dog").spans, (0, 0), (3, 3),
    ]  # fmt: skip


def test_tokens_that_share_a_character() -> None:
    assert decoded_spans([b" \xc3", b"\xbc", b"\xe2\x82", b"a  ", b"b"]) == (
        "\u00fc\ufffda b",
        [(0, 1), (0, 1), (1, 2), (2, 3), (4, 5)],
    )


def test_bytes_that_would_be_half_a_character_of_utf_16() -> None:
    assert decoded_spans([b"\xed", b"\xa1"]) == ("\ufffd\ufffd", [(0, 1), (1, 2)])


def test_bytes_that_are_no_characters() -> None:
    assert bytes_of_pieces(["<0xC3>", "<0xBC>", "\u2581a", "<0xC3>", "<0x41>"]) == [
        b"\xc3", b"\xbc", b" a", b"\xef\xbf\xbd", b"\xef\xbf\xbd",
    ]  # fmt: skip
