"""The work to do on a shard, described so that any process can do it. No torch here."""

import importlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any, Protocol, TypeAlias

from relakit.data.parallel_files import NumberedPair

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of newly finished pairs; a negative number takes back lost ones."""


@dataclass(frozen=True)
class ShardResult:
    """The result of a shard."""

    content: bytes
    """The shard's part of the output."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What to tell the user about the pairs, such as how many were too long; summed over all
    shards."""


class Work(Protocol):
    """Turns pairs into a part of the output. The result depends on the pairs alone."""

    def run(self, pairs: Sequence[NumberedPair], advance: Advance) -> ShardResult:
        """Do one shard; ``advance`` may be called along the way, for progress bars."""


@dataclass(frozen=True)
class WorkDescription:
    """Work that has not been built yet; sent between processes as JSON."""

    name: str
    """For people, such as ``score``."""
    builder: str
    """The function that builds the work from its settings, as ``package.module:function``."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Anything that JSON can hold."""
    relakit: str = field(default_factory=lambda: version("relakit"))
    """The version that made this description; a different one might give different results."""

    def build(self) -> Work:
        """Build the work in this process.

        Raises:
            OSError, ValueError: a model or a setting is broken, or this is a different version of
                relakit.
        """
        if self.relakit != version("relakit"):
            raise ValueError(
                f"{platform.node()} has relakit {version('relakit')}, where the command was given "
                f"it is {self.relakit}: parts of both must not be mixed; install the same"
            )
        module, _, function = self.builder.partition(":")
        work: Work = getattr(importlib.import_module(module), function)(self.settings)
        return work

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "WorkDescription":
        return cls(**json.loads(text))
