"""Locks of folders, between handles as between processes."""

import threading
from pathlib import Path

import pytest

from relakit.reproduce.locks import BusyError, is_locked, locked


def test_a_folder_is_locked_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder):
        with pytest.raises(BusyError, match="another process is at work") as caught:
            locked(folder).__enter__()
        assert str(folder) in str(caught.value)
    with locked(folder):
        pass


def test_looking_takes_no_lock_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not is_locked(folder)
    assert not folder.exists()
    with locked(folder):
        assert is_locked(folder)
    assert not is_locked(folder)
    with locked(folder):
        pass


def test_waiting_for_a_lock(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with locked(tmp_path, wait=True):
            order.append("second")

    waiting = threading.Thread(target=second)
    with locked(tmp_path):
        waiting.start()
        waiting.join(0.2)
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second"]
