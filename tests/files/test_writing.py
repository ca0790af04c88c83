"""Files and folders appear complete or not at all, wherever a path leads."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from entries import names
from faulty_system import failing

from relakit.files.leftovers import temporary_name
from relakit.files.writing import (
    WriteError,
    append,
    carry_over,
    check_writable,
    make_folder,
    open_to_append,
    remove_folder,
    whole_file,
    whole_folder,
    write_whole,
)


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)
    yield lambda mask: os.umask(mask) and None
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestFile:
    def test_is_replaced(self, tmp_path: Path) -> None:
        write_whole(tmp_path / "file", b"old")
        write_whole(tmp_path / "file", b"new")
        assert (tmp_path / "file").read_bytes() == b"new"
        assert names(tmp_path) == ["file"]

    def test_appears_when_it_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "out.txt"
        path.write_text("before")
        with whole_file(path) as file:
            file.write(b"after")
            file.flush()
            assert path.read_text() == "before"
        assert path.read_text() == "after"
        assert names(tmp_path) == ["out.txt"]

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_that_fails_leaves_nothing(self, tmp_path: Path, error: type[BaseException]) -> None:
        def write_half() -> None:
            with whole_file(tmp_path / "out.txt") as file:
                file.write(b"half")
                raise error

        with pytest.raises(error):
            write_half()
        assert names(tmp_path) == []

    def test_missing_folders_are_made(self, tmp_path: Path) -> None:
        write_whole(tmp_path / "a" / "b" / "file", b"text")
        assert (tmp_path / "a" / "b" / "file").read_bytes() == b"text"

    def test_large_and_small_pieces_stay_in_order(self, tmp_path: Path) -> None:
        pieces = [bytes([n]) * (n * 40_000 + 1) for n in range(20)]
        with whole_file(tmp_path / "file") as file:
            for piece in pieces:
                file.write(piece)
        assert (tmp_path / "file").read_bytes() == b"".join(pieces)

    def test_the_umask_is_honoured(self, tmp_path: Path, umask: Callable[[int], None]) -> None:
        for mask, expected in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
            umask(mask)
            write_whole(tmp_path / f"{mask}", b"")
            assert mode(tmp_path / f"{mask}") == expected

    def test_a_replaced_file_keeps_its_mode(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.touch()
        path.chmod(0o640)
        write_whole(path, b"new")
        assert mode(path) == 0o640

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_a_replaced_file_keeps_its_owner(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.touch()
        os.chown(path, 1234, 2345)
        write_whole(path, b"new")
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)

    def test_a_long_name(self, tmp_path: Path) -> None:
        path = tmp_path / ("ä" * 127)
        write_whole(path, b"text")
        assert path.read_bytes() == b"text"
        with pytest.raises(WriteError, match="its name is too long; choose a shorter one"):
            write_whole(tmp_path / ("x" * 256), b"")

    def test_the_file_and_its_name_are_brought_to_the_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[str] = []

        def fsync(handle: int) -> None:
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            synced.append("folder" if path == tmp_path else path.suffix)
            assert (tmp_path / "file").exists() == (path == tmp_path)

        monkeypatch.setattr(os, "fsync", fsync)
        write_whole(tmp_path / "file", b"text")
        assert synced == [".tmp", "folder"]


class TestLinks:
    def test_the_file_behind_a_link_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        target = tmp_path / "real" / "file"
        target.write_bytes(b"old")
        (tmp_path / "first").symlink_to("second")
        (tmp_path / "second").symlink_to(target)
        write_whole(tmp_path / "first", b"new")
        assert target.read_bytes() == b"new"
        assert (tmp_path / "first").is_symlink()
        assert (tmp_path / "second").is_symlink()
        assert names(tmp_path / "real") == ["file"]

    def test_a_link_to_nothing_gets_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "later")
        write_whole(tmp_path / "link", b"text")
        assert (tmp_path / "later").read_bytes() == b"text"
        assert (tmp_path / "link").is_symlink()

    def test_links_in_a_circle(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(WriteError, match="a cannot be written: its symbolic links lead in a"):
            write_whole(tmp_path / "a", b"")
        assert names(tmp_path) == ["a", "b"]

    def test_the_folder_behind_a_link_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to("folder")
        with whole_folder(tmp_path / "link") as unfinished:
            (unfinished / "new").touch()
        assert names(tmp_path) == ["folder", "link"]
        assert names(tmp_path / "folder") == ["new"]


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

    def test_fails_at_any_step_and_is_as_before(self, folder: Path, there_before: bool) -> None:
        """Until there are no more steps that could fail."""
        fail_at = 0
        while True:
            fail_at += 1
            with failing(fail_at) as system, suppress(WriteError):
                with whole_folder(folder) as unfinished:
                    write_whole(unfinished / "new", b"text")
                break
            assert system.has_failed
            if there_before:
                assert names(folder.parent) == ["folder"]
                assert len(names(folder)) == 1
            elif folder.parent.exists():
                assert names(folder.parent) in ([], ["folder"])  # the last step follows its name
        assert fail_at > 8
        assert names(folder) == ["new"]


def test_an_empty_folder_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for content in ([], ["old"]):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o750)
        for name in content:
            (folder / name).touch()
        with whole_folder(folder) as unfinished:
            (unfinished / "new").touch()
        assert (names(folder), mode(folder)) == (["new"], 0o750)


def test_a_folder_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def fsync(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        assert (tmp_path / "folder").exists() == (path == tmp_path)
        synced.append("temporary" if path.suffix == ".tmp" else path.name)

    monkeypatch.setattr(os, "fsync", fsync)
    with whole_folder(tmp_path / "folder") as unfinished:
        make_folder(unfinished / "inner")
        write_whole(unfinished / "a", b"a")
        write_whole(unfinished / "inner" / "b", b"b")
    assert sorted(synced) == sorted(["a", "b", "inner", "temporary", tmp_path.name])


class TestAppending:
    def test_adds_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "log"
        append(path, b"one\n")
        append(path, b"two\n")
        assert path.read_bytes() == b"one\ntwo\n"

    def test_adds_nothing_if_not_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "log"
        append(path, b"one\n")
        write = os.write
        calls: list[int] = []

        def half(handle: int, data: bytes) -> int:
            calls.append(handle)
            if len(calls) > 1:
                raise OSError(errno.ENOSPC, "full")
            return write(handle, data[:2])

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(WriteError, match=r"log cannot be written: no space .* 4 bytes needed"):
            append(path, b"two\n")
        assert path.read_bytes() == b"one\n"

    def test_others_may_append(self, tmp_path: Path) -> None:
        path = tmp_path / "runs" / "log"
        append(path, b"one\n")
        with open_to_append(path) as file:
            subprocess.run([sys.executable, "-c", "print('two')"], stdout=file, check=True)
        assert path.read_bytes() == b"one\ntwo\n"


def test_a_folder_is_removed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # killed here
    remove_folder(folder)
    assert not folder.exists()
    monkeypatch.undo()
    folder.mkdir()
    remove_folder(folder)
    assert not folder.exists()


class TestCheckingBeforehand:
    def test_leaves_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"old")
        (tmp_path / "folder").mkdir()
        for name in ("file", "new", "made/new"):
            check_writable(tmp_path / name)
        check_writable(tmp_path / "folder", is_folder=True)
        assert names(tmp_path) == ["file", "folder", "made"]
        assert names(tmp_path / "made") == []
        assert (tmp_path / "file").read_bytes() == b"old"

    def test_finds_what_will_not_do(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(WriteError, match="file is a file, not a folder"):
            check_writable(tmp_path / "file" / "below")
        with pytest.raises(WriteError, match="it is a folder; name a file"):
            check_writable(tmp_path)
        with failing(2, errno.EROFS), pytest.raises(WriteError, match="read-only"):
            check_writable(tmp_path / "new")
        assert names(tmp_path) == ["file"]

    def test_standard_output_will_do(self) -> None:
        check_writable(Path("/dev/stdout"))


def killed(path: Path) -> Path:
    """What a process that is no more left beside a path."""
    name = temporary_name(path).name.replace(f"-{os.getpid()}-", "-4194999-")
    return path.with_name(name)


def test_the_next_writer_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    left, other = killed(path), killed(tmp_path / "other")
    left.write_bytes(b"half")
    other.write_bytes(b"half")
    write_whole(path, b"whole")
    assert names(tmp_path) == sorted(["file", other.name])
    folder = tmp_path / "folder"
    left = killed(folder)
    left.mkdir()
    (left / "half").touch()
    with whole_folder(folder):
        pass
    assert not left.exists()


def test_a_folder_that_was_swept_need_not_be_swept_again(tmp_path: Path) -> None:
    left = killed(tmp_path / "file")
    left.write_bytes(b"half")
    with whole_file(tmp_path / "file", sweeps=False) as file:
        file.write(b"whole")
    assert names(tmp_path) == sorted(["file", left.name])


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_is_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    """By a hard link, or where the file system has none, by a copy."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    before = tmp_path / "folder" / "file"
    write_whole(before, b"as it is")
    with whole_folder(tmp_path / "new") as unfinished:
        carry_over(before, unfinished)
    after = tmp_path / "new" / "file"
    assert after.read_bytes() == before.read_bytes() == b"as it is"
    assert after.samefile(before) == has_links


def test_a_file_that_cannot_be_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(shutil, "copyfile", refuse)
    write_whole(tmp_path / "folder" / "file", b"as it is")

    def replace() -> None:
        with whole_folder(tmp_path / "new") as unfinished:
            carry_over(tmp_path / "folder" / "file", unfinished)

    with pytest.raises(WriteError, match="new/file cannot be written: no space is left"):
        replace()
    assert names(tmp_path) == ["folder"]


def test_a_small_disk(tmp_path: Path) -> None:
    """A real one, of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"a disk for the test cannot be mounted: {mounted.stderr.strip()}")
    try:
        write_whole(disk / "file", b"old")
        with pytest.raises(WriteError, match=r"2\.9 MiB needed, 1,0\d\d KiB free; make room"):
            write_whole(disk / "file", bytes(3_000_000))
        assert (disk / "file").read_bytes() == b"old"

        def fill() -> None:
            with whole_folder(disk / "folder") as unfinished:
                for number in range(9):
                    write_whole(unfinished / f"{number}", bytes(300_000))

        with pytest.raises(WriteError, match=r"folder/3 cannot .* more than 1\.2 MiB needed, 1,0"):
            fill()
        assert names(disk) == ["file"]
        append(disk / "log", bytes(700_000))
        with pytest.raises(WriteError, match="log cannot be written: no space is left"):
            append(disk / "log", bytes(700_000))
        assert (disk / "log").stat().st_size == 700_000
    finally:
        subprocess.run(["umount", str(disk)], check=True)
