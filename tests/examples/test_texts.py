"""examples/texts.py: files of the user, and the standard library."""

from pathlib import Path

import pytest
import texts


def test_texts_end_at_two_blank_lines(text_file: Path) -> None:
    split = texts.read_texts([text_file])
    assert len(split.training) + len(split.held_out) == 200
    assert not set(split.training) & set(split.held_out)
    assert 2 <= len(split.held_out) <= 30


def test_the_standard_library_is_there_in_one_order() -> None:
    split = texts.read_texts()
    assert split == texts.read_texts()
    assert sum(map(len, split.training)) > 1_000_000
    assert any("class JSONDecoder" in text for text in split.training + split.held_out)


def test_functions_come_without_name_and_docstring() -> None:
    training, held_out = texts.read_labelled()
    every = training + held_out
    assert {example.label for example in every} == set(texts.PACKAGES)
    assert 0.1 < len(held_out) / len(every) < 0.3
    (debug,) = [x for x in every if x.label == "logging" and "self._log(DEBUG, msg" in x.text]
    assert "Log 'msg % args'" not in debug.text
    assert "def debug" not in debug.text


def test_the_tokenizer_gives_back_every_byte(text_file: Path) -> None:
    tokenizer = texts.train_tokenizer(texts.read_texts([text_file]).training, 300)
    text = "\tdéf 😀\n  x = 1\n"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.token_to_id(texts.END) == 0


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"dog\ta dog\nno tab\n", r"line 2 is not label<TAB>text: 'no tab'"),
        (b"dog\ta dog\n\tno label\n", r"line 2 is not label<TAB>text"),
        (b"dog\t \n", r"line 1 is not label<TAB>text"),
        (b"dog\ta dog\n", r"1 texts to train on and 0 held out, which are too few"),
        (b"dog\t\xff\n", r"is not UTF-8: byte 4"),
    ],
)
def test_bad_labelled_files(content: bytes, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "data.tsv", content)
    with pytest.raises(ValueError, match=message) as caught:
        texts.read_labelled(path)
    assert str(path) in str(caught.value)


def test_a_text_that_is_too_short(tmp_path: Path) -> None:
    path = write(tmp_path / "text.txt", b"one text")
    with pytest.raises(ValueError, match=r"text\.txt: . texts to train on .*two blank lines"):
        texts.read_texts([path])


def test_a_vocabulary_has_room_for_all_bytes() -> None:
    with pytest.raises(ValueError, match="more than 256 tokens, got 200"):
        texts.train_tokenizer(["text"], 200)
