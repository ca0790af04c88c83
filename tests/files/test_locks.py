"""Locks of folders, between handles as between processes."""

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from relakit.files import locks
from relakit.files.locks import BusyError, Owner, is_locked, lock_path, locked, process_exists
from relakit.files.writing import WriteError

ME = f"process {os.getpid()} on {socket.gethostname()}"
GONE = 4194999
"""No process has this number: it is above what the kernel gives out."""


@pytest.mark.parametrize("beside", [False, True])
def test_a_folder_is_locked_once(tmp_path: Path, beside: bool) -> None:
    folder = tmp_path / "run"
    with locked(folder, beside=beside):
        with pytest.raises(BusyError) as caught:
            locked(folder, beside=beside).__enter__()
        assert str(caught.value) == (
            f"another process is at work in {folder}: {ME}; wait for it or stop it"
        )
        assert folder.exists() != beside
    with locked(folder, beside=beside):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_others_have_put_there_stays(tmp_path: Path) -> None:
    with locked(tmp_path / "run"):
        (tmp_path / "run" / "file").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["file"]


def test_looking_takes_no_lock_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not is_locked(folder)
    assert not folder.exists()
    with locked(folder):
        assert is_locked(folder)
        assert not is_locked(folder, beside=True)
    assert not is_locked(folder)
    with locked(folder):
        pass


def test_who_comes_next_keeps_its_lock(tmp_path: Path) -> None:
    """The folder was moved away, with its lock, before the lock was given back."""
    folder = tmp_path / "run"
    with locked(folder):
        folder.rename(tmp_path / "removed")
        following = locked(folder)
        following.__enter__()
    assert is_locked(folder)
    following.__exit__(None, None, None)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["", "made/for/it"])
def test_waiting_for_a_lock(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    order: list[str] = []

    def second() -> None:
        with locked(folder, wait=True):
            order.append("second, locked" if is_locked(folder) else "second")

    waiting = threading.Thread(target=second)
    with locked(folder):
        waiting.start()
        waiting.join(0.2)
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second, locked"]


HOLD = """
import sys
from pathlib import Path
from relakit.files.locks import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_gives_its_lock_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(BusyError, match=f"process {process.pid} on "):
            locked(tmp_path).__enter__()
        process.kill()
        process.wait()
    assert (tmp_path / ".lock").exists()
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        assert is_locked(tmp_path)


def test_another_host_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locked(tmp_path):
        (tmp_path / ".lock").write_text('{"pid": 7, "host": "elsewhere"}')
        with pytest.raises(BusyError) as caught:
            locked(tmp_path).__enter__()
    assert "process 7 on elsewhere; wait for it or stop it (if elsewhere is gone, remove " in str(
        caught.value
    )
    assert str(tmp_path / ".lock") in str(caught.value)


def test_a_process_that_has_not_said_who_it_is(tmp_path: Path) -> None:
    with locked(tmp_path):
        (tmp_path / ".lock").write_text("")
        assert is_locked(tmp_path)
        with pytest.raises(BusyError, match=r"is at work in .*; wait for it$"):
            locked(tmp_path).__enter__()


def test_on_a_full_disk_the_kernel_keeps_the_lock(tmp_path: Path, full_disk: None) -> None:
    with locked(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(BusyError, match=r"is at work in .*; wait for it$"):
            locked(tmp_path).__enter__()
    assert not is_locked(tmp_path)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a lock can be made, but nothing can be written into it."""

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)


class TestWithoutLocks:
    """A file system that has none: the file says who is there."""

    @pytest.fixture(autouse=True)
    def _no_locks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(locks, "flock", lambda *_, **__: "unsupported")
        monkeypatch.setattr(locks, "SECONDS_BETWEEN_LOOKS", 0.01)

    def test_a_warning_says_so(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with locked(tmp_path):
            pass
        assert f"{tmp_path}: this file system has no locks" in caplog.text
        assert list(tmp_path.iterdir()) == []

    def test_a_live_process_is_respected(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as alive:
            owner = {"pid": alive.pid, "host": socket.gethostname()}
            (tmp_path / ".lock").write_text(json.dumps(owner))
            assert is_locked(tmp_path)
            with pytest.raises(BusyError, match=f"process {alive.pid} on"):
                locked(tmp_path).__enter__()

    def test_one_that_is_gone_is_not(self, tmp_path: Path) -> None:
        (tmp_path / ".lock").write_text(json.dumps({"pid": GONE, "host": socket.gethostname()}))
        assert not is_locked(tmp_path)
        with locked(tmp_path):
            assert is_locked(tmp_path)

    def test_on_a_full_disk_there_is_none(self, tmp_path: Path, full_disk: None) -> None:
        """Nobody else would know of it."""
        with pytest.raises(WriteError, match="cannot be written: no space is left"):
            locked(tmp_path).__enter__()

    def test_another_host_is_respected(self, tmp_path: Path) -> None:
        (tmp_path / ".lock").write_text('{"pid": 1, "host": "elsewhere"}')
        with pytest.raises(BusyError, match=r"if elsewhere is gone, remove .*\.lock"):
            locked(tmp_path).__enter__()

    def test_waiting(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = lock_path(tmp_path)
        path.write_text('{"pid": 1, "host": "elsewhere"}')
        monkeypatch.setattr(locks.time, "sleep", lambda _: path.unlink())
        with locked(tmp_path, wait=True):
            assert Owner.this_process() == Owner(**json.loads(path.read_text()))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"run cannot be written: .*file is a file, not a folder"):
        locked(tmp_path / "file" / "run").__enter__()


def test_which_processes_exist() -> None:
    assert process_exists(os.getpid())
    assert process_exists(1)
    assert not process_exists(GONE)
    assert not process_exists(0)
    assert not process_exists(-1)
