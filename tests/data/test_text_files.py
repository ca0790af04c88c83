"""Lines come out as they are in the file, compressed or not; broken files are named."""

import bz2
import gzip
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from relakit.data.text_files import open_text


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


COMPRESSIONS = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd}
LINES = [
    "Ein Mann läuft.",
    "",
    "  two  spaces\t",
    "\u2028 \x85 \x0b \x0c \x1c \u2029",
    "❤️ 日本語",
    "end",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "corpus.txt"


def read(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return list(open_text(path))


@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS.keys())
class TestLines:
    @pytest.mark.parametrize("line_end", ["\n", "\r\n"])
    @pytest.mark.parametrize("last_line_end", [True, False])
    def test_only_a_line_feed_ends_a_line(
        self, compress: Callable[[bytes], bytes], line_end: str, last_line_end: bool, path: Path
    ) -> None:
        text = line_end.join(LINES) + (line_end if last_line_end else "")
        assert read(path, compress(text.encode())) == LINES

    def test_a_byte_order_mark_is_left_out_at_the_start_only(
        self, compress: Callable[[bytes], bytes], path: Path
    ) -> None:
        assert read(path, compress("\ufeffa\n\ufeffb\n".encode())) == ["a", "\ufeffb"]

    def test_nothing_has_no_lines(self, compress: Callable[[bytes], bytes], path: Path) -> None:
        assert read(path, compress(b"")) == []

    def test_more_than_any_buffer(self, compress: Callable[[bytes], bytes], path: Path) -> None:
        lines = [f"{number} {'x' * (number % 700)}" for number in range(5000)]
        assert read(path, compress("\n".join(lines).encode())) == lines

    def test_parts_compressed_one_by_one_are_one_text(
        self, compress: Callable[[bytes], bytes], path: Path
    ) -> None:
        assert read(path, compress(b"a\nb") + compress(b"c\n") + compress(b"d")) == ["a", "bc", "d"]

    def test_bytes_that_are_not_utf8_are_located(
        self, compress: Callable[[bytes], bytes], path: Path
    ) -> None:
        with pytest.raises(ValueError, match="not UTF-8") as caught:
            read(path, compress("gut\nMädchen läuft\n".encode() + "Mädchen\n".encode("latin-1")))
        assert str(caught.value) == (
            f"{path}, line 3: not UTF-8 (byte 0xe4 at position 2 of the line); convert the file, "
            "for instance with iconv"
        )


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8")), min_size=1))
def test_lines_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("text") / "lines"
    content = "".join(f"{line}\n" for line in lines).encode()
    # Text that happens to start like an archive is refused, and has a test of its own.
    if not content.startswith((b"PK\x03\x04", b"BZh91AY&SY")):
        assert read(path, content) == [lines[0].removeprefix("\ufeff"), *lines[1:]]


def test_zstd_frames_without_content_are_passed_over(path: Path) -> None:
    skippable = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    assert read(path, skippable + zstd(b"a\n") + skippable + zstd(b"b\n")) == ["a", "b"]


def test_reading_is_lazy(path: Path) -> None:
    path.write_bytes(b"fine\n\xff\n")
    lines = open_text(path)
    assert next(lines) == "fine"
    with pytest.raises(ValueError, match="line 2"):
        next(lines)


LONG = "".join(f"{number * number}\n" for number in range(20_000)).encode()


@pytest.mark.parametrize("name", ["gzip", "zstd"])
class TestBrokenCompression:
    @pytest.mark.parametrize("missing", [1, 3, 10, 5000])
    def test_truncated(self, name: str, missing: int, path: Path) -> None:
        with pytest.raises(ValueError, match=f"{path} is truncated: its {name} stream ends too"):
            read(path, COMPRESSIONS[name](LONG)[:-missing])

    def test_damaged(self, name: str, path: Path) -> None:
        content = bytearray(COMPRESSIONS[name](LONG))
        content[len(content) // 2 :] = bytes(len(content) // 2)
        with pytest.raises(ValueError, match=f"{path} is (damaged|truncated): "):
            read(path, bytes(content))

    def test_followed_by_something_else(self, name: str, path: Path) -> None:
        with pytest.raises(ValueError, match=f"{path} is damaged: "):
            read(path, COMPRESSIONS[name](b"a\n") + b"something else")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (lzma.compress(b"a\n"), "compressed with xz"),
        (bz2.compress(b"a\n"), "compressed with bzip2"),
        (b"PK\x03\x04rest", "a zip archive"),
        ("a\n".encode("utf-16"), "text in UTF-16"),
    ],
    ids=["xz", "bzip2", "zip", "UTF-16"],
)
def test_formats_that_are_not_read_are_named(content: bytes, what: str, path: Path) -> None:
    with pytest.raises(ValueError, match="give UTF-8 text") as caught:
        read(path, content)
    assert str(caught.value) == f"{path} is {what}; give UTF-8 text, plain, gzip or zstd"


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(path)):
        next(open_text(path))
