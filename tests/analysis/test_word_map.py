"""From tokens to words, on cases worked out by hand and against loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relakit.analysis import NO_WORD, split_words, word_weights, words_of_tokens
from relakit.analysis.word_map import join_words
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer


def words(text: str, *, tokenized: bool = False) -> list[str]:
    return [text[start:end] for start, end in split_words(text, tokenized=tokenized)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t ", []),
        ("One", ["One"]),
        ("  A dog,  no cat.", ["A", "dog", ",", "no", "cat", "."]),
        ("Really?!", ["Really", "?", "!"]),
        ("Wait... what?", ["Wait", "...", "what", "?"]),
        ('"Yes," she said', ['"', "Yes", ",", '"', "she", "said"]),
        ("«Ja» (nein)", ["«", "Ja", "»", "(", "nein", ")"]),
        ("It's 3.5 well-known €", ["It's", "3.5", "well-known", "€"]),
        ("-- ...! -", ["--", "...", "!", "-"]),
        ("über\u00a0Straße!", ["über", "Straße", "!"]),
        ("a\x1cb", ["a", "b"]),
    ],
)
def test_split_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_tokenized_text_is_split_at_spaces_alone() -> None:
    expected = ["Mr.", "Smith", ",", "I", "'m", "here", "..."]
    assert words("Mr. Smith , I 'm here ...", tokenized=True) == expected


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("", ""),
        ("Das ist gut .", "Das ist gut."),
        ("Mr President , what ? !", "Mr President, what?!"),
        ("( the Council 's ) report", "(the Council's) report"),
        ("it does n't , does it", "it doesn't, does it"),
        ("« Ja » – 50 % ...", "«Ja» – 50%..."),
        (", or so", ", or so"),
        ("Er sagte „ ja “ und ging .", "Er sagte „ja“ und ging."),
        ("„ Sie rief ‚ nein ‘ “ , sagte er", "„Sie rief ‚nein‘“, sagte er"),
        ("He said “ yes ” and “ no ” .", "He said “yes” and “no”."),
        ("der „ Spiegel und “ mehr", "der „Spiegel und“ mehr"),
    ],
)
def test_join_words(tokens: str, text: str) -> None:
    assert join_words(tokens.split())[0] == text


@given(st.lists(st.sampled_from(["a", "ß", ",", ".", "(", ")", "'s", "„", "“", "‚", "‘", "–"])))
def test_joined_words_are_where_it_says(tokens: list[str]) -> None:
    text, spans = join_words(tokens)
    assert [text[start:end] for start, end in spans] == tokens
    assert "  " not in text
    between = [text[a:b] for (_, a), (b, _) in pairwise(spans)]
    assert set(between) <= {"", " "}


def test_split_words_agrees_with_the_generated_corpus() -> None:
    for pair in generate_pairs(200, split="test"):
        assert split_words(pair.source_text) == pair.source_spans
        assert split_words(pair.target_text) == pair.target_spans


def test_tokens_belong_to_the_word_that_they_overlap() -> None:
    # "Ein Haus, ja": "Haus" has two tokens, the comma one, and the end-of-sentence token no span.
    tokens = [(0, 3), (4, 6), (6, 8), (8, 9), (10, 12), (0, 0)]
    found = words_of_tokens(tokens, [(0, 3), (4, 8), (8, 9), (10, 12)])
    assert found.tolist() == [0, 1, 1, 2, 3, NO_WORD]


def test_a_token_over_several_words_belongs_to_the_longest_share() -> None:
    assert words_of_tokens([(0, 6)], [(0, 2), (2, 6)]).tolist() == [1]
    assert words_of_tokens([(0, 6)], [(0, 3), (3, 6)]).tolist() == [0]
    assert words_of_tokens([(1, 9)], [(0, 2), (3, 7), (8, 9)]).tolist() == [1]


def test_tokens_outside_of_all_words() -> None:
    assert words_of_tokens([(0, 1), (3, 4), (9, 10)], [(1, 3), (4, 9)]).tolist() == [-1, -1, -1]
    assert words_of_tokens([(0, 1)], []).tolist() == [NO_WORD]
    assert words_of_tokens([], [(0, 1)]).shape == (0,)


def test_words_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="word 1 ends at character 5 and word 2 starts at 4"):
        words_of_tokens([(0, 1)], [(0, 1), (2, 5), (4, 6)])


@st.composite
def spans(draw: st.DrawFn, *, apart: bool) -> list[tuple[int, int]]:
    """Spans in order; with gaps and without overlap if they are to be apart."""
    edges = sorted(draw(st.lists(st.integers(0, 30), max_size=16, unique=apart)))
    return list(zip(edges[::2], edges[1::2], strict=False))


@given(tokens=spans(apart=False), words=spans(apart=True))
def test_words_of_tokens_against_character_sets(
    tokens: list[tuple[int, int]], words: list[tuple[int, int]]
) -> None:
    for (start, end), word in zip(tokens, words_of_tokens(tokens, words), strict=True):
        shared = [len(set(range(start, end)) & set(range(*other))) for other in words]
        expected = shared.index(max(shared)) if any(shared) else NO_WORD
        assert word == expected


def test_every_token_of_a_generated_text_is_in_its_word(tokenizer: Tokenizer) -> None:
    """Words taken apart by the tokenizer come back whole, umlauts of two bytes included."""
    several = 0
    for pair in generate_pairs(100, split="test"):
        encoded = tokenizer.encode(pair.target_text)
        found = words_of_tokens(encoded.spans, pair.target_spans)
        for number, word in enumerate(pair.target):
            ids = [id for id, w in zip(encoded.ids, found, strict=True) if w == number]
            assert tokenizer.decode(ids) == word
            several += len(ids) > 1
        assert (np.diff(found) >= 0).all()
    assert several > 100  # else the test says nothing


def loop_word_weights(
    weights: np.ndarray, target: list[int], source: list[int], targets: int, sources: int
) -> np.ndarray:
    found = np.zeros((len(weights), targets, sources))
    for head, matrix in enumerate(weights):
        for t in range(targets):
            rows = [row for row, word in enumerate(target) if word == t]
            for s in range(sources):
                columns = [column for column, word in enumerate(source) if word == s]
                sums = [sum(float(matrix[r, c]) for c in columns) for r in rows]
                found[head, t, s] = sum(sums) / len(sums) if sums else 0.0
    return found


def test_word_weights_by_hand() -> None:
    # Two target tokens make one word; the last source token is in no word.
    weights = np.array([[[1.0, 2.0, 4.0, 100.0], [3.0, 0.0, 0.0, 0.0]]])
    found = word_weights(
        weights, np.array([0, 0]), np.array([0, 0, 1, -1]), target_count=1, source_count=2
    )
    assert found.tolist() == [[[3.0, 2.0]]]


def test_word_weights_against_loops() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        heads, targets, sources = random.integers(1, 5, 3)
        target = random.integers(-1, targets, random.integers(0, 7))
        source = random.integers(-1, sources, random.integers(0, 7))
        weights = random.random((heads, len(target), len(source))).astype(np.float32)
        weights *= weights > 0.5
        found = word_weights(
            weights, target, source, target_count=int(targets), source_count=int(sources)
        )
        expected = loop_word_weights(
            weights, target.tolist(), source.tolist(), int(targets), int(sources)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert ((found == 0) == (expected == 0)).all()


def test_wrong_shapes_and_maps() -> None:
    one = np.array([0])
    with pytest.raises(ValueError, match=r"1 target tokens, 2 source tokens.*got \(1, 3\)"):
        word_weights(np.ones((1, 3)), one, np.array([0, 0]), target_count=1, source_count=1)
    with pytest.raises(ValueError, match=r"source words must be from 0 to 1, or -1 .*, got 0 to 2"):
        word_weights(np.ones((1, 2)), one, np.array([0, 2]), target_count=1, source_count=2)
