"""Other toolkits, each in a process of its own: what `benchmarks/peers/README.md` describes."""

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from relakit.bench.turns import ContenderError

OWN_BATCHES: Final = "-own-batches"
"""Ends the name of a peer that trains on batches as it makes them itself, not on ours."""
TRAINING_PEERS: Final = ("joeynmt", f"joeynmt{OWN_BATCHES}", "marian")
DECODING_PEERS: Final = ("joeynmt", "marian", "ctranslate2")
INSTALL_HINT: Final = "make build/peers/.installed, in a copy of the sources, installs them"
PATIENCE: Final = 3600.0
"""Seconds that a peer has for an answer."""
SECONDS_TO_QUIT: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class PeerPlace:
    """Where the peers live."""

    python: Path = Path("build/peers/bin/python")
    """The Python of their environment."""
    scripts: Path = Path("benchmarks/peers")
    """Holds a script NAME_worker.py for each of them."""

    def why_missing(self, name: str) -> str | None:
        """The reason why a peer cannot be started, if there is one."""
        for path in (self.python, self.script(name)):
            if not path.is_file():
                return f"not installed: there is no {path}; {INSTALL_HINT}"
        return None

    def script(self, name: str) -> Path:
        return self.scripts / f"{name}_worker.py"


class Peer:
    """A peer's process. Requests and answers are lines of JSON; between them it does nothing."""

    def __init__(self, name: str, place: PeerPlace, *, threads: int, log: Path) -> None:
        """Start it; ``log`` is for what it prints. Raises ContenderError if that is impossible."""
        missing = place.why_missing(name)
        if missing is not None:
            raise ContenderError(missing)
        self.name = name
        self._log = log
        # The path is not resolved: a virtual environment is known by where its Python is a link.
        command = [os.path.abspath(place.python), os.path.abspath(place.script(name))]
        with log.open("wb") as errors:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=worker_environment(os.environ, threads),
                    # Ctrl-C is for the benchmark, which ends its peers itself.
                    start_new_session=True,
                )
            except OSError as error:
                raise ContenderError(f"cannot start {command[0]}: {error}") from None

    def ask(self, do: str, *, patience: float = PATIENCE, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for the answer; an error becomes a ContenderError."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            stdin.flush()
            ready, _, _ = select.select([stdout], [], [], patience)
            line = stdout.readline() if ready else None
        except OSError:
            line = b""
        if line is None:
            self._process.kill()
            raise ContenderError(f"no answer to {do} within {patience:g} seconds")
        if not line:
            raise ContenderError(f"ended at {do} with code {self._ended()}{self._last_words()}")
        try:
            answer = json.loads(line)
        except ValueError:
            raise ContenderError(f"answered {do} with no JSON: {line[:80]!r}") from None
        if not isinstance(answer, dict):
            raise ContenderError(f"answered {do} with no JSON object: {line[:80]!r}")
        if "error" in answer:
            raise ContenderError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            try:
                self._process.communicate(b'{"do": "quit"}\n', timeout=SECONDS_TO_QUIT)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()

    def _ended(self) -> int:
        try:
            return self._process.wait(timeout=SECONDS_TO_QUIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1].strip()[:300]}" if lines else ""


class Peers:
    """All peers of a run; ended together."""

    def __init__(self, place: PeerPlace, *, threads: int, folder: Path) -> None:
        """``folder``: for what they print."""
        self._place = place
        self._threads = threads
        self._folder = folder
        self._started: list[Peer] = []

    def start(self, name: str) -> Peer:
        """Another process of a peer."""
        log = self._folder / f"{name}-{len(self._started)}.log"
        peer = Peer(name, self._place, threads=self._threads, log=log)
        self._started.append(peer)
        return peer

    def __enter__(self) -> "Peers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for peer in self._started:
            peer.close()


def worker_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """A peer's environment: its number of threads, and nothing of this Python's own settings."""
    kept = {name: value for name, value in environment.items() if name not in _PYTHON_SETTINGS}
    return {**kept, **{name: str(threads) for name in _THREAD_SETTINGS}}


_PYTHON_SETTINGS: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_THREAD_SETTINGS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def check_peers(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise ValueError for a peer that there is not."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown peer {name!r}; choose from {', '.join(known)}, or none")


def number_of(answer: Mapping[str, Any], name: str) -> float:
    """A number in a peer's answer."""
    value = answer.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ContenderError(f"its answer has no number {name!r}: {str(dict(answer))[:80]}")
    return float(value)
