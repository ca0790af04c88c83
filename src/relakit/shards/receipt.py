"""What a finished output was made from, beside it, so that it need not be made again. No torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relakit.data.json_file import read_json
from relakit.data.tokenizer import file_digest
from relakit.files.writing import write_whole
from relakit.shards.ledger import OtherJobError, differences

FORMAT: Final = "relakit-receipt"
VERSION: Final = 1


def receipt_path(output: Path) -> Path:
    """Where the receipt of an output is."""
    return output.with_name(f"{output.name}.json")


@dataclass(frozen=True)
class Receipt:
    """What a finished output depends on, and what was counted."""

    facts: Mapping[str, Any]
    pairs: int
    counts: Mapping[str, int]
    sha256: str
    """Of the output"""

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
        """That of an output which is there, whole and unchanged; None otherwise."""
        path = receipt_path(output)
        if not (path.is_file() and output.is_file()):
            return None
        try:
            found = read_json(path)
            receipt = cls(
                dict(found["facts"]), int(found["pairs"]), dict(found["counts"]), found["sha256"]
            )
            is_ours = (found["format"], found["version"]) == (FORMAT, VERSION)
        except (ValueError, KeyError, TypeError):
            return None
        return receipt if is_ours and receipt.sha256 == file_digest(output) else None

    def check_is_of(self, facts: Mapping[str, Any], output: Path) -> None:
        """Raise `OtherJobError` if the output was made from something else."""
        listed = differences(self.facts, facts)
        if listed is not None:
            raise OtherJobError(
                f"{output} is there already, of another job: {listed}. Start again with --restart, "
                "or choose another --output"
            )
