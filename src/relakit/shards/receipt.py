"""A receipt beside a finished output: what it was made from, to avoid redoing it. No torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relakit.data.json_file import read_json
from relakit.files.reading import file_digest
from relakit.files.writing import write_whole
from relakit.shards.ledger import OtherJobError, differences

FORMAT: Final = "relakit-receipt"
VERSION: Final = 1
TEXT: Final = "the text of the input"
"""The name of the fact that holds the digest of all pairs."""


def receipt_path(output: Path) -> Path:
    """The path of an output's receipt."""
    return output.with_name(f"{output.name}.json")


def refuse_foreign_receipt(output: Path) -> None:
    """Raise FileExistsError if something else has the path of the output's receipt."""
    path = receipt_path(output)
    if path.exists() and _content(path) is None:
        raise FileExistsError(
            f"{path} is there already, and is no receipt of {output.name}, which would replace it; "
            "move it away, or choose another --output"
        )


@dataclass(frozen=True)
class Receipt:
    """What a finished output depends on, and what was counted."""

    facts: Mapping[str, Any]
    pairs: int
    counts: Mapping[str, int]
    sha256: str
    """The digest of the output"""

    @classmethod
    def of(
        cls, output: Path, facts: Mapping[str, Any], pairs: int, counts: Mapping[str, int]
    ) -> "Receipt":
        return cls(facts, pairs, dict(counts), file_digest(output))

    def write(self, output: Path) -> None:
        document = {"format": FORMAT, "version": VERSION, **vars(self)}
        write_whole(receipt_path(output), (json.dumps(document, indent=1) + "\n").encode())

    @classmethod
    def read(cls, output: Path) -> "Receipt | None":
        """The receipt of an output that exists, whole and unchanged; None otherwise."""
        path = receipt_path(output)
        found = _content(path) if path.is_file() and output.is_file() else None
        if found is None or found.get("version") != VERSION:
            return None
        try:
            receipt = cls(
                dict(found["facts"]), int(found["pairs"]), dict(found["counts"]), found["sha256"]
            )
        except (ValueError, KeyError, TypeError):
            return None
        return receipt if receipt.sha256 == file_digest(output) else None

    def is_of(self, facts: Mapping[str, Any]) -> bool:
        """Whether the output was made from these facts."""
        return differences(self.facts, facts) is None

    def check_is_of(self, facts: Mapping[str, Any], output: Path) -> None:
        """Raise `OtherJobError` if the output was made from something else."""
        listed = differences(self.facts, facts)
        if listed is not None:
            raise OtherJobError(
                f"{output} is there already, of another job: {listed}. Start again with --restart, "
                "or choose another --output"
            )


def _content(path: Path) -> dict[str, Any] | None:
    """The content of a receipt; None if the file is not one."""
    try:
        found = read_json(path)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None
