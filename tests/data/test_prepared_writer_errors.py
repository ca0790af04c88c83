"""Broken corpora, each with its error; nothing of them stays."""

import gzip
import os
from pathlib import Path

import pytest
import zstandard

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_writer import PrepareSettings, prepare

SETTINGS = PrepareSettings(vocab_size=300)


@pytest.fixture
def train(tmp_path: Path) -> ParallelFiles:
    """Seven pairs with nothing wrong."""
    files = ParallelFiles(tmp_path / "train.en", tmp_path / "train.de")
    for path, word in zip(files.paths, ("dog", "Hund"), strict=True):
        path.write_text("".join(f"{word} {number}\n" for number in range(7)))
    return files


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new" / "prepared"


GOOD = b"a b\nc d\ne f\n"
BROKEN: dict[str, tuple[bytes, bytes, str]] = {
    "target shorter": (GOOD, b"A\nB\n", "{source} has 3 lines, {target} has 2: line n of one must"),
    "source shorter": (b"a\n", GOOD, "{source} has 1 line, {target} has 3: line n of one must"),
    "source empty": (b"", GOOD, "{source} is empty"),
    "target empty": (GOOD, b"", "{target} is empty"),
    "Latin-1": (GOOD, b"A\nM\xe4r\nC\n", "{target}, line 2: not UTF-8 (byte 0xe4 at position 2 "),
    "cut character": (GOOD, b"A\nB\nC\xc3\n", "{target}, line 3: not UTF-8 (byte 0xc3 at position"),
    "UTF-16": ("a\nb\n".encode("utf-16"), GOOD, "{source} is text in UTF-16; give UTF-8 text"),
    "NUL": (b"a\nb \0\nc\n", GOOD, "{source}, line 2: a NUL byte at position 3 of the line"),
    "one endless line": (
        GOOD,
        b"A\n" + b"x" * (1 << 21),
        "{target}, line 2: it has more than 1,048,",
    ),
    "garbage after gzip": (
        gzip.compress(GOOD) + b"junk",
        GOOD,
        "{source} is damaged: after the end of its gzip stream comes something else; get or make",
    ),
    "xz": (b"\xfd7zXZ\x00\x00", GOOD, "{source} is compressed with xz; give UTF-8 text"),
    "truncated gzip": (gzip.compress(GOOD)[:-6], GOOD, "{source} is truncated: its gzip stream"),
    "damaged gzip": (
        gzip.compress(GOOD)[:-8] + bytes(8),
        GOOD,
        "{source} is damaged: its check sum is wrong",
    ),
    "truncated zstd": (
        GOOD,
        zstandard.ZstdCompressor().compress(GOOD)[:-2],
        "{target} is truncated: its zstd stream ends too early",
    ),
    "only empty lines": (
        GOOD,
        b"\n \n\t\n",
        "{target} has no text: all its 3 lines are blank",
    ),
    "never text on both sides": (
        b"\na\n",
        b"A\n \n",
        "no pair of valid is left: of 2 pairs in {source}, 2 have an empty side and 0 have more",
    ),
    "only long lines": (
        GOOD,
        b"word " * 2000 + b"\n" + b"A " * 1100 + b"\n" + b"B " * 1100 + b"\n",
        "no pair of valid is left: of 3 pairs in {source}, 0 have an empty side and 3 have more "
        "than 1,024 tokens; give other files, or a larger max_tokens",
    ),
}


class TestBrokenCorpora:
    @pytest.mark.parametrize(("source", "target", "message"), BROKEN.values(), ids=BROKEN.keys())
    def test_two_files(
        self, source: bytes, target: bytes, message: str, train: ParallelFiles, out: Path
    ) -> None:
        """The mistake is in the second split: nothing of the first stays either."""
        valid = ParallelFiles(
            train.source.with_name("valid.en"), train.source.with_name("valid.de")
        )
        assert valid.target is not None
        valid.source.write_bytes(source)
        valid.target.write_bytes(target)
        with pytest.raises(ValueError, match="valid") as caught:
            prepare({"train": train, "valid": valid}, out)
        expected = message.format(source=valid.source, target=valid.target)
        assert str(caught.value).startswith(expected)
        assert not out.exists()

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (b"", "{path} is empty"),
            (
                b"a\tb\nc d\n",
                "{path}, line 2: no tab; every line needs a source, a tab and a target",
            ),
            (b"a\tb\nc\t\xff\n", "{path}, line 2: not UTF-8 (byte 0xff at position 3 of the line)"),
        ],
    )
    def test_columns(self, table: bytes, message: str, tmp_path: Path, out: Path) -> None:
        path = tmp_path / "train.tsv"
        path.write_bytes(table)
        with pytest.raises(ValueError, match=r"train\.tsv") as caught:
            prepare({"train": ParallelFiles(path)}, out)
        assert str(caught.value).startswith(message.format(path=path))
        assert not out.exists()

    def test_a_missing_file(self, train: ParallelFiles, out: Path) -> None:
        files = ParallelFiles(train.source, Path("nowhere.de"))
        with pytest.raises(
            FileNotFoundError, match=r"^nowhere\.de \(train\): there is no such file$"
        ):
            prepare({"train": files}, out)

    def test_a_folder_or_a_pipe(self, train: ParallelFiles, tmp_path: Path, out: Path) -> None:
        with pytest.raises(IsADirectoryError, match=r"\(train\) is a folder; name a file$"):
            prepare({"train": ParallelFiles(train.source, tmp_path)}, out)
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(
            ValueError, match=r"\(train\) is not a file; it must be readable several"
        ):
            prepare({"train": ParallelFiles(train.source, pipe)}, out)

    def test_a_file_that_grows_meanwhile(self, train: ParallelFiles, out: Path) -> None:
        assert train.target is not None

        def append(stage: str, done: int, total: int | None) -> None:
            if stage == "learning the tokenizer":
                for path in train.paths:
                    path.write_text(path.read_text() + "more\n")

        with pytest.raises(ValueError, match="changed while it was read: 7 pairs at first, now 8"):
            prepare({"train": train}, out, settings=SETTINGS, on_stage=append)
        assert not out.exists()

    def test_no_split(self, out: Path) -> None:
        with pytest.raises(ValueError, match="nothing to prepare"):
            prepare({}, out)

    def test_nothing_to_learn_from(self, train: ParallelFiles, out: Path) -> None:
        with pytest.raises(ValueError, match="give a split train or a tokenizer"):
            prepare({"test": train}, out)

    @pytest.mark.parametrize("name", ["", "../train", "a.b", "-x", "a b"])
    def test_names_that_are_no_file_names(self, name: str, train: ParallelFiles, out: Path) -> None:
        with pytest.raises(ValueError, match="cannot name a split"):
            prepare({"train": train, name: train}, out)


def test_a_vocabulary_of_a_billion() -> None:
    with pytest.raises(ValueError, match="vocab_size must be at most 1,000,000, got 1,000,000,000"):
        PrepareSettings(vocab_size=10**9)


@pytest.mark.parametrize("name", ["vocab_size", "max_tokens", "min_frequency", "sample_lines"])
def test_settings_that_make_no_sense(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least .*, got 0"):
        PrepareSettings(**{name: 0})
