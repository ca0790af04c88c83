"""Opens files as bytes, with readable errors, and tells by digest whether files differ."""

import hashlib
from io import BufferedReader
from pathlib import Path
from typing import Final

from relakit.files.write_errors import reason_and_advice

BUFFER_BYTES: Final = 1 << 18


def open_file(path: Path) -> BufferedReader:
    """Open a file for its bytes; raises OSError with a readable reason if it cannot be read."""
    try:
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; name a file") from None
    except PermissionError:
        raise PermissionError(
            f"{path} cannot be read: permission denied; have its owner allow it"
        ) from None
    except OSError as error:
        problem = "; ".join(filter(None, reason_and_advice(error)))
        raise OSError(f"{path} cannot be read: {problem}") from None


def file_digest(path: Path) -> str:
    """The SHA-256 of a file of any size, to tell whether two files are the same."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        while block := file.read(BUFFER_BYTES):
            digest.update(block)
    return digest.hexdigest()
