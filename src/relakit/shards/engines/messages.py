"""Messages from worker processes: bytes, the first of which says what kind of message it is."""

import json
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relakit.shards.work import ShardResult

FailureKind: TypeAlias = Literal["os", "value", "bug"]


@dataclass(frozen=True)
class Progressed:
    """This many more pairs of the shard are done."""

    pairs: int

    def to_bytes(self) -> bytes:
        return b"p%d" % self.pairs


@dataclass(frozen=True)
class Done:
    """The shard is done."""

    result: ShardResult

    def to_bytes(self) -> bytes:
        return b"d" + pack_result(self.result)


@dataclass(frozen=True)
class Failed:
    """The work cannot be built or done, by any worker."""

    kind: FailureKind
    text: str

    @classmethod
    def by(cls, error: Exception, traceback: str) -> "Failed":
        if isinstance(error, OSError):
            return cls("os", str(error))
        return cls("value", str(error)) if isinstance(error, ValueError) else cls("bug", traceback)

    def error(self, where: str) -> Exception:
        """The exception to raise; a bug in relakit itself is reported with ``where``, the shard."""
        if self.kind == "bug":
            return RuntimeError(f"a worker failed at {where}:\n{self.text}")
        return OSError(self.text) if self.kind == "os" else ValueError(self.text)

    def to_bytes(self) -> bytes:
        return b"f" + json.dumps([self.kind, self.text]).encode()


Message: TypeAlias = Progressed | Done | Failed


def parse(content: bytes) -> Message:
    """Parse a message from its bytes."""
    kind, rest = content[:1], content[1:]
    if kind == b"p":
        return Progressed(int(rest))
    if kind == b"d":
        return Done(unpack_result(rest))
    return Failed(*json.loads(rest))


def pack_result(result: ShardResult) -> bytes:
    """A result as bytes: the counts on one line of JSON, then the content."""
    return json.dumps(dict(result.counts)).encode() + b"\n" + result.content


def unpack_result(content: bytes) -> ShardResult:
    counts, _, rest = content.partition(b"\n")
    return ShardResult(rest, json.loads(counts))
