"""Does shards on worker processes on this machine, each with one thread.

A worker that dies is replaced, and its shard is done again.
"""

import os
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from typing import Final

from relakit.limits import max_threads
from relakit.shards.cutting import Shard
from relakit.shards.engines import GivenUpError
from relakit.shards.engines.child import ONE_THREAD, ChildProcess
from relakit.shards.engines.in_process import InProcess
from relakit.shards.engines.messages import Done, Failed, Progressed, parse
from relakit.shards.work import Advance, ShardResult, WorkDescription

ATTEMPTS: Final = 3
"""How many times a shard is tried if workers die over it."""
MOST_BY_DEFAULT: Final = 8
"""The most workers if no number is given: each has its own model in memory."""
AHEAD: Final = 4
"""Shards per worker that may be done ahead of the oldest one; the caller keeps them in memory to
put them in order."""


def default_workers() -> int:
    """One worker for each processor that this process may use, up to a limit."""
    return min(MOST_BY_DEFAULT, len(os.sched_getaffinity(0)))


class Processes:
    """Does shards on several processes; in this one if there is a single worker or shard."""

    def __init__(self, workers: int | None = None) -> None:
        """``workers``: how many; None: `default_workers`.

        Raises:
            ValueError: the number of workers is not possible.
        """
        self.workers: Final = default_workers() if workers is None else workers
        if not 1 <= self.workers <= max_threads():
            raise ValueError(
                f"--workers must be from 1 to {max_threads():,} on this machine with "
                f"{os.cpu_count() or 1} processors, got {self.workers:,}"
            )

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        """See `Engine.run`."""
        first = list(islice(shards, 2))
        all_shards = chain(first, shards)
        if self.workers == 1 or len(first) < 2:
            yield from InProcess().run(work, all_shards, unit, advance)
            return
        pool = _Pool(work, self.workers, unit, advance)
        try:
            yield from pool.run(all_shards)
        finally:
            pool.stop()


@dataclass
class _Task:
    """A shard to do."""

    shard: Shard
    deaths: int = 0
    """How many workers died over it"""


class _Worker:
    """A process, and the shard it is working on."""

    def __init__(self, work: WorkDescription) -> None:
        self.child: Final = ChildProcess("relakit.shards.engines.worker", ONE_THREAD)
        self.child.send(work.to_json().encode())
        self.task: _Task | None = None
        self.told = 0
        """Pairs of the shard that the worker has reported as done."""

    def give(self, task: _Task) -> None:
        self.task, self.told = task, 0
        self.child.send(task.shard.to_json())


class _Pool:
    """The workers, and what is left to do."""

    def __init__(self, work: WorkDescription, size: int, unit: str, advance: Advance) -> None:
        self._work = work
        self._size = size
        self._unit = unit
        self._advance = advance
        self._workers: list[_Worker] = []
        self._again: deque[_Task] = deque()
        """Shards whose workers died."""

    def run(self, shards: Iterator[Shard]) -> Iterator[tuple[int, ShardResult]]:
        following = next(shards, None)
        while True:
            while (worker := self._idle()) is not None:
                if self._again:
                    worker.give(self._again.popleft())
                elif following is not None and self._may_begin(following):
                    worker.give(_Task(following))
                    following = next(shards, None)
                else:
                    break
            busy = {w.child.connection: w for w in self._workers if w.task is not None}
            if not busy:
                return
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                yield from self._hear(busy[connection])

    def stop(self) -> None:
        for worker in self._workers:
            worker.child.process.kill()
        for worker in self._workers:
            worker.child.stop()
        self._workers.clear()

    def _idle(self) -> _Worker | None:
        """An idle worker, started if there may be one more; None if all are busy."""
        for worker in self._workers:
            if worker.task is None:
                return worker
        if len(self._workers) == self._size:
            return None
        self._workers.append(_Worker(self._work))
        return self._workers[-1]

    def _may_begin(self, shard: Shard) -> bool:
        begun = [worker.task.shard.index for worker in self._workers if worker.task is not None]
        return shard.index - min(begun, default=shard.index) < AHEAD * self._size

    def _hear(self, worker: _Worker) -> Iterator[tuple[int, ShardResult]]:
        assert worker.task is not None
        try:
            message = parse(worker.child.connection.recv_bytes())
        except (EOFError, OSError):
            self._bury(worker, worker.task)
            return
        if isinstance(message, Progressed):
            worker.told += message.pairs
            self._advance(message.pairs)
        elif isinstance(message, Failed):
            raise message.error(worker.task.shard.in_words(self._unit))
        else:
            assert isinstance(message, Done)
            shard, worker.task = worker.task.shard, None
            self._advance(len(shard.pairs) - worker.told)
            yield shard.index, message.result

    def _bury(self, worker: _Worker, task: _Task) -> None:
        """Remove a dead worker, and queue its shard for another one."""
        end = worker.child.stop()
        self._workers.remove(worker)
        self._advance(-worker.told)
        task.deaths += 1
        if task.deaths == ATTEMPTS:
            raise GivenUpError(
                f"{task.shard.in_words(self._unit)}: {ATTEMPTS} worker processes died over them, "
                f"the last one by {end}; if memory is short, use fewer --workers"
            )
        self._again.append(task)
