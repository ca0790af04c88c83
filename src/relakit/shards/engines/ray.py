"""Shards on the machines of a Ray cluster (the extra ``relakit[ray]``).

Ray Data hands shards to a pool of actors, and starts an actor that dies again. That a shard
is neither lost nor done twice does not rest on that: results come with the numbers of their shards,
and whoever asked keeps a ledger of them. If nothing comes back for long, which happens after actors
have died, all is started again with what is missing.
"""

import logging
import traceback
from collections.abc import Generator, Iterable, Iterator
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from relakit.shards.cutting import Shard
from relakit.shards.engines.messages import Done, Failed, Message, parse
from relakit.shards.work import Advance, ShardResult, Work, WorkDescription

PATIENCE: Final = 1800.0
"""Seconds without a result after which a cluster is thought to hang, by default."""
ATTEMPTS: Final = 3
"""How often it is started again."""
WAVE_BYTES: Final = 1 << 28
"""Text that is handed over at once: the driver and Ray keep it in memory."""


class RayCluster:
    """Does shards on a Ray cluster: the one that ``RAY_ADDRESS`` names, or one on this machine."""

    def __init__(self, workers: int | None = None, *, patience: float = PATIENCE) -> None:
        """``workers``: actors of one processor each; None: as many as the cluster has processors.

        Raises:
            ValueError: Ray is not installed, or a number is impossible.
        """
        if find_spec("ray") is None or find_spec("pyarrow") is None:
            raise ValueError(
                "--engine ray needs Ray Data; install it with pip install 'relakit[ray]'"
            )
        if workers is not None and workers < 1:
            raise ValueError(f"--workers must be at least 1, got {workers:,}")
        if not patience > 0:
            raise ValueError(f"--timeout must be above 0, got {patience:g}")
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
                    for index, message in self._once(work, missing.values()):
                        shard = missing.pop(index, None)
                        if shard is None:
                            continue  # done twice, by an actor that was thought to be dead
                        if isinstance(message, Failed):
                            raise message.error(shard.in_words(unit))
                        assert isinstance(message, Done)
                        advance(len(shard.pairs))
                        yield index, message.result
                except _Hangs as problem:
                    if attempt == ATTEMPTS:
                        first = next(iter(missing.values())).in_words(unit)
                        raise ValueError(
                            f"{first}: {problem} (tried {ATTEMPTS} times, --timeout). What is done "
                            "is kept"
                        ) from None

    def _once(
        self, work: WorkDescription, shards: Iterable[Shard]
    ) -> Generator[tuple[int, Message], None, None]:
        """Hand over shards, and give what comes back; `_Hangs` if that takes too long."""
        import ray

        begun = not ray.is_initialized()
        if begun:
            ray.init(logging_level=logging.ERROR, log_to_driver=False)
        try:
            rows = _dataset(work, list(shards), self._workers).iter_rows()
            for row in _patiently(rows, self._patience):
                yield row["index"], parse(row["message"])
        except _Hangs:
            ray.shutdown()
            raise
        finally:
            if begun:
                ray.shutdown()


class _Hangs(Exception):
    """Nothing comes back from the cluster."""


def _waves(shards: Iterator[Shard]) -> Iterator[list[Shard]]:
    """Shards that are handed over together."""
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


def _dataset(work: WorkDescription, shards: list[Shard], workers: int | None) -> Any:
    import ray

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
    actors = min(len(shards), processors if workers is None else min(workers, processors))
    rows = [{"shard": shard.to_json()} for shard in shards]
    return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Actor,
        batch_size=1,
        batch_format="pyarrow",  # NumPy's strings of bytes lose zeros at their ends
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=1,
        fn_constructor_kwargs={"work": work.to_json()},
    )


class _Actor:
    """A process of the cluster, which builds the work when it gets its first shard.

    Errors come back as messages: Ray would wrap them, or try again what cannot succeed.
    """

    def __init__(self, work: str) -> None:
        self._description = WorkDescription.from_json(work)
        self._work: Work | None = None

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        shards = [Shard.from_json(content.as_py()) for content in batch.column("shard")]
        messages = [self._do(shard).to_bytes() for shard in shards]
        return pyarrow.table(
            {
                "index": pyarrow.array([shard.index for shard in shards], pyarrow.int64()),
                "message": pyarrow.array(messages, pyarrow.large_binary()),
            }
        )

    def _do(self, shard: Shard) -> Message:
        try:
            self._work = self._work or self._description.build()
            return Done(self._work.run(shard.pairs, lambda pairs: None))
        except Exception as error:  # the master has to say it
            return Failed.by(error, traceback.format_exc())


def _patiently(rows: Iterable[dict[str, Any]], seconds: float) -> Iterator[dict[str, Any]]:
    """The rows; `_Hangs` if one of them takes longer, or Ray gives up."""
    inbox: SimpleQueue[dict[str, Any] | BaseException | None] = SimpleQueue()

    def read() -> None:
        try:
            for row in rows:
                inbox.put(row)
            inbox.put(None)
        except BaseException as error:
            inbox.put(error)

    Thread(target=read, daemon=True).start()
    while True:
        try:
            row = inbox.get(timeout=seconds)
        except Empty:
            raise _Hangs(f"the Ray cluster gave nothing back for {seconds:,.0f} s") from None
        if isinstance(row, BaseException):
            raise _Hangs(f"the Ray cluster failed: {' '.join(str(row).split())[:300]}") from None
        if row is None:
            return
        yield row
