"""A row of a fault table: what is broken, the command, and the one line that it answers with."""

import fnmatch
import gzip
import io
import json
import os
import shutil
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from relakit.cli import main as cli

Break = Callable[[Path], object]

PREFIX = "relakit: error: "
FOREIGN_WORDS = (
    "Traceback", "Errno", "pydantic", "Value error", "Input should", "validation error",
    "RuntimeError", "size mismatch", "torch.", "Safetensor", "InvalidHeader", "HeaderTooLarge",
    "MetadataIncomplete", "deserializ", "NoneType", "KeyError", "TypeError", "AttributeError",
    "IndexError", "OverflowError", "unexpected keyword", ".tmp", "object at 0x", "site-packages",
)  # fmt: skip
"""Words of the libraries and of our own insides, which no user has asked for."""
BOX = str.maketrans(dict.fromkeys("│╭╮╰╯─", " "))
"""What typer frames wrong usage with."""


@dataclass(frozen=True)
class Row:
    """The command runs in a folder of its own, where `fault_folder.build` has put everything."""

    broken: str
    """What is wrong, in words; the row's name."""
    command: str
    """Without ``relakit``; split at spaces."""
    says: str
    """The whole line after ``relakit: error:``; ``...`` stands for anything."""
    breaks: tuple[Break, ...] = ()
    """What is done to the folder before."""
    code: int = 1
    """2: wrong usage, which typer reports in a box; ``says`` is then a part of it."""
    leaves: tuple[str, ...] = ()
    """Files and folders that the command may write although it fails."""


def row(
    broken: str,
    command: str,
    says: str,
    *breaks: Break,
    code: int = 1,
    leaves: tuple[str, ...] = (),
) -> Row:
    return Row(broken, command, says, breaks, code, leaves)


def usage(broken: str, command: str, says: str) -> Row:
    """Wrong usage, which typer finds."""
    return Row(broken, command, says, code=2)


def put(path: str, content: str | bytes) -> Break:
    """Write a file."""

    def do(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)

    return do


def put_gzip(path: str, content: bytes, after: bytes = b"", cut: int = 0) -> Break:
    """Write a gzip file, with something after its end or without its last bytes."""
    packed = gzip.compress(content, mtime=0)
    return put(path, packed[: len(packed) - cut] + after)


def remove(path: str) -> Break:
    def do(folder: Path) -> None:
        if (folder / path).is_dir():
            shutil.rmtree(folder / path)
        else:
            (folder / path).unlink()

    return do


def make_folder(path: str) -> Break:
    return lambda folder: (folder / path).mkdir(parents=True)


def copy(path: str, to: str) -> Break:
    def do(folder: Path) -> None:
        if (folder / path).is_dir():
            shutil.copytree(folder / path, folder / to)
        else:
            shutil.copy(folder / path, folder / to)

    return do


def pipe(path: str) -> Break:
    """Make a named pipe, which nobody writes to: whoever reads from it waits for ever."""
    return lambda folder: os.mkfifo(folder / path)


def link(path: str, to: str) -> Break:
    return lambda folder: (folder / path).symlink_to(to)


def cut(path: str, size: int) -> Break:
    """Leave so many bytes of a file."""
    return lambda folder: (folder / path).write_bytes((folder / path).read_bytes()[:size])


def append(path: str, content: bytes) -> Break:
    return lambda folder: (folder / path).write_bytes((folder / path).read_bytes() + content)


def overwrite(path: str, at: int, content: bytes) -> Break:
    """Replace bytes in the middle of a file; from its end if ``at`` is negative."""

    def do(folder: Path) -> None:
        data = bytearray((folder / path).read_bytes())
        start = at if at >= 0 else len(data) + at
        data[start : start + len(content)] = content
        (folder / path).write_bytes(bytes(data))

    return do


def replace(path: str, old: str, new: str) -> Break:
    """Replace text in a file, which must be there."""

    def do(folder: Path) -> None:
        text = (folder / path).read_text()
        assert old in text, f"{path} has no {old!r}"
        (folder / path).write_text(text.replace(old, new))

    return do


def set_json(path: str, keys: str, value: Any) -> Break:
    """Set a value of a JSON file, such as ``model.dim``; it is removed for ``...``."""

    def do(folder: Path) -> None:
        content = json.loads((folder / path).read_text())
        *above, last = keys.split(".")
        inner = content
        for key in above:
            inner = inner[key]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
        (folder / path).write_text(json.dumps(content))

    return do


def set_header(path: str, change: Callable[[dict[str, Any]], None]) -> Break:
    """Change the header of a safetensors file."""

    def do(folder: Path) -> None:
        data = (folder / path).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + length])
        change(header)
        text = json.dumps(header).encode()
        (folder / path).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return do


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    code: int
    errors: str
    """Standard error."""

    @property
    def line(self) -> str:
        """What it says is wrong."""
        if self.code == 2:
            return " ".join(self.errors.translate(BOX).split())
        lines = [line for line in self.errors.splitlines() if line.startswith(PREFIX)]
        assert len(lines) == 1, f"one error, in one line; got {self.errors!r}"
        return lines[0].removeprefix(PREFIX)


def run(command: list[str], folder: Path) -> Answer:
    """Run the command line in this process, in a folder, without standard input."""
    errors = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        (folder / "stdin.txt").open() as standard_input,
        redirect_stderr(errors),
        redirect_stdout(io.TextIOWrapper(io.BytesIO())),
    ):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "400")
        patch.delenv("RELAKIT_DEBUG", raising=False)
        patch.setattr(sys, "argv", ["relakit", *command])
        patch.setattr(sys, "stdin", standard_input)
        try:
            cli.main()
        except SystemExit as end:
            return Answer(int(end.code or 0), errors.getvalue())
    return Answer(0, errors.getvalue())


def content_of(folder: Path, but: tuple[str, ...] = ()) -> dict[str, object]:
    """Everything in a folder, to see whether it has changed."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if any(name == other or name.startswith(f"{other}/") for other in but):
            continue
        is_file = stat.S_ISREG(path.lstat().st_mode)
        found[name] = path.read_bytes() if is_file else stat.S_IFMT(path.lstat().st_mode)
    return found


def check(fault: Row, folder: Path) -> Answer:
    """Run a row in a fresh copy of the folder, and assert all that holds for every error."""
    for do in fault.breaks:
        do(folder)
    before = content_of(folder, fault.leaves)
    answer = run(fault.command.split(), folder)
    assert answer.code == fault.code, answer.errors
    assert [word for word in FOREIGN_WORDS if word in answer.errors] == []
    assert matches(answer.line, fault), f"\n{answer.line}\ninstead of\n{fault.says}"
    after = content_of(folder, fault.leaves)
    assert after.keys() == before.keys(), "nothing is written, nothing is lost"
    assert after == before
    return answer


def matches(line: str, fault: Row) -> bool:
    pattern = fault.says.replace("[", "[[]").replace("?", "[?]").replace("*", "[*]")
    pattern = pattern.replace("...", "*")
    return fnmatch.fnmatchcase(line, pattern if fault.code == 1 else f"*{pattern}*")
