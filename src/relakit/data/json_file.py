"""Reads settings from small files, with errors that name the file."""

import json
from pathlib import Path
from typing import Any

from relakit.files.reading import open_file
from relakit.limits import MAX_JSON_BYTES


def read_text(path: Path, kind: str) -> str:
    """The text of a small file; ValueError if it is not UTF-8, or too large for its kind."""
    with open_file(path) as file:
        content = file.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        size = max(path.stat().st_size, len(content))  # a pipe has no size
        raise ValueError(
            f"{path} has {size:,} bytes, which is no {kind}: they have at most {MAX_JSON_BYTES:,}"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, position = content[error.start], error.start + 1
        raise ValueError(
            f"{path} is not UTF-8 (byte 0x{byte:02x} at position {position:,}): it is no {kind}"
        ) from None


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON, or far too large for settings.
    """
    text = read_text(path, "file of settings")
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from None


def parse_json(text: str) -> Any:
    """The content of a JSON document; ValueError names the line and column where it is invalid."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        problem = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise ValueError(f"{problem} (line {error.lineno:,}, column {error.colno:,})") from None
    except ValueError:  # Python's limit on digits
        raise ValueError("a number in it has thousands of digits") from None
