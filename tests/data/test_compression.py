"""Archives that are broken, empty in part, or of another kind: each is named."""

import bz2
import gzip
import lzma
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from relakit.data.compression import compressed_by_ending, open_uncompressed


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


COMPRESSIONS = {"gzip": gzip.compress, "zstd": zstd}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "corpus.txt"


def read(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    with open_uncompressed(path) as stream:
        return stream.read()


def test_zstd_frames_without_content_are_passed_over(path: Path) -> None:
    skippable = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    assert read(path, skippable + zstd(b"a\n") + skippable + zstd(b"b\n")) == b"a\nb\n"


def zstd_with_window(log: int, content: bytes) -> bytes:
    """As of ``zstd --long=LOG``: a frame with a header and a block that is not compressed."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0, (log - 10) << 3])
    return header + (len(content) << 3 | 1).to_bytes(3, "little") + content


@pytest.mark.parametrize("log", [27, 28, 31])
def test_a_zstd_file_that_looks_far_back(log: int, path: Path) -> None:
    content = zstd_with_window(log, b"a dog\n" * 10)
    assert read(path, content + zstd_with_window(log, b"b") + content) == (
        b"a dog\n" * 10 + b"b" + b"a dog\n" * 10
    )


def test_a_zstd_file_that_looks_back_farther_than_there_is_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relakit.limits.machine_memory", lambda: 1 << 30)
    far = zstd_with_window(31, b"a dog\n" * 10)
    for content in (far, zstd(b"short") + far, zstd_with_window(20, b"") + far):
        with pytest.raises(ValueError, match=f"^unpacking {path} would need about 2.0 GiB of"):
            read(path, content)


LIMITED = """
import resource, sys
from pathlib import Path
from relakit.data.lines import read_lines
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    next(read_lines(Path(sys.argv[1])))
except ValueError as error:
    print(error)
"""


def test_memory_that_cannot_be_had(path: Path) -> None:
    path.write_bytes(zstd_with_window(31, b"a dog\n" * 10))
    command = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = f"{path} cannot be unpacked: there is not enough memory; compress it again without"
    assert done.stdout.startswith(expected), done.stderr


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
        after = f"{path} is damaged: after the end of its {name} stream comes something else; get"
        with pytest.raises(ValueError, match=after):
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


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "tsv.zst"])
def test_written_by_ending(ending: str, tmp_path: Path) -> None:
    contents = []
    for name in ("one", "other"):
        path = tmp_path / f"{name}.{ending}"
        with path.open("wb") as file, compressed_by_ending(path, file) as packed:
            packed.write(LONG)
        contents.append(path.read_bytes())
        with open_uncompressed(path) as stream:
            assert stream.read() == LONG
    assert contents[0] == contents[1], "neither name nor time is in it"
    assert (len(contents[0]) < len(LONG)) == (ending != "tsv")
