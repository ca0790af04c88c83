"""Lines of text files, read as streams. A bad line is reported here, by file and line number."""

from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, Final

from relakit.data.compression import open_uncompressed

_BOM: Final = "\ufeff"


def bad_line(path: Path | str, number: int, problem: str) -> ValueError:
    """The error for a line, counted from 1, that cannot be used."""
    return ValueError(f"{path}, line {number:,}: {problem}")


def read_lines(path: Path) -> Generator[str, None, None]:
    """The lines of a UTF-8 file, plain, gzip or zstd, without their line ends.

    Only a line feed ends a line (a carriage return before it is part of the line end), so line
    numbers agree with `wc` and with the other side of a parallel corpus. A byte order mark at the
    start is left out.

    Raises:
        ValueError: names the file, the line if it is known, and the problem.
    """
    with open_uncompressed(path) as stream:
        yield from decode_lines(path, stream)


def decode_lines(path: Path | str, stream: BinaryIO) -> Generator[str, None, None]:
    """The lines of a UTF-8 stream, as `read_lines` gives them; ``path`` is its name in errors."""
    for number, line in enumerate(stream, start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise bad_line(
                path,
                number,
                f"not UTF-8 (byte 0x{line[error.start]:02x} at position {error.start + 1:,} of the "
                "line); convert the file, for instance with iconv",
            ) from None
        if number == 1:
            text = text.removeprefix(_BOM)
        yield text.removesuffix("\n").removesuffix("\r")
