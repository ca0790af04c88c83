"""A freshly started Python process with a pipe to it; it ends when we do."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from signal import SIGKILL, Signals
from threading import Thread
from typing import IO, Final

from relakit.python_process import module_command

ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment variables for when several processes run side by side."""
NOTHING_MORE: Final = b"nothing more"
MOST_WORDS: Final = 300
"""The most characters of a log line that an error quotes."""


class ChildProcess:
    """Our side: starts a module with a file descriptor as its argument, talks to it and ends it.

    The process is not forked, so our threads and locks do not affect it.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str] | None = None,
        *,
        log: IO[bytes] | None = None,
    ) -> None:
        """Start the process.

        Args:
            module: the name of the module to run.
            environment: variables to add to ours.
            log: receives its standard error; None: it goes to ours.
        """
        self._log = log
        ours, theirs = Pipe()
        self.connection: Final[Connection[bytes, bytes]] = ours
        with theirs:
            self.process: Final = subprocess.Popen(
                module_command(module, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # ours may be the output
                stderr=log,
                env={**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # Ctrl-C is for us
            )

    def send(self, content: bytes) -> None:
        """Send it a message. If the process is gone, the next read from it notices."""
        with suppress(OSError):
            self.connection.send_bytes(content)

    def end(self, seconds: float) -> None:
        """Tell it that nothing more will come, and give it time to exit on its own."""
        self.send(NOTHING_MORE)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def stop(self) -> str:
        """Kill it and everything it started; returns how it ended if it ended on its own."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)
        code = self.process.poll()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, SIGKILL)  # its own session: nothing else is in it
        self.process.wait()
        if code is None:
            return "it no longer answered"
        return f"exit code {code}" if code >= 0 else Signals(-code).name

    def last_words(self) -> str:
        """The last line of its log, after a colon; empty if there is none."""
        if self._log is None:
            return ""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1].strip()[:MOST_WORDS]}" if lines else ""


class Master:
    """The child's side: talks to the parent, and exits at once when the parent is gone."""

    def __init__(self) -> None:
        self._connection: Connection[bytes, bytes] = Connection(int(sys.argv[1]))
        self._inbox: SimpleQueue[bytes] = SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def receive(self) -> bytes:
        return self._inbox.get()

    def send(self, content: bytes) -> None:
        self._connection.send_bytes(content)

    def _listen(self) -> None:
        """Receive messages even in the middle of work, to notice when the parent is gone."""
        while True:
            try:
                self._inbox.put(self._connection.recv_bytes())
            except (EOFError, OSError):
                if os.getpgid(0) == os.getpid():
                    os.killpg(0, SIGKILL)  # with everything it started
                os._exit(0)
