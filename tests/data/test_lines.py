"""Lines come out as they are in the file, compressed or not; a bad line is named."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from relakit.data.lines import read_lines


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
    return list(read_lines(path))


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


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for all examples: a new folder for each takes longer than the test."""
    return tmp_path_factory.mktemp("text") / "lines"


@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8")), min_size=1)
)
def test_lines_come_back_as_they_were(rewritten: Path, lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    # Text that happens to start like an archive is refused, and has a test of its own.
    if not content.startswith((b"PK\x03\x04", b"BZh91AY&SY")):
        assert read(rewritten, content) == [lines[0].removeprefix("\ufeff"), *lines[1:]]


def test_reading_is_lazy(path: Path) -> None:
    path.write_bytes(b"fine\n\xff\n")
    lines = read_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(ValueError, match="line 2"):
        next(lines)


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"^{path}: there is no such file$"):
        next(read_lines(path))


def test_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=f"^{tmp_path} is a folder; name a file$"):
        next(read_lines(tmp_path))


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("compress", COMPRESSIONS.values(), ids=COMPRESSIONS.keys())
def test_a_line_of_more_bytes_than_allowed(
    compress: Callable[[bytes], bytes], end: str, path: Path
) -> None:
    """The limit counts bytes, without the line end."""
    path.write_bytes(compress(f"ab\nüü{end}".encode()))
    assert list(read_lines(path, max_bytes=4)) == ["ab", "üü"]
    path.write_bytes(compress(f"ab\nüüx{end}".encode()))
    with pytest.raises(ValueError, match="line 2: it has more than 4 bytes, the most a line may"):
        list(read_lines(path, max_bytes=4))


def test_a_byte_order_mark_does_not_count_as_a_part_of_the_line(path: Path) -> None:
    path.write_bytes("\ufeffüü\r\nab\n".encode())
    assert list(read_lines(path, max_bytes=4)) == ["üü", "ab"]
    for too_long in ("\ufeffüüx\n", "\ufeffüüxyz and more\n", "üüxyz and more\n"):
        path.write_bytes(too_long.encode())
        with pytest.raises(ValueError, match="line 1: it has more than 4 bytes"):
            list(read_lines(path, max_bytes=4))


def test_a_nul_byte(path: Path) -> None:
    with pytest.raises(ValueError, match="line 2: a NUL byte at position 3 of the line: it is not"):
        read(path, b"a\nb \0\n")


ENDLESS = """
import resource, sys
from pathlib import Path
from relakit.data.lines import read_lines
# What the interpreter and its libraries have mapped, and 200 MB.
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
for name in sys.argv[1:]:
    try:
        next(read_lines(Path(name)))
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_a_line_of_600_mb_in_a_small_archive_needs_no_memory(tmp_path: Path) -> None:
    piece = b"x" * (1 << 20)
    packed = [tmp_path / "line.gz", tmp_path / "line.zst"]
    with gzip.open(packed[0], "wb", compresslevel=1) as file:
        for _ in range(600):
            file.write(piece)
    with zstandard.ZstdCompressor().stream_writer(packed[1].open("wb")) as writer:
        for _ in range(600):
            writer.write(piece)
    assert all(path.stat().st_size < 4 << 20 for path in packed)
    command = [sys.executable, "-c", ENDLESS, *map(str, packed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = "line 1: it has more than 1,048,576 bytes, the most a line may have; give text with"
    assert [expected in line for line in done.stdout.splitlines()] == [True, True], done.stderr
