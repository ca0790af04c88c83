"""Who does the shards of a job: this process, others on this machine, or a cluster."""

from collections.abc import Generator, Iterator
from typing import Protocol

from relakit.shards.cutting import Shard
from relakit.shards.work import Advance, ShardResult, WorkDescription


class GivenUpError(ValueError):
    """Whoever does the work has failed too often; another time it may go better."""


class Engine(Protocol):
    """Does shards, and gives their results by the shards' numbers, as they are done."""

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        """Do these shards; closing the iterator stops everything.

        Args:
            work: what to do.
            shards: read as they are needed.
            unit: what pairs are numbered by, in errors.
            advance: is told of pairs that are done.

        Raises:
            OSError, ValueError: the work cannot be built, or fails.
            GivenUpError: who does it fails.
        """
