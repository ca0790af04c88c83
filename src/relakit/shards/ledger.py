"""Keeps finished shards on disk, beside the output that they will become. No torch here.

The folder ``OUTPUT.parts`` holds ``job.json``, which says what the work depends on, and one file
per finished shard, written whole. So whatever stops a job, the same command resumes with the
missing shards, and a different command does not mix its shards with these.
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from relakit.data.json_file import read_json
from relakit.files.leftovers import is_unfinished
from relakit.files.locks import LOCK, locked
from relakit.files.reading import open_file
from relakit.files.writing import remove_folder, sweep, whole_file, write_whole
from relakit.shards.work import ShardResult

JOB_FILE: Final = "job.json"
FORMAT: Final = "relakit-job"
VERSION: Final = 1
_PART: Final = re.compile(r"(\d{6,12})\.part")
_MOST_NAMED: Final = 3
"""How many differences an error names."""


class OtherJobError(ValueError):
    """The folder or the output found belongs to a different job."""


def parts_folder(output: Path) -> Path:
    """The folder for the finished shards of an output."""
    return output.with_name(f"{output.name}.parts")


@contextmanager
def open_ledger(
    output: Path, facts: Mapping[str, Any], *, restart: bool = False
) -> Generator["Ledger", None, None]:
    """Open the record of what is done for an output, and keep other processes out meanwhile.

    Args:
        output: the file to be made.
        facts: everything its content depends on, as JSON, under names that users know.
        restart: discard what was done.

    Raises:
        OSError, ValueError: the folder holds something else, or parts of a different job; or
            another process is working in it.
    """
    folder = parts_folder(output)
    sweep(folder.parent, folder.name)  # left by a process killed while removing its parts
    with locked(folder):
        _refuse_foreign(folder)
        sweep(folder)  # once for all parts, since there may be many
        if restart:
            _forget(folder)
        before = _read_job(folder / JOB_FILE)
        ledger = Ledger(folder, facts)
        if before is not None and ledger.finished:
            _refuse_another(folder, before, facts)
        yield ledger


def _forget(folder: Path) -> None:
    """Remove all parts, and the job file last: without it, any remaining parts look foreign."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == JOB_FILE):
        if path.name != LOCK:
            path.unlink()


class Ledger:
    """The finished shards of one output."""

    def __init__(self, folder: Path, facts: Mapping[str, Any]) -> None:
        self.folder: Final = folder
        self._facts = facts
        self._finished = {
            int(match[1]): path
            for path in sorted(folder.iterdir())
            if (match := _PART.fullmatch(path.name)) and _is_whole(path)
        }

    @property
    def finished(self) -> Collection[int]:
        """The numbers of the finished shards, from 0."""
        return self._finished.keys()

    def keep(self, index: int, result: ShardResult) -> None:
        """Record a finished shard; it is on disk when this returns.

        Raises:
            WriteError: the shard cannot be written.
        """
        if not self._finished:
            job = {"format": FORMAT, "version": VERSION, "facts": self._facts}
            write_whole(self.folder / JOB_FILE, (json.dumps(job, indent=1) + "\n").encode())
        path = self.folder / f"{index:06}.part"
        head = {
            "bytes": len(result.content),
            "sha256": hashlib.sha256(result.content).hexdigest(),
            "counts": dict(result.counts),
        }
        with whole_file(path, sweeps=False) as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(result.content)
        self._finished[index] = path

    def results(self) -> Iterator[ShardResult]:
        """The results in the order of their shards, read one by one.

        Raises:
            ValueError: a part is damaged.
        """
        for index in sorted(self._finished):
            path = self._finished[index]
            with open_file(path) as file:
                head = _head(file.readline())
                content = file.read()
            if head is None or hashlib.sha256(content).hexdigest() != head["sha256"]:
                raise ValueError(f"{path} is damaged; remove it and give the command again")
            yield ShardResult(content, head["counts"])

    def remove(self) -> None:
        """Remove the folder with all parts, when nothing in it is needed any more."""
        remove_folder(self.folder)


def _is_whole(path: Path) -> bool:
    with open_file(path) as file:
        line = file.readline()
        head = _head(line)
        return head is not None and os.fstat(file.fileno()).st_size == len(line) + head["bytes"]


def _head(line: bytes) -> dict[str, Any] | None:
    try:
        head = json.loads(line)
        fits = {"bytes": int, "sha256": str, "counts": dict}
        is_head = all(type(head[key]) is kind for key, kind in fits.items())
    except (ValueError, KeyError, TypeError):
        return None
    return head if is_head else None


def _refuse_foreign(folder: Path) -> None:
    """Raise FileExistsError if the folder holds anything that is not part of a job."""
    has_job = (folder / JOB_FILE).exists()
    for path in sorted(folder.iterdir()):
        is_ours = path.name in (JOB_FILE, LOCK) or (has_job and _PART.fullmatch(path.name))
        if not is_ours and not is_unfinished(Path(path.name)):
            raise FileExistsError(
                f"{folder} holds {path.name!r}, which is no part of an unfinished output; move it "
                "away, or choose another --output"
            )


def _read_job(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    content = read_json(path)
    if (
        not isinstance(content, dict)
        or content.get("format") != FORMAT
        or content.get("version") != VERSION
        or not isinstance(content.get("facts"), dict)
    ):
        raise ValueError(
            f"{path} is not of this relakit; start again with --restart, or remove {path.parent}"
        )
    facts: dict[str, Any] = content["facts"]
    return facts


def _refuse_another(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    listed = differences(before, now)
    if listed is not None:
        raise OtherJobError(
            f"{folder} holds finished parts of another job: {listed}. Give the same command as "
            "then to resume, start over with --restart, or choose another --output"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The facts in which two jobs differ, in words; None if they agree."""
    before, now = flat_facts(before), flat_facts(now)
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    if not names:
        return None
    found = [_difference(name, before.get(name), now.get(name)) for name in names]
    more = len(names) - _MOST_NAMED
    return "; ".join(found[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _difference(name: str, before: Any, now: Any) -> str:
    if _is_digest(before) and _is_digest(now):
        return f"{name} has changed"
    return f"{name} was {_in_words(before)}, is {_in_words(now)}"


def _in_words(value: Any) -> str:
    if _is_digest(value):
        return f"{value[:12]}..."
    return "not set" if value is None else json.dumps(value)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def flat_facts(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested facts flattened to single names, such as ``model/config.json``."""
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat.update(flat_facts(value, f"{prefix}{name}/"))
        else:
            flat[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return flat
