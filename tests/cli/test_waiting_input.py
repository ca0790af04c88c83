"""Ctrl-C while input is waited for, at the moment that Python alone would miss."""

import io
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest

from relakit.cli.waiting_input import interruptible

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")


class Pipe(NamedTuple):
    read_end: BinaryIO
    write_end: BinaryIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    with open(reading, "rb") as read_end, open(writing, "wb", buffering=0) as write_end:
        yield Pipe(read_end, write_end)


def test_an_interrupt_that_leaves_the_read_undisturbed(pipe: Pipe) -> None:
    """A signal that another thread takes is noted, but ends no system call of the main thread.

    Just so is one that comes right before the call; but that cannot be timed.
    """
    ended = threading.Event()
    was_late = []

    def press() -> None:
        time.sleep(0.1)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        if not ended.wait(20):
            was_late.append(True)
            pipe.write_end.write(b"so that the test ends\n")

    thread = threading.Thread(target=press)
    with interruptible(pipe.read_end) as stream:

        def start_and_read() -> None:  # on a slow machine it is pressed before the read
            thread.start()
            stream.readline()

        with pytest.raises(KeyboardInterrupt):
            start_and_read()
        ended.set()
    thread.join()
    assert not was_late
    assert signal.set_wakeup_fd(-1) == -1, "as it was before"


def test_a_signal_that_ends_nothing(pipe: Pipe) -> None:
    """Its handler returns; the next line is still waited for, and read."""
    noted = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: noted.append(number))

    def disturb_and_write() -> None:
        for count in range(1, 4):
            os.kill(os.getpid(), signal.SIGUSR1)
            deadline = time.monotonic() + 20
            # Two that wait at the same time would be noted as one.
            while len(noted) < count and time.monotonic() < deadline:
                time.sleep(0.01)
        pipe.write_end.write(b"one\ntwo")
        pipe.write_end.write(b" and more\n")
        pipe.write_end.close()

    thread = threading.Thread(target=disturb_and_write)
    try:
        with interruptible(pipe.read_end) as stream:
            thread.start()
            assert list(stream) == [b"one\n", b"two and more\n"]
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert noted == [signal.SIGUSR1] * 3


def test_what_never_waits_is_read_as_it_is(tmp_path: Path) -> None:
    memory = io.BytesIO(b"one\n")
    with interruptible(memory) as stream:
        assert stream is memory
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\n")
    with path.open("rb") as file, interruptible(file) as stream:
        assert stream is file


def test_in_another_thread_it_is_read_as_it_is(pipe: Pipe) -> None:
    """Which has no say over signals."""
    found = []

    def read() -> None:
        with interruptible(pipe.read_end) as stream:
            found.append(stream is pipe.read_end)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert found == [True]
