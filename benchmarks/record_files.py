"""Result files in JSON, with one measurement each."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from relakit.files.writing import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT: Final = 1


def write_record_file(path: Path, record: "DataclassInstance") -> None:
    content = json.dumps({"format": FORMAT, **asdict(record)}, indent=1)
    write_whole(path, f"{content}\n".encode())


def read_record_file(path: Path) -> dict[str, Any]:
    """The fields of a record; ValueError if it has a different format."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = content.pop("format", None)
    if found != FORMAT:
        raise ValueError(f"{path} must have the format {FORMAT}, got {found}; measure it anew")
    return content
