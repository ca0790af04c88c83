"""Does shards on the machines of a Ray cluster (the extra ``relakit[ray]``).

A separate process, the driver (`ray_driver`), hands shards to Ray Data. That no result is lost or
counted twice does not depend on Ray: results carry the numbers of their shards, and the caller
keeps a ledger of them. If nothing comes back for a long time, as may happen after actors have died,
the driver is stopped together with its actors, and a new one gets the missing shards. Within one
process, Ray cannot safely be started again while an older execution hangs.
"""

import json
import os
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from tempfile import TemporaryFile
from typing import Final

from relakit.shards.cutting import Shard
from relakit.shards.engines import GivenUpError
from relakit.shards.engines.child import ChildProcess
from relakit.shards.engines.messages import Done, Failed, Message, parse
from relakit.shards.work import Advance, ShardResult, WorkDescription

DRIVER: Final = "relakit.shards.engines.ray_driver"
PATIENCE: Final = 1800.0
"""Seconds without a result after which a cluster is assumed to hang, by default."""
ATTEMPTS: Final = 3
"""How many drivers are started if nothing comes back."""
LONGEST_PATIENCE: Final = 1_000_000.0
"""The longest time-out, in seconds; the system's own waits end at twice as many."""
PARTING: Final = 30.0
"""Seconds a driver has to leave the cluster, or to shut down its own, when all is done."""
WAVE_BYTES: Final = 1 << 28
"""Amount of text handed over at once: the driver and Ray keep it in memory."""


class RayCluster:
    """Does shards on a Ray cluster: the one that ``RAY_ADDRESS`` names, or one on this machine."""

    def __init__(self, workers: int | None = None, *, patience: float = PATIENCE) -> None:
        """``workers``: actors with one processor each; None: one for each processor of the cluster.

        Raises:
            ValueError: Ray is not installed, or a number is impossible.
        """
        if find_spec("ray") is None or find_spec("pyarrow") is None:
            raise ValueError(
                "--engine ray needs Ray Data; install it with pip install 'relakit[ray]'"
            )
        if workers is not None and workers < 1:
            raise ValueError(f"--workers must be at least 1, got {workers:,}")
        if not 0 < patience <= LONGEST_PATIENCE:
            raise ValueError(
                f"--timeout must be above 0 and at most {LONGEST_PATIENCE:,.0f}, got {patience:g}"
            )
        self._workers = workers
        self._patience = patience

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        """See `Engine.run`."""
        for wave in _waves(shards):
            missing = {shard.index: shard for shard in wave}
            attempt = 0
            while missing:
                attempt += 1
                try:
                    for index, message in self._once(work, list(missing.values())):
                        shard = missing.pop(index, None)
                        if shard is None:
                            continue  # done twice, by an actor that was presumed dead
                        if isinstance(message, Failed):
                            raise message.error(shard.in_words(unit))
                        assert isinstance(message, Done)
                        advance(len(shard.pairs))
                        yield index, message.result
                except _Hangs as problem:
                    if attempt >= ATTEMPTS:
                        first = next(iter(missing.values())).in_words(unit)
                        raise GivenUpError(
                            f"{first}: {problem}, {ATTEMPTS} times; see --timeout"
                        ) from None

    def _once(
        self, work: WorkDescription, shards: Collection[Shard]
    ) -> Generator[tuple[int, Message], None, None]:
        """Have a driver do the shards, and yield what comes back.

        Raises:
            _Hangs: nothing came back for too long, the driver died, or the cluster failed.
        """
        with ExitStack() as stack:
            # Ray writes a lot to standard error that nobody asked for.
            is_shown = bool(os.environ.get("RELAKIT_DEBUG"))
            log = None if is_shown else stack.enter_context(TemporaryFile())
            driver = ChildProcess(DRIVER, log=log)
            stack.callback(driver.stop)
            driver.send(work.to_json().encode())
            driver.send(json.dumps([self._workers, len(shards)]).encode())
            for shard in shards:
                driver.send(shard.to_json())
            for _ in shards:
                index, message = self._next(driver)
                if index is None:
                    assert isinstance(message, Failed)
                    raise _Hangs(f"the Ray cluster failed: {message.text}")
                yield index, message
            driver.end(PARTING)

    def _next(self, driver: ChildProcess) -> tuple[int | None, Message]:
        if not self._has_answered(driver):
            raise _Hangs(f"the Ray cluster gave nothing back for {self._patience:g} s")
        try:
            number, _, content = driver.connection.recv_bytes().partition(b"\n")
        except (EOFError, OSError):
            end, words = driver.stop(), driver.last_words()
            raise _Hangs(f"the driver of the Ray cluster died by {end}{words}") from None
        return (int(number) if number else None), parse(content)

    def _has_answered(self, driver: ChildProcess) -> bool:
        """Wait for something to come back, at most as long as the patience lasts."""
        return driver.connection.poll(self._patience)


class _Hangs(Exception):
    """Nothing comes back from the cluster."""


def _waves(shards: Iterator[Shard]) -> Iterator[list[Shard]]:
    """Groups of shards that are handed over together."""
    wave: list[Shard] = []
    size = 0
    for shard in shards:
        wave.append(shard)
        size += sum(len(pair.source) + len(pair.target) for pair in shard.pairs)
        if size >= WAVE_BYTES:
            yield wave
            wave, size = [], 0
    if wave:
        yield wave
