"""Every text comes back from its tokens, and every token knows where in the text it is."""

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relakit.data.prepared_format import SMALLEST_VOCABULARY
from relakit.data.tokenizer import (
    BEGIN,
    END,
    LONGEST_TOKEN,
    PAD,
    SPECIAL_TOKENS,
    UNKNOWN,
    Tokenizer,
    learn_tokenizer,
)

LINES = [
    "A man's dog runs, and the dogs run.",
    "Der Hund des Mannes läuft, und die Hunde laufen.",
    'He said: "The houses are old!"',
    "Er sagte: „Die Häuser sind alt!“",
    "The underground car park is closed until 10:30.",
    "Die Tiefgarage ist bis 10:30 geschlossen.",
    "</s> <s> <pad> <unk> ..... -----",
]
TEXTS = st.text(
    # What is not assigned yet may be composed differently by another version of Unicode.
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cn"))
    | st.sampled_from(
        list(" \t\u00a0\u2003\u2028\x85\x1c.,'\"-<>/s▁Ġäaeo\u0308\u0301\u0323\u200d\ufe0f")
    )
)
EXAMPLES = [
    "",
    "  ",
    "Straße  über\u00a0Köln",
    "a\u0308o\u0323\u0301 U\u0308ber",
    "👩\u200d👩\u200d👧 ❤\ufe0f x",
    "\u0344 \u0958 \u1e9b\u0323",
    "각 한국어",
    "</s> <pad>",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn_tokenizer(LINES * 20, 500)


def composed(text: str) -> str:
    """What a text is after encoding and decoding, by Python's own means."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def with_examples(test):  # type: ignore[no-untyped-def]
    for text in EXAMPLES:
        test = example(text)(test)
    return given(TEXTS)(test)


class TestRoundTrip:
    @with_examples
    def test_text_comes_back(self, tokenizer: Tokenizer, text: str) -> None:
        assert tokenizer.decode(tokenizer.encode(text).ids) == composed(text)

    @with_examples
    def test_normalize_says_what_comes_back(self, tokenizer: Tokenizer, text: str) -> None:
        assert tokenizer.normalize(text) == composed(text)

    @with_examples
    def test_no_token_is_special(self, tokenizer: Tokenizer, text: str) -> None:
        assert all(id >= len(SPECIAL_TOKENS) for id in tokenizer.encode(text).ids)

    @given(st.lists(TEXTS, max_size=4))
    def test_a_batch_is_the_same_as_one_by_one(
        self, tokenizer: Tokenizer, texts: list[str]
    ) -> None:
        batch = tokenizer.encode_batch(texts)
        assert batch == [tokenizer.encode(text).ids for text in texts]
        assert tokenizer.decode_batch(batch) == [composed(text) for text in texts]

    @given(st.lists(st.integers(0, 499)))
    def test_whatever_a_model_writes_is_one_line(
        self, tokenizer: Tokenizer, ids: list[int]
    ) -> None:
        text = tokenizer.decode([id for id in ids if id < tokenizer.size])
        assert len(text.splitlines()) <= 1
        assert text == text.strip()

    def test_special_tokens_are_not_decoded(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.encode("the dogs").ids
        assert tokenizer.decode([BEGIN, *ids, UNKNOWN, END, PAD, PAD]) == "the dogs"


class TestSpans:
    @with_examples
    def test_cover_all_text_in_order(self, tokenizer: Tokenizer, text: str) -> None:
        encoded = tokenizer.encode(text)
        assert len(encoded.spans) == len(encoded.ids)
        assert all(0 <= start < end <= len(text) for start, end in encoded.spans)
        assert encoded.spans == sorted(encoded.spans)
        covered = {place for span in encoded.spans for place in range(*span)}
        assert covered >= {place for place, character in enumerate(text) if not character.isspace()}

    @with_examples
    def test_name_the_text_of_their_tokens(self, tokenizer: Tokenizer, text: str) -> None:
        """Tokens that do not share a span with another say what is there."""
        if unicodedata.normalize("NFC", text) != text:
            return
        encoded = tokenizer.encode(text)
        for id, span in zip(encoded.ids, encoded.spans, strict=True):
            if encoded.spans.count(span) == 1:
                assert tokenizer.decode([id]) == text[slice(*span)]

    @with_examples
    def test_start_and_end_without_spaces(self, tokenizer: Tokenizer, text: str) -> None:
        for start, end in tokenizer.encode(text).spans:
            assert text[start:end] == text[start:end].strip()

    @with_examples
    def test_do_not_reach_into_another_word(self, tokenizer: Tokenizer, text: str) -> None:
        for start, end in tokenizer.encode(text).spans:
            assert len(text[start:end].split()) == 1

    @pytest.mark.parametrize(
        ("text", "pieces"),
        [
            ("  The  dogs,", ["The", "dogs", ","]),
            ("die Ha\u0308user!", ["die", "Ha\u0308user", "!"]),
            ('"The dogs"', ['"', "The", "dogs", '"']),
            ("laufen..", ["laufen", ".."]),
            # The end of the first word is decomposed: the mark belongs to it.
            ("a\u0308 \u2003.", ["a\u0308", "."]),
        ],
    )
    def test_examples(self, tokenizer: Tokenizer, text: str, pieces: list[str]) -> None:
        spans = dict.fromkeys(tokenizer.encode(text).spans)
        assert [text[start:end] for start, end in spans] == pieces


class TestPieces:
    @with_examples
    def test_words_and_punctuation_never_share_a_token(
        self, tokenizer: Tokenizer, text: str
    ) -> None:
        for start, end in tokenizer.encode(text).spans:
            kinds = {is_word(character) for character in text[start:end]} - {None}
            assert len(kinds) <= 1, text[start:end]

    def test_a_row_of_one_mark_may_be_one_token_but_not_of_two(self) -> None:
        tokenizer = learn_tokenizer(["end ..... and ?!?!?!"] * 50, 400)
        assert len(tokenizer.encode(".....").ids) == 1
        assert len(tokenizer.encode("?!?!?!").ids) >= 6

    def test_a_word_is_the_same_at_the_start_and_within(self, tokenizer: Tokenizer) -> None:
        assert tokenizer.encode("dogs").ids == tokenizer.encode("The dogs").ids[1:]

    @pytest.mark.parametrize("token", SPECIAL_TOKENS)
    def test_a_special_token_that_was_typed_is_text(self, tokenizer: Tokenizer, token: str) -> None:
        ids = tokenizer.encode(f"a {token} b").ids
        assert not {PAD, UNKNOWN, BEGIN, END} & set(ids)
        assert tokenizer.decode(ids) == f"a {token} b"


def is_word(character: str) -> bool | None:
    """Whether a character makes words; None for marks, which join what they follow."""
    category = unicodedata.category(character)[0]
    return None if category == "M" else category in "LN"


class TestLearning:
    def test_frequent_words_become_tokens(self, tokenizer: Tokenizer) -> None:
        assert len(tokenizer.encode("the dogs Häuser Tiefgarage").ids) == 4

    def test_the_vocabulary_is_as_large_as_asked_for_or_as_possible(self) -> None:
        assert learn_tokenizer(LINES * 20, 300).size == 300
        assert learn_tokenizer(["aa aa"], 5000).size < 300
        assert learn_tokenizer(["x"], SMALLEST_VOCABULARY).size == SMALLEST_VOCABULARY

    def test_no_token_is_endless(self) -> None:
        tokenizer = learn_tokenizer(["=" * 1000] * 10, 600)
        assert tokenizer.longest_token <= LONGEST_TOKEN

    def test_is_the_same_every_time(self, tmp_path: Path) -> None:
        """Not by luck: other hash seeds, other order of threads."""
        code = (
            "import sys; from relakit.data.tokenizer import learn_tokenizer; "
            "words = [f'w{n * n % 977} v{n * 7 % 131}' for n in range(3000)]; "
            "print(learn_tokenizer(words, 900).to_json())"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed, "TOKENIZERS_PARALLELISM": parallel},
                capture_output=True,
                check=True,
            ).stdout
            for seed, parallel in (("1", "true"), ("2", "true"), ("3", "false"))
        }
        assert len(outputs) == 1

    @pytest.mark.parametrize("lines", [[], [""], ["  ", "\t"]])
    def test_without_text(self, lines: list[str]) -> None:
        with pytest.raises(ValueError, match="no text to learn"):
            learn_tokenizer(lines, 300)

    def test_with_too_small_a_vocabulary(self) -> None:
        with pytest.raises(ValueError, match=r"at least 260 \(4 special .* 256 bytes\), got 259"):
            learn_tokenizer(LINES, 259)

    def test_with_a_frequency_of_nothing(self) -> None:
        with pytest.raises(ValueError, match="min_frequency must be at least 1, got 0"):
            learn_tokenizer(LINES, 300, min_frequency=0)

    def test_an_error_in_the_lines_arrives(self) -> None:
        def broken():  # type: ignore[no-untyped-def]
            yield "fine"
            raise ValueError("corpus.txt, line 2: not UTF-8")

        with pytest.raises(ValueError, match=r"corpus\.txt, line 2"):
            learn_tokenizer(broken(), 300)


class TestFiles:
    def test_a_saved_tokenizer_is_the_same(self, tokenizer: Tokenizer, tmp_path: Path) -> None:
        path = tmp_path / "tokenizer.json"
        tokenizer.save(path)
        loaded = Tokenizer.load(path)
        assert loaded.to_json() == tokenizer.to_json()
        for text in LINES + EXAMPLES:
            assert loaded.encode(text) == tokenizer.encode(text)
        assert [entry.name for entry in tmp_path.iterdir()] == ["tokenizer.json"]

    @pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1, 2]", b"not json"])
    def test_something_else(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "tokenizer.json"
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=f"^{re.escape(str(path))} is not a tokenizer, or is trun"
        ):
            Tokenizer.load(path)

    def test_a_truncated_file(self, tokenizer: Tokenizer, tmp_path: Path) -> None:
        path = tmp_path / "tokenizer.json"
        path.write_text(tokenizer.to_json()[:-100])
        with pytest.raises(
            ValueError, match=f"^{re.escape(str(path))} is not a tokenizer, or is trun"
        ):
            Tokenizer.load(path)

    @pytest.mark.parametrize(
        ("part", "value", "problem"),
        [
            ("decoder", None, "does not come back"),
            ("pre_tokenizer", {"type": "Whitespace"}, "does not come back"),
            ("normalizer", {"type": "Lowercase"}, "does not come back"),
            (
                "model",
                {"type": "BPE", "vocab": {"a": 0}, "merges": []},
                "token 0 must be '<pad>'",
            ),
            (
                "model",
                {
                    "type": "BPE",
                    "vocab": {token: id for id, token in enumerate(SPECIAL_TOKENS)},
                    "merges": [],
                },
                "lacks some bytes",
            ),
            (
                "added_tokens",
                [
                    {
                        "id": END,
                        "content": "</s>",
                        "single_word": False,
                        "lstrip": False,
                        "rstrip": False,
                        "normalized": False,
                        "special": True,
                    }
                ],
                "looks for added tokens",
            ),
        ],
    )
    def test_a_tokenizer_of_another_kind(
        self, part: str, value: object, problem: str, tokenizer: Tokenizer, tmp_path: Path
    ) -> None:
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps({**json.loads(tokenizer.to_json()), part: value}))
        with pytest.raises(ValueError, match=f"is not a tokenizer of relakit: .*{problem}"):
            Tokenizer.load(path)
