"""What cannot be written: one line with the path, the reason and what is needed."""

import errno
import os
import re
from pathlib import Path

import pytest
from entries import names
from faulty_system import failing

from relakit.files.write_errors import os_error
from relakit.files.writing import WriteError, whole_file, whole_folder, write_whole


class TestErrors:
    def test_name_what_will_be_there(self, tmp_path: Path) -> None:
        def write() -> None:
            with whole_folder(tmp_path / "report") as unfinished:
                (unfinished / "blocked").mkdir()
                write_whole(unfinished / "blocked", b"")

        with pytest.raises(WriteError) as caught:
            write()
        assert str(caught.value) == (
            f"{tmp_path / 'report' / 'blocked'} cannot be written: it is a folder; name a file"
        )

    def test_of_python_s_own_files_name_it_too(self, tmp_path: Path) -> None:
        def write() -> None:
            with whole_folder(tmp_path / "report") as unfinished:
                (unfinished / "missing" / "file").write_bytes(b"")

        with pytest.raises(WriteError, match=re.escape(str(tmp_path / "report/missing/file"))):
            write()

    def test_of_what_is_read_stay_as_they_are(self, tmp_path: Path) -> None:
        def read() -> None:
            with whole_folder(tmp_path / "report"), whole_file(tmp_path / "other"):
                (tmp_path / "input").read_bytes()

        with pytest.raises(FileNotFoundError, match="input"):
            read()
        assert names(tmp_path) == []

    def test_of_a_reader_that_has_enough_stay_as_they_are(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

        def write() -> None:
            with whole_file(path) as file:
                os.close(reader)
                file.write(b"text")

        with pytest.raises(BrokenPipeError):
            write()

    def test_say_how_much_is_needed(self, tmp_path: Path) -> None:
        fail_at = 0
        messages = []
        while True:
            fail_at += 1
            with failing(fail_at) as system:
                try:
                    write_whole(tmp_path / "file", b"x" * 2_500_000)
                except WriteError as error:
                    messages.append(str(error))
            if not system.has_failed:
                break
            assert [name for name in names(tmp_path) if name != "file"] == []
        assert len(messages) >= 5
        for message in messages:
            assert re.fullmatch(
                rf"{tmp_path}/file cannot be written: no space is left on the disk: 2\.4 MiB "
                r"needed, [\d,.]+ [KMGT]iB free; make room or choose another place",
                message,
            )

    def test_small_files_take_whole_blocks(self, tmp_path: Path) -> None:
        def write() -> None:
            with whole_folder(tmp_path / "folder") as unfinished:
                for number in range(5):
                    write_whole(unfinished / f"{number}", b"x")
                raise WriteError(unfinished / "5", os_error(errno.ENOSPC), needed=1)

        write_whole(tmp_path / "one", b"x")
        block = 512 * (tmp_path / "one").stat().st_blocks
        with pytest.raises(WriteError, match=r"folder/5 cannot be written") as caught:
            write()
        assert caught.value.needed == 5 * max(1, block) + 1

    def test_say_how_much_was_known_to_be_needed(self, tmp_path: Path) -> None:
        def write() -> None:
            with whole_folder(tmp_path / "folder") as unfinished:
                write_whole(unfinished / "a", b"x" * 1_000_000)
                with whole_file(unfinished / "b") as file:
                    file.write(b"x" * 2_000_000)

        with failing(10), pytest.raises(WriteError) as caught:
            write()
        assert f"{tmp_path}/folder/b cannot be written" in str(caught.value)
        assert "more than 2.9 MiB needed" in str(caught.value)
        assert names(tmp_path) == []

    @pytest.mark.parametrize(
        ("number", "reason"),
        [
            (errno.EDQUOT, "the disk quota is used up: 3 bytes needed; make room"),
            (errno.EROFS, "its file system is read-only; choose another place"),
            (errno.EACCES, "permission denied; choose another place, or have its owner allow it"),
            (errno.EIO, "the device reports an error; check the disk"),
            (errno.EFBIG, "it would be larger than is allowed here; see ulimit -f"),
            (errno.EMFILE, "too many open files"),
        ],
    )
    def test_say_why(self, tmp_path: Path, number: int, reason: str) -> None:
        with failing(2, number), pytest.raises(WriteError) as caught:
            write_whole(tmp_path / "file", b"new")
        assert f"{tmp_path / 'file'} cannot be written: {reason}" in str(caught.value)
        assert caught.value.errno == number
        assert "Errno" not in str(caught.value)

    def test_a_file_that_may_not_be_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Renaming would replace it all the same; root may write to everything."""
        path = tmp_path / "file"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(WriteError, match="permission denied"):
            write_whole(path, b"new")
        assert path.read_bytes() == b"old"
