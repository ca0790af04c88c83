"""Lines of text files, read as streams. A bad line is reported here, by file and line number."""

from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, Final

from relakit.data.compression import open_uncompressed
from relakit.limits import MAX_LINE_BYTES

_BOM: Final = b"\xef\xbb\xbf"
_LONGEST_LINE_END: Final = len(b"\r\n")


def bad_line(path: Path | str, number: int, problem: str) -> ValueError:
    """The error for a line, counted from 1, that cannot be used."""
    return ValueError(f"{path}, line {number:,}: {problem}")


def check_has_text(path: Path | str, lines: int, *, has_text: bool) -> None:
    """Raise ValueError for a file that has been read and has no lines, or only blank ones."""
    if not lines:
        raise ValueError(f"{path} is empty")
    if not has_text:
        blank = "its only line is" if lines == 1 else f"all its {lines:,} lines are"
        raise ValueError(f"{path} has no text: {blank} blank")


def read_lines(path: Path, *, max_bytes: int = MAX_LINE_BYTES) -> Generator[str, None, None]:
    """The lines of a UTF-8 file, plain, gzip or zstd, without their line ends.

    Only a line feed ends a line (a carriage return before it is part of the line end), so line
    numbers agree with `wc` and with the other side of a parallel corpus. A byte order mark at the
    start is left out. However the file is compressed, memory holds one line and some buffers.

    Raises:
        OSError: the file cannot be read.
        ValueError: names the file, the line if it is known, and the problem: a line of more than
            ``max_bytes``, a byte that is not UTF-8, a NUL byte, a damaged archive.
    """
    with open_uncompressed(path) as stream:
        yield from decode_lines(path, stream, max_bytes=max_bytes)


def decode_lines(
    path: Path | str, stream: BinaryIO, *, max_bytes: int = MAX_LINE_BYTES
) -> Generator[str, None, None]:
    """The lines of a UTF-8 stream, as in `read_lines`; errors call the stream ``path``."""
    number = 0
    longest = max_bytes + _LONGEST_LINE_END
    while line := stream.readline(longest if number else len(_BOM) + longest):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(line) > max_bytes:
            raise bad_line(
                path,
                number,
                f"it has more than {max_bytes:,} bytes, the most a line may have; give text with "
                "one sentence per line",
            )
        yield _decode(path, number, line)


def _decode(path: Path | str, number: int, line: bytes) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_line(
            path,
            number,
            f"not UTF-8 (byte 0x{line[error.start]:02x} at position {error.start + 1:,} of the "
            "line); convert the file, for instance with iconv",
        ) from None
    if "\0" in text:
        raise bad_line(
            path,
            number,
            f"a NUL byte at position {line.index(0) + 1:,} of the line: it is not text, or UTF-16; "
            "convert the file with iconv, or remove the bytes with tr -d '\\000'",
        )
    return text
