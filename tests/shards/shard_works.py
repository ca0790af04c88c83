"""Works for tests, which worker processes build by their names."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relakit.data.parallel_files import NumberedPair, ParallelFiles
from relakit.shards.work import Advance, ShardResult, WorkDescription


class Shout:
    """Writes a line for each pair, in capitals; some pairs kill the process, or are refused."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.deadly = settings.get("deadly")
        """A text that kills whoever reads it ..."""
        self.graves = settings.get("graves")
        """... unless so many have died: a folder, and how many."""
        self.refused = settings.get("refused")
        self.broken = settings.get("broken")
        if settings.get("unbuildable"):
            raise ValueError("the model is broken")

    def run(self, pairs: Sequence[NumberedPair], advance: Advance) -> ShardResult:
        lines = []
        for pair in pairs:
            if pair.source == self.deadly:
                self._die()
            if pair.source == self.refused:
                raise ValueError(f"line {pair.number} is refused")
            if pair.source == self.broken:
                raise KeyError("a mistake of ours")
            lines.append(f"{pair.number} {pair.source.upper()} {pair.target.upper()}\n")
            advance(1)
        blank = sum(pair.has_blank_side for pair in pairs)
        return ShardResult("".join(lines).encode(), {"blank": blank, "pairs": len(pairs)})

    def _die(self) -> None:
        if self.graves is not None:
            folder, most = Path(self.graves[0]), self.graves[1]
            graves = len(list(folder.iterdir()))
            if graves >= most:
                return
            (folder / str(graves)).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def shouting(**settings: Any) -> WorkDescription:
    return WorkDescription("shout", "shard_works:Shout", settings)


def write_files(folder: Path, count: int) -> ParallelFiles:
    """Pairs ``s1`` and ``t1`` and so on; every tenth has a blank side."""
    source, target = folder / "text.en", folder / "text.de"
    numbers = range(1, count + 1)
    source.write_text("".join(f"s{n}\n" for n in numbers))
    target.write_text("".join("\n" if n % 10 == 0 else f"t{n}\n" for n in numbers))
    return ParallelFiles(source, target)


def expected(count: int) -> bytes:
    lines = (f"{n} S{n} {'' if n % 10 == 0 else f'T{n}'}\n" for n in range(1, count + 1))
    return "".join(lines).encode()
