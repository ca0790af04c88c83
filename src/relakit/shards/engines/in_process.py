"""Does shards one after the other in this process."""

from collections.abc import Generator, Iterator

from relakit.shards.cutting import Shard
from relakit.shards.work import Advance, ShardResult, WorkDescription


class InProcess:
    """Does shards in this process."""

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        """See `Engine.run`."""
        built = None
        for shard in shards:
            built = built or work.build()
            yield shard.index, built.run(shard.pairs, advance)
