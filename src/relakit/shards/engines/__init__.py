"""Who does the shards of a job: this process, others on this machine, or a cluster."""

from collections.abc import Generator, Iterator
from typing import Protocol

from relakit.shards.cutting import Shard
from relakit.shards.work import Advance, ShardResult, WorkDescription


class GivenUpError(ValueError):
    """The workers or the cluster failed too often; a later attempt may succeed."""


class Engine(Protocol):
    """Does shards, and yields each result with its shard's number as soon as it is done."""

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        """Do these shards; closing the iterator stops everything.

        Args:
            work: what to do.
            shards: read as needed.
            unit: what the pairs' numbers count, for error messages.
            advance: called with the number of newly finished pairs.

        Raises:
            OSError, ValueError: the work cannot be built, or fails.
            GivenUpError: the workers or the cluster fail.
        """
