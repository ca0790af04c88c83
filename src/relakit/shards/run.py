"""Runs a job from input to output: resumes where it stopped, and joins the parts. No torch."""

import errno
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from relakit.data.compression import compressed_by_ending
from relakit.data.parallel_files import ParallelFiles
from relakit.files.output_stream import open_special
from relakit.files.write_errors import WriteError, explained, os_error
from relakit.files.writing import check_writable, opened_output, whole_file
from relakit.shards.cutting import SHARD_PAIRS, Shard, Survey, survey, surveyed_shards
from relakit.shards.engines import Engine, GivenUpError
from relakit.shards.ledger import Ledger, open_ledger, parts_folder
from relakit.shards.receipt import TEXT, Receipt, receipt_path, refuse_foreign_receipt
from relakit.shards.work import ShardResult, WorkDescription

PIECE_BYTES: Final = 1 << 18

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished pairs and the total."""
Writer: TypeAlias = Callable[[BinaryIO, Path | None, Iterable[bytes]], None]
"""Writes the parts of an output, given in order, into an open file with this path."""


@dataclass(frozen=True)
class Job:
    """What to do, and with which pairs."""

    work: WorkDescription
    files: ParallelFiles
    header: bytes = b""
    """Written before the first shard."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the output depends on besides the pairs, as JSON: settings by the names of their
    options, and digests of models."""
    shard_pairs: int = SHARD_PAIRS


@dataclass(frozen=True)
class JobSummary:
    """What a job did."""

    pairs: int
    resumed: int
    """Pairs that an earlier command had already done."""
    counts: Mapping[str, int]
    """The counts of all shards, summed."""


def run_job(
    job: Job,
    output: Path | None,
    engine: Engine,
    *,
    write: Writer | None = None,
    restart: bool = False,
    once: bool = False,
    receipt: bool = False,
    progress: Progress = lambda done, total: None,
    on_resume: Callable[[int, int], None] = lambda done, total: None,
) -> JobSummary:
    """Do all shards of a job and write its output, whole or not at all.

    Finished shards are kept in ``OUTPUT.parts`` until the output is complete, and the same job
    resumes from them. To standard output, a pipe or a device, parts are written as they come, and
    nothing is kept.

    Args:
        job: what to do.
        output: a file whose ending says how to compress it. None: standard output.
        engine: who does the work.
        write: joins the parts; None: one after the other.
        restart: start over instead of resuming from what an earlier command did.
        once: leave an existing output alone if its receipt says that it is of this very job. Also
            writes a receipt.
        receipt: write a file beside the output that says what it was made from
            (`relakit.shards.receipt`).
        progress: called with the number of finished pairs and the total.
        on_resume: called with the number of shards done before and the total; not if there are
            none.

    Raises:
        OSError, ValueError: something is wrong with the input, the output or a model; or the
            parts found are of a different job.
    """
    if job.shard_pairs < 1:
        raise ValueError(f"a shard must have at least 1 pair, got {job.shard_pairs}")
    is_kept = keeps_parts(output)
    receipt = is_kept and (receipt or once)
    if output is not None and receipt:
        refuse_foreign_receipt(output)
    found = survey(job.files, job.shard_pairs)
    write = write or write_joined
    bar = _Bar(found.pairs, progress)
    if not is_kept:
        counts: Counter[str] = Counter()
        with opened_output(output) as file, closing(_done(job, found, engine, bar)) as done:
            write(file, output, _with_header(job, _contents(_in_order(done), counts)))
        return JobSummary(found.pairs, 0, counts)
    assert output is not None
    facts = _facts(job, found)
    done_before = Receipt.read(output) if once and not restart else None
    # Parts are newer than a different job's receipt; the ledger checks that they are of this job.
    if done_before is not None and (done_before.is_of(facts) or not has_parts(output)):
        done_before.check_is_of(facts, output)
        return JobSummary(found.pairs, found.pairs, done_before.counts)
    shards = {"the size of shards": job.shard_pairs}
    with open_ledger(output, {**facts, **shards}, restart=restart) as ledger:
        if receipt and restart:  # or, after an interruption, the next command would take it as done
            receipt_path(output).unlink(missing_ok=True)
        summary = _run_with(ledger, job, found, output, engine, write, bar, on_resume)
        if receipt:  # before the parts are gone, so that a killed command need not redo them
            Receipt.of(output, facts, found.pairs, summary.counts).write(output)
        ledger.remove()
        return summary


def _run_with(
    ledger: Ledger,
    job: Job,
    found: Survey,
    output: Path,
    engine: Engine,
    write: Writer,
    bar: "_Bar",
    on_resume: Callable[[int, int], None],
) -> JobSummary:
    finished = frozenset(ledger.finished)
    if finished:
        on_resume(len(finished), found.shards)
    if len(finished) < found.shards:
        try:
            with closing(_done(job, found, engine, bar, finished)) as done:
                for index, result in done:
                    ledger.keep(index, result)
        except GivenUpError as error:
            if not ledger.finished:
                raise
            raise GivenUpError(f"{error}. What is done is kept; give the command again") from error
    counts: Counter[str] = Counter()
    with whole_file(output) as file:
        write(file, output, _with_header(job, _contents(ledger.results(), counts)))
    resumed = found.pairs if len(finished) >= found.shards else bar.resumed
    return JobSummary(found.pairs, resumed, counts)


def write_joined(file: BinaryIO, path: Path | None, contents: Iterable[bytes]) -> None:
    """Write one part after the other, compressed as the output's ending says."""
    with ExitStack() as stack:
        packed = file if path is None else stack.enter_context(compressed_by_ending(path, file))
        for piece in _even_pieces(contents) if path is not None else contents:
            packed.write(piece)
            if path is None:
                packed.flush()


def _even_pieces(contents: Iterable[bytes]) -> Iterator[bytes]:
    """The content in equal pieces, so that compressed output does not depend on shard sizes."""
    waiting = bytearray()
    for content in contents:
        waiting += content
        whole = len(waiting) // PIECE_BYTES * PIECE_BYTES
        for start in range(0, whole, PIECE_BYTES):
            yield bytes(waiting[start : start + PIECE_BYTES])
        del waiting[:whole]
    yield bytes(waiting)


class _Bar:
    """Counts finished pairs."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total = total
        self._progress = progress
        self._done = 0
        self.resumed = 0

    def advance(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def skip(self, count: int) -> None:
        """Count pairs that an earlier command did."""
        self.resumed += count
        self.advance(count)


def _done(
    job: Job,
    found: Survey,
    engine: Engine,
    bar: _Bar,
    finished: frozenset[int] = frozenset(),
) -> Generator[tuple[int, ShardResult], None, None]:
    """Do the missing shards, and yield each as it finishes."""

    def missing() -> Iterator[Shard]:
        for shard in surveyed_shards(job.files, job.shard_pairs, found):
            if shard.index in finished:
                bar.skip(len(shard.pairs))
            else:
                yield shard

    return engine.run(job.work, missing(), job.files.unit, bar.advance)


def _in_order(done: Iterable[tuple[int, ShardResult]]) -> Iterator[ShardResult]:
    waiting: dict[int, ShardResult] = {}
    following = 0
    for index, result in done:
        waiting[index] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _contents(results: Iterable[ShardResult], counts: Counter[str]) -> Iterator[bytes]:
    for result in results:
        counts.update(result.counts)
        yield result.content


def _with_header(job: Job, contents: Iterable[bytes]) -> Iterator[bytes]:
    return chain([job.header], contents) if job.header else iter(contents)


def _facts(job: Job, found: Survey) -> dict[str, Any]:
    return {
        "relakit": version("relakit"),
        "command": job.work.name,
        **job.facts,
        "the number of pairs": found.pairs,
        TEXT: found.digest,
    }


def has_parts(output: Path) -> bool:
    """Whether an interrupted job left finished shards for an output."""
    return any(parts_folder(output).glob("*.part"))


def keeps_parts(output: Path | None) -> bool:
    """Whether finished shards are kept: only if the output is, or will be, a regular file.

    Raises:
        WriteError: the output certainly cannot be written.
    """
    if output is None:
        return False
    if output.is_dir():
        raise WriteError(output, os_error(errno.EISDIR))
    check_writable(output)
    with explained(output):
        return open_special(output, only_look=True) is None
