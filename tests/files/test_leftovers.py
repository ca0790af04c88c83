"""What killed writers left is swept; what live ones write is not."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from relakit.files import leftovers
from relakit.files.leftovers import PATIENCE, hold, is_unfinished, sweep, temporary_name

GONE = 4194999
"""No process has this number: it is above what the kernel gives out."""


def leftover(path: Path, *, pid: int = GONE, host: str | None = None, kind: str = "tmp") -> Path:
    own = temporary_name(path).name
    name = own.replace(f"-{os.getpid()}-", f"-{pid}-").removesuffix("tmp") + kind
    if host is not None:
        name = name.replace(f".{leftovers._host()}-", f".{host}-")
    left = path.with_name(name)
    left.write_bytes(b"half")
    return left


def age(path: Path) -> None:
    old = path.stat().st_mtime - PATIENCE - 1
    os.utime(path, (old, old))


def test_names_are_hidden_and_differ(tmp_path: Path) -> None:
    one, other = temporary_name(tmp_path / "a.txt"), temporary_name(tmp_path / "a.txt")
    assert one != other
    assert one.parent == tmp_path
    assert one.name.startswith(".a.txt.")
    assert is_unfinished(one / "inside")
    assert not is_unfinished(tmp_path / ".a.txt.tmp")


def test_of_a_process_that_is_gone(tmp_path: Path) -> None:
    left = leftover(tmp_path / "file")
    sweep(tmp_path, "file")
    assert not left.exists()


def test_only_of_the_name_that_is_written(tmp_path: Path) -> None:
    other = leftover(tmp_path / "other")
    foreign = tmp_path / ".file.tmp"
    foreign.touch()
    sweep(tmp_path, "file")
    assert other.exists()
    sweep(tmp_path)
    assert not other.exists()
    assert foreign.exists()


def test_of_a_live_process(tmp_path: Path) -> None:
    left = leftover(tmp_path / "file", pid=os.getpid())
    handle = os.open(left, os.O_RDWR)
    hold(handle)
    age(left)
    sweep(tmp_path)
    assert left.exists()
    os.close(handle)
    sweep(tmp_path)
    assert not left.exists()  # unlocked and untouched for long: another process has its number


def test_of_a_process_that_has_just_begun(tmp_path: Path) -> None:
    """It may not hold its lock yet."""
    left = leftover(tmp_path / "file", pid=os.getpid())
    sweep(tmp_path)
    assert left.exists()


def test_of_another_host(tmp_path: Path) -> None:
    left = leftover(tmp_path / "file", host="elsewhere")
    sweep(tmp_path)
    assert left.exists()
    age(left)
    sweep(tmp_path)
    assert not left.exists()


def test_without_locks_only_the_process_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "flock", lambda _: "unsupported")
    alive, elsewhere = (
        leftover(tmp_path / "a", pid=os.getpid()),
        leftover(tmp_path / "b", host="elsewhere"),
    )
    gone = leftover(tmp_path / "c")
    for path in (alive, elsewhere, gone):
        age(path)
    sweep(tmp_path)
    assert (alive.exists(), elsewhere.exists(), gone.exists()) == (True, True, False)


def test_what_was_to_be_replaced_gets_its_name_back(tmp_path: Path) -> None:
    left = leftover(tmp_path / "corpus", kind="old")
    sweep(tmp_path, "corpus")
    assert (tmp_path / "corpus").read_bytes() == b"half"
    left = leftover(tmp_path / "corpus", kind="old")
    sweep(tmp_path, "corpus")
    assert not left.exists()
    assert (tmp_path / "corpus").exists()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    sweep(tmp_path / "nowhere")


def test_a_host_with_an_odd_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a.b/c ü-" + "x" * 300)
    assert is_unfinished(temporary_name(tmp_path / ("n" * 255)))


KILLED = """
import os, signal, sys
from pathlib import Path
from relakit.files.writing import whole_folder, write_whole
with whole_folder(Path(sys.argv[1])) as unfinished:
    write_whole(unfinished / "file", b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_real_kill(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "corpus")]
    subprocess.run(command, check=False)
    [left] = tmp_path.iterdir()
    assert is_unfinished(left)
    sweep(tmp_path, "corpus")
    assert list(tmp_path.iterdir()) == []
