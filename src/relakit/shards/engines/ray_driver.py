"""The process that talks to Ray: gets shards through a pipe, gives them to actors, returns results.

A result is the number of its shard, a line end and a message; without a number, it is an error
from Ray.
"""

import json
import logging
import traceback
from typing import Any

import ray

from relakit.shards.cutting import Shard
from relakit.shards.engines.child import Master
from relakit.shards.engines.messages import Done, Failed, Message
from relakit.shards.work import Work, WorkDescription


def main() -> None:
    """Run the process that `ChildProcess` starts."""
    master = Master()
    description = master.receive().decode()
    workers, count = json.loads(master.receive())
    shards = [master.receive() for _ in range(count)]
    try:
        ray.init(logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False)
        for row in _dataset(description, shards, workers).iter_rows():
            master.send(b"%d\n%b" % (row["index"], row["message"]))
    except Exception as error:  # whatever it is, the master has to report it
        text = " ".join(str(error).split())[:300]
        master.send(b"\n" + Failed("value", text).to_bytes())
    master.receive()  # wait until all has arrived: leaving earlier could lose results
    ray.shutdown()


def _dataset(description: str, shards: list[bytes], workers: int | None) -> Any:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
    actors = min(len(shards), processors if workers is None else min(workers, processors))
    rows = [{"shard": shard} for shard in shards]
    return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Actor,
        batch_size=1,
        batch_format="pyarrow",  # NumPy's byte strings lose trailing zeros
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=1,
        fn_constructor_kwargs={"work": description},
    )


class Actor:
    """A process in the cluster, which builds the work when it gets its first shard.

    Errors come back as messages: Ray would wrap them, or retry what cannot succeed.
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
        except Exception as error:  # the master has to report it
            return Failed.by(error, traceback.format_exc())


if __name__ == "__main__":
    # Run it under its own module name, not as __main__: actors find the class by that name.
    from relakit.shards.engines import ray_driver

    ray_driver.main()
