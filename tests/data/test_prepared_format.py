"""What corpus.json says is what loading finds, or an error says what is wrong."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_format import read_document, token_type
from relakit.data.prepared_writer import PrepareSettings, prepare

SETTINGS = PrepareSettings(vocab_size=300, source_language="en", target_language="de")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.tsv").write_text("a dog\tein Hund\n\tx\n")
    prepare({"train": ParallelFiles(tmp_path / "train.tsv")}, tmp_path / "out", settings=SETTINGS)
    return tmp_path / "out"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "corpus.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def test_what_was_written_is_read(folder: Path) -> None:
    document = read_document(folder)
    assert document.settings == SETTINGS
    assert (document.splits["train"].kept, document.splits["train"].empty) == (1, 1)
    assert document.inputs == {"train": [str(folder.with_name("train.tsv"))]}
    assert document.files == {
        path.name: path.stat().st_size for path in folder.iterdir() if path.name != "corpus.json"
    }


def test_a_corpus_from_before_sentences_could_be_truncated(folder: Path) -> None:
    edit(folder, lambda values: values["settings"].pop("long_sentences"))
    assert read_document(folder).settings == SETTINGS
    assert SETTINGS.long_sentences == "drop"


@pytest.mark.parametrize(
    ("vocabulary", "expected"), [(260, "<u2"), (65536, "<u2"), (65537, "<u4"), (250_000, "<u4")]
)
def test_ids_fit_into_their_type(vocabulary: int, expected: str) -> None:
    assert token_type(vocabulary) == expected


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_a_corpus(there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if there:
        folder.mkdir()
    with pytest.raises(
        ValueError, match=f"^{re.escape(str(folder))} is not a prepared corpus: it has"
    ):
        read_document(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON file: "),
        (b'{"format": "relakit corpus", "ver', "is no JSON file: "),
        (b"\xff\xff", r"is not UTF-8 \(byte 0xff at position 1\)"),
        (b"[" * 100_000, "is no JSON file: it is nested too deeply"),
        (b"[]", "does not describe a prepared corpus"),
        (b'{"name": "something else"}', "does not describe a prepared corpus"),
        (b'{"format": "relakit corpus", "version": 1}', "is damaged: it has no 'token_type'"),
    ],
)
def test_a_document_that_is_none(folder: Path, content: bytes, message: str) -> None:
    path = folder / "corpus.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} {message}"):
        read_document(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.update(version=7), "has version 7, this relakit reads version 1"),
        (lambda values: values.update(token_type="<f4"), "is damaged: .*'<f4' is none of"),
        (lambda values: values["settings"].update(colour=1), "is damaged: it has other keys"),
        (lambda values: values["settings"].update(max_tokens=0), "is damaged: .*max_tokens"),
        (
            lambda values: values["settings"].update(long_sentences="cut"),
            "is damaged: .*unknown long_sentences 'cut'; choose one of drop, truncate",
        ),
        (lambda values: values.update(splits=[]), "is damaged: it has other keys"),
        (lambda values: values["splits"]["train"].pop("kept"), "is damaged: it has other keys"),
        (
            lambda values: values["splits"]["train"].update(kept="7"),
            r"is damaged: .*kept cannot be '7'",
        ),
        (
            lambda values: values["splits"]["train"].update(kept=0),
            r"is damaged: .*train\.kept cannot be 0",
        ),
        (lambda values: values["files"].pop("train.lines"), "is damaged: it has no 'train.lines'"),
    ],
)
def test_a_document_with_other_values(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit(folder, change)
    with pytest.raises(ValueError, match=f"corpus.json {message}"):
        read_document(folder)


NAMES = ["tokenizer.json", "train.lines"] + [
    f"train.{side}.{part}" for side in ("source", "target") for part in ("tokens", "offsets")
]


@pytest.mark.parametrize("name", NAMES)
def test_a_truncated_file(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1])
    with pytest.raises(ValueError, match="it is truncated or from another corpus") as caught:
        read_document(folder)
    assert str(caught.value).startswith(
        f"{folder / name} has {len(content) - 1:,} bytes, corpus.json says {len(content):,}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ValueError, match=f"^{re.escape(str(folder / name))} is missing; prepare"):
        read_document(folder)
