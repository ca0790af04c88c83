"""Files and folders appear complete or not at all."""

import os
from pathlib import Path

import pytest

from relakit.writing import whole_file, whole_folder, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", b"old")
    write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="file"):
        write_whole(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]


def fail_halfway(folder: Path, error: type[BaseException]) -> None:
    with whole_folder(folder) as unfinished:
        (unfinished / "new").touch()
        raise error


@pytest.mark.parametrize("there_before", [False, True])
class TestFolder:
    @pytest.fixture
    def folder(self, there_before: bool, tmp_path: Path) -> Path:
        folder = tmp_path / "made" / "folder"
        if there_before:
            folder.mkdir(parents=True)
            (folder / "old").touch()
        return folder

    def test_is_there_at_the_end_and_not_before(self, folder: Path, there_before: bool) -> None:
        with whole_folder(folder) as unfinished:
            (unfinished / "new").touch()
            assert folder.exists() == there_before
        assert names(folder) == ["new"]
        assert names(folder.parent) == ["folder"]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_is_as_before_after_an_error(
        self, folder: Path, there_before: bool, error: type[BaseException]
    ) -> None:
        with pytest.raises(error):
            fail_halfway(folder, error)
        assert names(folder.parent) == (["folder"] if there_before else [])
        if there_before:
            assert names(folder) == ["old"]


def test_the_folder_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with whole_folder(tmp_path / "link") as unfinished:
        (unfinished / "new").touch()
    assert names(tmp_path) == ["folder", "link"]
    assert names(tmp_path / "folder") == ["new"]


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before")
    with whole_file(path) as file:
        file.write(b"after")
        file.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with whole_file(tmp_path / "out.txt") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(path) as file:
        file.write(b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert path.is_fifo()


@pytest.mark.parametrize("sync", [False, True])
def test_files_are_on_the_disk_before_the_folder_has_its_name(
    sync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def fsync(handle: int) -> None:
        assert not (tmp_path / "folder").exists()
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_folder(tmp_path / "folder", sync=sync) as unfinished:
        (unfinished / "inner").mkdir()
        (unfinished / "a").write_bytes(b"a")
        (unfinished / "inner" / "b").write_bytes(b"b")
    assert sorted(synced) == (["a", "b"] if sync else [])


def test_the_only_writer_removes_what_a_killed_attempt_left(tmp_path: Path) -> None:
    (tmp_path / ".folder.unfinished").mkdir()
    (tmp_path / ".folder.unfinished" / "half").touch()
    with whole_folder(tmp_path / "folder", only_writer=True) as unfinished:
        assert unfinished == tmp_path / ".folder.unfinished"
        (unfinished / "new").touch()
    assert names(tmp_path) == ["folder"]
    assert names(tmp_path / "folder") == ["new"]
