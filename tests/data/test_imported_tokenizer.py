"""Tokenizers of other tools. What SentencePiece's models must give was computed by its package.

``sentencepiece/`` has a unigram model with bytes for unknown characters, and a BPE without; both
replace some characters, such as a ligature by its letters.
"""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as AnyTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from relakit.analysis.word_map import words_of_tokens
from relakit.data.imported_tokenizer import import_tokenizer
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import prepare
from relakit.data.tokenizer import SPECIAL_TOKENS, UNKNOWN, Tokenizer, learn_tokenizer
from relakit.decode.prefixes import make_prefix

FILES = Path(__file__).parent / "sentencepiece"
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
TEXTS: list[str] = EXPECTED["texts"]
LINES = ["The dogs run, and the cats sleep.", "Die Hunde laufen, und die Katzen schlafen."] * 20


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_it_splits_as_sentencepiece_does(kind: str) -> None:
    tokenizer = import_tokenizer(FILES / f"{kind}.model")
    for text, expected in zip(TEXTS, EXPECTED[kind], strict=True):
        assert [tokenizer.tokens[id] for id in tokenizer.encode(text).ids] == expected, text
    assert tokenizer.tokens[:4] == list(SPECIAL_TOKENS)
    assert tokenizer.encode_batch(TEXTS) == [tokenizer.encode(text).ids for text in TEXTS]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_text_comes_back(kind: str) -> None:
    tokenizer = import_tokenizer(FILES / f"{kind}.model")
    assert tokenizer.has_unknown == (kind == "bpe")
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        back = tokenizer.decode(ids)
        if UNKNOWN in ids:
            assert "\u2047" in back
        else:
            assert back == tokenizer.normalize(text)
    assert tokenizer.decode(tokenizer.encode("  several   spaces ").ids) == "several spaces"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_every_token_lies_in_one_word(kind: str) -> None:
    """Spans are places in the text as it was given, whatever was normalised."""
    tokenizer = import_tokenizer(FILES / f"{kind}.model")
    for text in TEXTS:
        words, start = [], 0
        for word in text.split():
            start = text.index(word, start)
            words.append((start, start + len(word)))
            start += len(word)
        spans = tokenizer.encode(text).spans
        assert all(0 <= first < last <= len(text) for first, last in spans), text
        assert not any(text[first:last].strip() != text[first:last] for first, last in spans)
        found = words_of_tokens(spans, words).tolist()
        assert found == sorted(found)
        assert set(found) == set(range(len(words))), text
        covered = {place for first, last in spans for place in range(first, last)}
        assert covered == {place for first, last in words for place in range(first, last)}, text


def test_the_ligature_is_in_its_word() -> None:
    tokenizer = import_tokenizer(FILES / "unigram.model")
    text = "a  ﬁne day"
    spans = tokenizer.encode(text).spans
    assert {text[first:last] for first, last in spans if first == 3} == {"ﬁ"}
    assert tokenizer.normalize(text) == "a fine day"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("text", ["</s>", "a <pad> b", "<0x41>", "<unk>"])
def test_text_that_looks_special_is_text(kind: str, text: str) -> None:
    tokenizer = import_tokenizer(FILES / f"{kind}.model")
    names = {tokenizer.tokens[id] for id in tokenizer.encode(text).ids}
    assert not names & {"</s>", "<pad>", "<s>", "<0x41>"}
    if not tokenizer.has_unknown:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_saved_and_read_again(tmp_path: Path) -> None:
    tokenizer = import_tokenizer(FILES / "bpe.model")
    tokenizer.save(tmp_path / "tokenizer.json")
    for read in (Tokenizer.load, import_tokenizer):
        again = read(tmp_path / "tokenizer.json")
        assert again.to_json() == tokenizer.to_json()
        assert again.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)


def test_a_corpus_with_unknown_characters(tmp_path: Path) -> None:
    table = tmp_path / "train.tsv"
    table.write_text("The dog \U0001f600 sees.\tDer Hund sieht.\n", encoding="utf-8")
    prepare(
        {"train": ParallelFiles(table)},
        tmp_path / "out",
        tokenizer=import_tokenizer(FILES / "bpe.model"),
    )
    corpus = PreparedCorpus.load(tmp_path / "out")
    source = corpus.train.source(0).tolist()
    assert UNKNOWN in source
    assert corpus.tokenizer.decode(source) == "The dog \u2047 sees."


def test_prefixes_may_end_within_a_word() -> None:
    tokenizer = import_tokenizer(FILES / "unigram.model")
    prefix = make_prefix("The teach", tokenizer)
    assert prefix is not None
    written = tokenizer.encode("The teacher").ids
    for length in range(len(written)):
        assert any(
            (allowed := beginning.allowed(tuple(written[:length]))) is None
            or written[length] in allowed
            for beginning in prefix.beginnings
        )


def hugging_face(kind: str) -> AnyTokenizer:
    """Tokenizers as the `tokenizers` library makes them, with special tokens of their own."""
    special = ["<|end|>", "[PAD]"]
    if kind == "byte-level BPE":
        tokenizer = AnyTokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
    else:
        tokenizer = AnyTokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=100, special_tokens=[*special, "<unk>"], unk_token="<unk>",
            show_progress=False,
        )  # fmt: skip
    tokenizer.train_from_iterator(LINES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", tokenizer.token_to_id("<|end|>"))]
    )
    return tokenizer


@pytest.mark.parametrize("kind", ["byte-level BPE", "unigram"])
def test_a_tokenizer_of_hugging_face(kind: str, tmp_path: Path) -> None:
    theirs = hugging_face(kind)
    theirs.save(str(tmp_path / "theirs.json"))
    tokenizer = import_tokenizer(tmp_path / "theirs.json")
    assert tokenizer.tokens[:4] == list(SPECIAL_TOKENS)
    assert "<|end|>" not in tokenizer.tokens
    for text in (*LINES[:2], "cats run"):
        ours = [tokenizer.tokens[id] for id in tokenizer.encode(text).ids]
        assert ours == theirs.encode(text, add_special_tokens=False).tokens
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.decode(tokenizer.encode(" the   cats").ids) == "the cats"


def test_our_own_stays_as_it_is(tmp_path: Path) -> None:
    own = learn_tokenizer(LINES, 300)
    own.save(tmp_path / "own.json")
    assert import_tokenizer(tmp_path / "own.json").to_json() == own.to_json()


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


PIECE = field(1, field(1, b"a") + bytes([2 << 3 | 5]) + struct.pack("<f", -1.0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PIECE + field(2, field(3, 3)), "its model_type is word; it must be unigram or bpe"),
        (PIECE + field(2, b"\xc0\x01\x01"), "treat_whitespace_as_suffix"),
        (PIECE[:-2], "or is damaged: it ends within field 1"),
        (b"", "or is damaged: it has no pieces"),
        (b"\x0a" + b"\xff" * 12, "or is damaged: the number before byte 11 has no end"),
        (field(1, field(1, b"a") + field(3, 9)), "a piece is of the unknown type 9"),
        (b'{"model": {"type": "WordPiece"}}', "its model is WordPiece; it must be BPE or Unigram"),
        (b'{"model": 3}', "it has other keys or values than a tokenizer has; copy or make it a"),
        (b'{"model": ', "is not a tokenizer, or is truncated"),
        (b'{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "splits text by other rules"),
    ],
)  # fmt: skip
def test_files_that_are_none(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        import_tokenizer(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        import_tokenizer(tmp_path / "x.model")
    with pytest.raises(IsADirectoryError):
        import_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_files_that_were_cut_are_told(kind: str, tmp_path: Path) -> None:
    content = (FILES / f"{kind}.model").read_bytes()
    path = tmp_path / "x.model"
    for place in range(0, len(content), len(content) // 40):  # none of them between two pieces
        path.write_bytes(content[:place])
        with pytest.raises(ValueError, match=r"or is damaged: it (ends within|has no pieces)"):
            import_tokenizer(path)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_changed_byte_raises_nothing_but_value_errors(kind: str, tmp_path: Path) -> None:
    """The format has no checksum: most changes give another tokenizer, or a ValueError."""
    content = (FILES / f"{kind}.model").read_bytes()
    path = tmp_path / "x.model"
    told = 0
    places = range(0, len(content), len(content) // 40)
    for place in places:
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        try:
            import_tokenizer(path).encode("The dog")
        except ValueError:
            told += 1
    assert len(places) / 3 < told < len(places)
