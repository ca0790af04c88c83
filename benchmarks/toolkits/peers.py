"""Other toolkits, each in its own process, as `benchmarks/peers/README.md` describes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from relakit.bench.rounds import ContenderError
from workers import Worker

OWN_BATCHES: Final = "-own-batches"
"""Suffix for a peer that trains on the kind of batches it makes itself, not on ours."""
TRAINING_PEERS: Final = ("joeynmt", f"joeynmt{OWN_BATCHES}", "marian")
WITH_MKL: Final = "-mkl"
"""Suffix for a peer that computes with Intel's MKL, even on processors of other makers, where it
would choose something else by default."""
DECODING_PEERS: Final = ("joeynmt", "marian", "ctranslate2", f"ctranslate2{WITH_MKL}")
_MKL_SETTINGS: Final = {"CT2_USE_MKL": "1"}
INSTALL_HINT: Final = "make build/peers/.installed installs the peers"
_CHECKOUT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class PeerPlace:
    """Where the peers are installed."""

    python: Path = _CHECKOUT / "build/peers/bin/python"
    """The Python of their environment."""
    scripts: Path = _CHECKOUT / "benchmarks/peers"
    """Folder with a script NAME_worker.py for each peer."""

    def why_missing(self, name: str) -> str | None:
        """The reason why a peer cannot be started, if any."""
        for path in (self.python, self.script(name)):
            if not path.is_file():
                return f"not installed: there is no {path}; {INSTALL_HINT}"
        return None

    def script(self, name: str) -> Path:
        return self.scripts / f"{name.removesuffix(WITH_MKL)}_worker.py"


class Peers:
    """All peers of a run, which end together."""

    def __init__(self, place: PeerPlace, *, threads: int, folder: Path) -> None:
        """``folder`` is for their logs."""
        self._place = place
        self._threads = threads
        self._folder = folder
        self._started: list[Worker] = []

    def start(self, name: str) -> Worker:
        """Start another process of a peer; ContenderError if the peer is not installed."""
        missing = self._place.why_missing(name)
        if missing is not None:
            raise ContenderError(missing)
        log = self._folder / f"{name}-{len(self._started)}.log"
        place = self._place
        worker = Worker(
            place.python,
            place.script(name),
            threads=self._threads,
            log=log,
            settings=_MKL_SETTINGS if name.endswith(WITH_MKL) else {},
        )
        self._started.append(worker)
        return worker

    def __enter__(self) -> "Peers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for worker in self._started:
            worker.close()


def check_peers(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise ValueError for an unknown peer."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown peer {name!r}; choose from {', '.join(known)}, or none")
