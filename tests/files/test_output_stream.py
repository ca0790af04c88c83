"""What is no regular file is written to directly: pipes, devices, standard output."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from entries import names

from relakit.files.writing import (
    WriteError,
    append,
    check_writable,
    flush_standard_output,
    make_folder,
    standard_output,
    write_whole,
)


class TestWhatIsNoRegularFile:
    def test_a_pipe_is_written_to(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        write_whole(path, b"text")
        assert os.read(reader, 10) == b"text"
        os.close(reader)
        assert path.is_fifo()
        assert names(tmp_path) == ["pipe"]

    @pytest.fixture
    def device(self, tmp_path: Path) -> Callable[[int], Path]:
        """Makes a device like /dev/null (3) or /dev/full (7), which it may do no harm to damage."""

        def make(minor: int) -> Path:
            path = tmp_path / "device"
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
                with path.open("rb"):
                    pass
            except OSError as error:
                pytest.skip(f"devices cannot be made here: {error.strerror}")
            return path

        return make

    @pytest.mark.parametrize("by_link", [False, True])
    def test_a_device_stays_one(
        self, by_link: bool, device: Callable[[int], Path], tmp_path: Path
    ) -> None:
        path = device(3)
        (tmp_path / "link").symlink_to(path)
        write_whole(tmp_path / "link" if by_link else path, b"text")
        assert path.is_char_device()
        assert names(tmp_path) == ["device", "link"]

    def test_a_device_that_is_full(self, device: Callable[[int], Path]) -> None:
        path = device(7)
        with pytest.raises(WriteError, match="device cannot be written: no space is left on"):
            write_whole(path, b"text")
        assert path.is_char_device()

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(WriteError, match="it is a folder; name a file"):
            write_whole(tmp_path, b"")

    def test_what_is_below_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for write in (write_whole, append):
            with pytest.raises(WriteError, match="file is a file, not a folder"):
                write(tmp_path / "file" / "below", b"")
        with pytest.raises(WriteError, match="file is a file, not a folder"):
            make_folder(tmp_path / "file")


STANDARD_OUTPUT = """
import sys
from pathlib import Path
from relakit.files.writing import whole_file
print("first")
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"second\\n")
print("third")
"""


class TestStandardOutput:
    @pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
    def test_by_its_path_loses_nothing_of_a_file(self, path: str, tmp_path: Path) -> None:
        output = tmp_path / "out"
        output.write_text("before\n")
        with output.open("a") as file:
            subprocess.run([sys.executable, "-c", STANDARD_OUTPUT, path], stdout=file, check=True)
        assert output.read_text() == "before\nfirst\nsecond\nthird\n"
        assert names(tmp_path) == ["out"]

    def test_by_its_path_into_a_pipe(self) -> None:
        command = [sys.executable, "-c", STANDARD_OUTPUT, "/dev/stdout"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"first\nsecond\nthird\n"

    def test_that_is_closed(self) -> None:
        code = STANDARD_OUTPUT.replace('print("first")', "import os; os.close(1)")
        code = code.replace('print("third")', "")
        command = [sys.executable, "-c", code, "/dev/stdout"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "/dev/stdout cannot be written: it is closed; redirect it, or" in done.stderr

    @pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1"])
    def test_that_was_closed_before_is_no_other_file(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdout", None)  # but there is a file with its number
        with pytest.raises(WriteError, match=f"^{path} cannot be written: it is closed; redirect"):
            write_whole(Path(path), b"text")
        with pytest.raises(WriteError, match=f"^{path} cannot be written: it is closed"):
            check_writable(Path(path))

    def test_does_not_need_standard_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stderr", None)
        with (tmp_path / "out").open("wb") as file:
            write_whole(Path(f"/dev/fd/{file.fileno()}"), b"text")
        assert (tmp_path / "out").read_bytes() == b"text"

    def test_that_is_closed_takes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        with (
            pytest.raises(WriteError, match=r"^standard output cannot be written: it is closed; "),
            standard_output(),
        ):
            pass
        flush_standard_output()  # nothing was to be written

    def test_takes_bytes(self, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        with standard_output() as file:
            file.write(b"text\n")
        assert capsysbinary.readouterr().out == b"text\n"

    def test_errors_have_a_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Full:
            def write(self, data: bytes) -> None:
                raise OSError(errno.ENOSPC, "no")

            def fileno(self) -> int:
                raise OSError

        monkeypatch.setattr(sys, "stdout", type("Stream", (), {"buffer": Full()}))
        with (
            pytest.raises(WriteError, match=r"^standard output cannot be written: no space is"),
            standard_output() as file,
        ):
            file.write(b"text")
