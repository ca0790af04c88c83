"""Processes that take part in a benchmark: they exchange lines of JSON and idle in between."""

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from relakit.bench.rounds import ContenderError

PATIENCE: Final = 3600.0
"""How many seconds a worker may take to answer."""
SECONDS_TO_QUIT: Final = 10.0
_PYTHON_SETTINGS: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_THREAD_SETTINGS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A script that answers requests, in its own process and with its own Python."""

    def __init__(
        self,
        python: Path,
        script: Path,
        *,
        threads: int,
        log: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start the script. Raises ContenderError if that is not possible.

        ``log`` receives what the script prints; ``settings`` are added to its environment.
        """
        self._log = log
        # Not resolved: a virtual environment is recognised by where the link to its Python is.
        command = [os.path.abspath(python), os.path.abspath(script)]
        with log.open("wb") as errors:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**worker_environment(os.environ, threads), **settings},
                    # Ctrl-C is for the benchmark, which ends its workers itself.
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


def worker_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """A worker's environment: its number of threads, without this Python's own settings."""
    kept = {name: value for name, value in environment.items() if name not in _PYTHON_SETTINGS}
    return {**kept, **{name: str(threads) for name in _THREAD_SETTINGS}}


def number_of(answer: Mapping[str, Any], name: str) -> float:
    """A number in a worker's answer."""
    value = answer.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ContenderError(f"its answer has no number {name!r}: {str(dict(answer))[:80]}")
    return float(value)
