"""How much is too much: what this machine has, and the limits that do not depend on it.

Whatever is refused for its size is refused here or by a number from here, so that the same setting
has the same limit everywhere. This module needs only the standard library and `amounts`.
"""

import os
from functools import cache
from pathlib import Path
from typing import Final

from relakit.amounts import format_bytes

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line of text, without its line end. No sentence is longer: it is another kind of file."""
MAX_JSON_BYTES: Final = 1 << 24
"""Largest file with settings, such as config.json."""
MAX_COUNT: Final = (1 << 63) - 1
"""Largest count of anything, and largest seed: what PyTorch takes."""
MAX_PAIRS: Final = 1_000_000_000
"""Most pairs of a generated corpus: about 100 GB of text."""
MAX_BEAM: Final = 1000
"""Most hypotheses that a search follows at once."""
MAX_VOCABULARY: Final = 1_000_000
"""Most entries of a tokenizer."""
MAX_LAYERS: Final = 1000
"""Most layers of an encoder or a decoder."""
MAX_FEATURES: Final = 1 << 20
"""Most features of a position, including inside the feed-forward layers."""

_BEAM_BYTES: Final = 70 * 2 * 512 * 6 * 4
"""The keys and values of 70 tokens in the six layers of the paper's model."""
_THREADS_ANYWHERE: Final = 64
_STACK_BYTES: Final = 8 << 20
_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def machine_memory() -> int:
    """Most bytes of memory that this process may use: the machine's, or its container's."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    return min(limits + [limit for path in _CGROUP_LIMITS for limit in _limits_in(path)])


@cache
def _limits_in(path: Path) -> list[int]:
    """The number in a file, read once: translating line by line asks for it with every line."""
    try:
        return [int(path.read_text())]
    except (OSError, ValueError):  # no such group, or "max"
        return []


def check_memory(what: str, needed: int, *, available: int | None = None, advice: str) -> None:
    """Raise ValueError if ``what`` needs more than the available bytes; None: the machine's."""
    if available is None:
        available, where = machine_memory(), "this machine has"
    else:
        where = "there are"
    if needed > available:
        raise ValueError(
            f"{what} would need about {format_bytes(needed)} of memory, {where} "
            f"{format_bytes(available)}; {advice}"
        )


def check_beam(beam: int, name: str = "the beam") -> None:
    """Raise ValueError for a beam that no search needs.

    Within this limit, each search is checked against the model and the machine when it starts.
    """
    if beam > MAX_BEAM:
        raise ValueError(
            f"{name} must be at most {MAX_BEAM:,}, got {beam:,}: with a model of the paper's "
            f"size, a single translation of 70 tokens would need about "
            f"{format_bytes(beam * _BEAM_BYTES)} of memory"
        )


def max_threads() -> int:
    """Most threads that may be requested: more than the processors, as recipes change machines."""
    return max(_THREADS_ANYWHERE, 4 * (os.cpu_count() or 1))


def checked_threads(name: str, threads: int, *, least: int = 1) -> int:
    """The number of threads, if that many are allowed; ``name`` is the setting's name.

    Far more threads than processors do not help, and OpenMP ends the process if it cannot start
    them.
    """
    if threads < least:
        raise ValueError(f"{name} must be at least {least}, got {threads:,}")
    if threads > max_threads():
        raise ValueError(
            f"{name} must be at most {max_threads():,} on this machine with "
            f"{os.cpu_count() or 1} processors, got {threads:,}, whose stacks alone may take "
            f"{format_bytes(threads * _STACK_BYTES)}"
        )
    return threads
