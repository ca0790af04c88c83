"""Text files as streams of bytes: plain, gzip or zstd, told apart by their first bytes."""

import gzip
import io
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

from relakit.files.reading import BUFFER_BYTES, open_file
from relakit.limits import check_memory

ZSTD_CHUNK_BYTES: Final = 1 << 10
"""Small, because four bytes of a zstd file may stand for 128 KiB."""
ZSTD_WINDOW_BYTES: Final = 1 << 31
"""How far ``zstd --long=31`` looks back, which is the most; unpacking takes that much memory."""

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
_ZSTD_HEADER_BYTES: Final = 18
"""The most bytes that a frame's header has."""
_WITHOUT_LONG: Final = "compress it again without --long, on a machine with more"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_FOREIGN: Final = {
    b"\xfd7zXZ\x00": "compressed with xz",
    b"BZh91AY&SY": "compressed with bzip2",
    b"PK\x03\x04": "a zip archive",
    **dict.fromkeys(_UTF16, "text in UTF-16"),
}
_MAGIC_BYTES: Final = max(map(len, _FOREIGN))


@contextmanager
def open_uncompressed(path: Path, *, utf16: bool = False) -> Generator[BinaryIO, None, None]:
    """The content of a file, unpacked piece by piece if it is compressed.

    ``utf16``: whether the reader can handle UTF-16.

    Raises:
        OSError: there is no such file, it is a folder, or it may not be read.
        ValueError: the file has another format, or is truncated or damaged.
    """
    with open_file(path) as file:
        # peek() may return less than asked for, but at the start only if the file is that short.
        start = file.peek(_MAGIC_BYTES)[:_MAGIC_BYTES]
        for magic, what in _FOREIGN.items():
            if start.startswith(magic) and not (utf16 and magic in _UTF16):
                raise ValueError(f"{path} is {what}; give UTF-8 text, plain, gzip or zstd")
        if start.startswith(_GZIP):
            with _unpacked_gzip(path, file) as stream:
                yield stream
        elif start.startswith((_ZSTD, *_ZSTD_SKIPPABLE)):
            yield io.BufferedReader(_ZstdStream(path, file), BUFFER_BYTES)
        else:
            yield file


@contextmanager
def compressed_by_ending(path: Path, file: BinaryIO) -> Generator[BinaryIO, None, None]:
    """A file to write into, which compresses into ``file`` as the ending of its ``path`` says.

    The same content always gives the same bytes.
    """
    if path.suffix == ".gz":
        # No name and no time, which differ between runs.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
            yield cast(BinaryIO, packed)
    elif path.suffix == ".zst":
        with zstandard.ZstdCompressor(write_checksum=True).stream_writer(
            file, closefd=False
        ) as packed:
            yield cast(BinaryIO, packed)
    else:
        yield file


@contextmanager
def _unpacked_gzip(path: Path, file: BinaryIO) -> Generator[BinaryIO, None, None]:
    with gzip.GzipFile(fileobj=file) as unpacked:
        try:
            yield io.BufferedReader(unpacked, BUFFER_BYTES)
        except EOFError:
            raise _truncated(path, "gzip") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            # The file began as gzip, so anything that is not gzip comes after the stream's end.
            if str(error).startswith("Not a gzipped file"):
                raise _something_after(path, "gzip") from None
            problem = "its check sum is wrong" if "CRC" in str(error) else "it cannot be unpacked"
            raise _damaged(path, problem) from None


def _damaged(path: Path, problem: str) -> ValueError:
    return ValueError(f"{path} is damaged: {problem}; get or make it again")


def _truncated(path: Path, kind: str) -> ValueError:
    return ValueError(
        f"{path} is truncated: its {kind} stream ends too early; get or make it again"
    )


def _something_after(path: Path, kind: str) -> ValueError:
    return ValueError(
        f"{path} is damaged: after the end of its {kind} stream comes something else; get or make "
        "it again"
    )


class _ZstdStream(io.RawIOBase):
    """The content of a zstd file across all its frames; an unfinished last frame is an error.

    The reader that `zstandard` offers takes the end of a truncated file for the end of the data.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
        self._frame = self._unpacker.decompressobj()
        self._frame_begun = False
        self._first_frame = True
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._pending:
            chunk = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = self._unpacker.decompressobj()
                self._frame_begun = self._first_frame = False
            is_start = not self._frame_begun
            if not chunk or (is_start and len(chunk) < _ZSTD_HEADER_BYTES):
                chunk += self._file.read(ZSTD_CHUNK_BYTES)
            if not chunk:
                if self._frame_begun:
                    raise _truncated(self._path, "zstd")
                return 0
            self._frame_begun = True
            try:
                if is_start:
                    self._check_window(chunk)
                self._pending = memoryview(self._frame.decompress(chunk))
            except zstandard.ZstdError as error:
                if "not enough memory" in str(error):
                    raise ValueError(
                        f"{self._path} cannot be unpacked: there is not enough memory; "
                        f"{_WITHOUT_LONG}"
                    ) from None
                if is_start and not self._first_frame:
                    raise _something_after(self._path, "zstd") from None
                raise _damaged(self._path, "it cannot be unpacked") from None
        count = min(len(buffer), len(self._pending))
        buffer[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count

    def _check_window(self, start: bytes) -> None:
        """Raise ValueError if a frame with this start needs more memory than there is."""
        if len(start) >= _ZSTD_HEADER_BYTES:  # else it ends at once, or is truncated
            window = zstandard.get_frame_parameters(start).window_size
            check_memory(f"unpacking {self._path}", window, advice=_WITHOUT_LONG)
