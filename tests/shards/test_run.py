"""Jobs from input to output: resumed, restarted, compressed, streamed; never lost, never twice."""

import gzip
import io
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from shard_works import expected, shouting, write_files

from relakit.shards.cutting import Shard
from relakit.shards.engines import Engine, GivenUpError
from relakit.shards.engines.in_process import InProcess
from relakit.shards.engines.processes import Processes
from relakit.shards.ledger import OtherJobError, parts_folder
from relakit.shards.receipt import Receipt, receipt_path
from relakit.shards.run import Job, JobSummary, run_job
from relakit.shards.work import Advance, ShardResult, WorkDescription

COUNT = 57


class Interrupted:
    """Does so many shards, the last ones first, and is interrupted."""

    def __init__(self, most: int) -> None:
        self.most = most

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        chosen = list(shards)[::-1][: self.most]
        yield from InProcess().run(work, iter(chosen), unit, advance)
        raise KeyboardInterrupt


class Watched:
    """Notes which shards are done."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        for index, result in InProcess().run(work, shards, unit, advance):
            self.seen.append(index)
            yield index, result


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(shouting(), write_files(tmp_path, COUNT), shard_pairs=10)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "made" / "out.tsv"


def listing(output: Path) -> list[str]:
    return sorted(path.name for path in output.parent.iterdir())


def test_all_shards_in_order(job: Job, output: Path) -> None:
    told: list[tuple[int, int]] = []
    summary = run_job(job, output, InProcess(), progress=lambda *done: told.append(done))
    assert output.read_bytes() == expected(COUNT)
    assert summary == JobSummary(COUNT, 0, {"blank": 5, "pairs": COUNT})
    assert told == [(n, COUNT) for n in range(1, COUNT + 1)]
    assert listing(output) == ["out.tsv"]


@pytest.mark.parametrize("done", [1, 3, 6])
def test_goes_on_where_it_stopped(job: Job, output: Path, done: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_job(job, output, Interrupted(done))
    assert listing(output) == ["out.tsv.parts"]
    again, resumed = Watched(), []
    told: list[tuple[int, int]] = []
    summary = run_job(
        job,
        output,
        again,
        progress=lambda *done: told.append(done),
        on_resume=lambda *done: resumed.append(done),
    )
    assert again.seen == list(range(6 - done)), "none is done twice"
    assert resumed == [(done, 6)]
    assert output.read_bytes() == expected(COUNT)
    assert summary == JobSummary(COUNT, 7 + 10 * (done - 1), {"blank": 5, "pairs": COUNT})
    assert done == 6 or told[-1] == (COUNT, COUNT)
    assert listing(output) == ["out.tsv"]


def test_restart(job: Job, output: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_job(job, output, Interrupted(3))
    again = Watched()
    run_job(job, output, again, restart=True)
    assert again.seen == [0, 1, 2, 3, 4, 5]


def test_an_input_that_has_changed_is_another_job(job: Job, output: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_job(job, output, Interrupted(3))
    source = job.files.source
    source.write_text(source.read_text().replace("s5\n", "s500\n"))
    with pytest.raises(ValueError, match="another job: the text of the input has changed"):
        run_job(job, output, InProcess())


class Changing:
    """Changes the input when it has done a shard, which the shards after it show."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        yield from InProcess().run(work, iter([next(shards)]), unit, advance)
        # In place: the file is open, and its first block has been read.
        with self.source.open("r+b") as file:
            file.seek(-4, 2)
            file.write(b"x")
        yield from InProcess().run(work, shards, unit, advance)


def test_no_part_is_kept_of_an_input_that_changes(tmp_path: Path, output: Path) -> None:
    count = 20_000  # more than a reader's buffer
    job = Job(shouting(), write_files(tmp_path, count), shard_pairs=1000)
    source = job.files.source
    before = source.read_bytes()
    with pytest.raises(ValueError, match="has changed while it was read"):
        run_job(job, output, Changing(source))
    source.write_bytes(before)
    run_job(job, output, InProcess())
    assert output.read_bytes() == expected(count)


def test_what_was_there_stays_until_the_end(job: Job, output: Path) -> None:
    output.parent.mkdir()
    output.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        run_job(job, output, Interrupted(3))
    assert output.read_text() == "before"


def test_an_error_before_the_first_shard_leaves_nothing(tmp_path: Path, output: Path) -> None:
    job = Job(shouting(unbuildable=True), write_files(tmp_path, COUNT), shard_pairs=10)
    output.parent.mkdir()
    with pytest.raises(ValueError, match="the model is broken"):
        run_job(job, output, InProcess())
    assert listing(output) == []


@pytest.mark.parametrize("shard_pairs", [1, 10, 100])
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_outputs_do_not_depend_on_shards(
    tmp_path: Path, shard_pairs: int, ending: str
) -> None:
    outputs = []
    files = write_files(tmp_path, COUNT)
    for number, size in enumerate((shard_pairs, 13)):
        path = tmp_path / f"out{number}.tsv{ending}"
        run_job(Job(shouting(), files, b"head\n", shard_pairs=size), path, InProcess())
        outputs.append(path.read_bytes())
    assert outputs[0] == outputs[1]
    if ending == ".gz":
        assert gzip.decompress(outputs[0]) == b"head\n" + expected(COUNT)
    else:
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(outputs[0])
        assert unpacked == b"head\n" + expected(COUNT)


@pytest.mark.parametrize("engine", [InProcess(), Processes(2)])
def test_standard_output(job: Job, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    summary = run_job(job, None, engine)
    assert stream.buffer.getvalue() == expected(COUNT)  # type: ignore[attr-defined]
    assert summary.counts == {"blank": 5, "pairs": COUNT}


class GivesUp:
    """Does so many shards, and gives up."""

    def __init__(self, most: int) -> None:
        self.most = most

    def run(
        self, work: WorkDescription, shards: Iterator[Shard], unit: str, advance: Advance
    ) -> Generator[tuple[int, ShardResult], None, None]:
        yield from InProcess().run(work, islice(shards, self.most), unit, advance)
        raise GivenUpError("all workers died")


@pytest.mark.parametrize("done", [0, 2])
def test_what_is_kept_is_said_where_it_is(
    job: Job, output: Path, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="all workers died") as caught:
        run_job(job, output, GivesUp(done))
    assert ("What is done is kept" in str(caught.value)) == (done > 0)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(ValueError, match=r"^all workers died$"):
        run_job(job, None, GivesUp(done))


def test_a_device_has_no_parts(job: Job) -> None:
    run_job(job, Path("/dev/null"), InProcess())
    assert not parts_folder(Path("/dev/null")).exists()


def test_a_folder_is_no_output(job: Job, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot be written: it is a folder; name a file"):
        run_job(job, tmp_path, InProcess())


def test_shards_of_nothing(job: Job, output: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 pair, got 0"):
        run_job(Job(job.work, job.files, shard_pairs=0), output, InProcess())


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from shard_works import shouting, write_files
from relakit.shards.engines.processes import Processes
from relakit.shards.run import Job, run_job
def die(done, total):
    if done >= 25:
        os.kill(os.getpid(), signal.SIGKILL)
job = Job(shouting(), write_files(Path(sys.argv[1]), 57), shard_pairs=10)
run_job(job, Path(sys.argv[2]), Processes(2), progress=die)
"""


def test_killed_and_run_again(job: Job, tmp_path: Path, output: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(output)],
        env={"PYTHONPATH": str(Path(__file__).parent)},
        check=False,
    )
    assert killed.returncode == -9
    assert len(list(parts_folder(output).glob("*.part"))) in range(1, 6)
    summary = run_job(job, output, Processes(2))
    assert output.read_bytes() == expected(COUNT)
    assert 0 < summary.resumed < COUNT
    assert summary.counts == {"blank": 5, "pairs": COUNT}
    assert listing(output) == ["out.tsv"]


def test_an_output_that_is_there_is_not_made_again(job: Job, output: Path) -> None:
    first = run_job(job, output, InProcess(), once=True)
    content = output.read_bytes()
    watched = Watched()
    again = run_job(replace(job, shard_pairs=7), output, watched, once=True)
    assert watched.seen == []
    assert output.read_bytes() == content
    assert (again.pairs, again.resumed, again.counts) == (COUNT, COUNT, first.counts)
    run_job(job, output, watched, once=True, restart=True)
    assert len(watched.seen) == 6


def test_an_output_that_was_changed_is_made_again(job: Job, output: Path) -> None:
    run_job(job, output, InProcess(), once=True)
    content = output.read_bytes()
    output.write_bytes(content[:-1])
    run_job(job, output, InProcess(), once=True)
    assert output.read_bytes() == content


def test_an_output_of_another_job(job: Job, output: Path) -> None:
    run_job(job, output, InProcess(), once=True)
    other = replace(job, facts={"--max-tokens": 5})
    with pytest.raises(OtherJobError, match="of another job: --max-tokens was not set, is 5"):
        run_job(other, output, InProcess(), once=True)
    run_job(other, output, InProcess(), once=True, restart=True)


def test_killed_before_its_receipt_is_written(
    job: Job, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Receipt, output: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Receipt, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            run_job(job, output, InProcess(), once=True)
    watched = Watched()
    run_job(job, output, watched, once=True)
    assert watched.seen == [], "the parts were still there"
    assert not parts_folder(output).exists()


def test_an_interrupted_restart_goes_on(job: Job, output: Path) -> None:
    """What was there before is no longer what the job is about."""
    run_job(job, output, InProcess(), once=True)
    other = replace(job, facts={"--max-tokens": 5})
    with pytest.raises(KeyboardInterrupt):
        run_job(other, output, Interrupted(4), once=True, restart=True)
    with pytest.raises(OtherJobError, match="finished parts of another job: --max-tokens was 5"):
        run_job(job, output, InProcess(), once=True)
    watched = Watched()
    run_job(other, output, watched, once=True)
    assert watched.seen == [0, 1]
    assert listing(output) == ["out.tsv", "out.tsv.json"]


def test_parts_of_this_job_beside_an_output_of_another(job: Job, output: Path) -> None:
    other = replace(job, facts={"--max-tokens": 5})
    run_job(job, output, InProcess(), once=True)
    receipt = receipt_path(output).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        run_job(other, output, Interrupted(4), once=True, restart=True)
    receipt_path(output).write_bytes(receipt)
    third = replace(job, facts={"--max-tokens": 7})
    with pytest.raises(OtherJobError, match="finished parts of another job"):
        run_job(third, output, InProcess(), once=True)
    watched = Watched()
    run_job(other, output, watched, once=True)
    assert watched.seen == [0, 1]


def test_a_receipt_without_looking_at_an_earlier_one(job: Job, output: Path) -> None:
    run_job(job, output, InProcess(), receipt=True)
    found = Receipt.read(output)
    assert found is not None
    assert (found.pairs, found.facts["command"]) == (COUNT, job.work.name)
    other = replace(job, facts={"--max-tokens": 5})
    watched = Watched()
    run_job(other, output, watched, receipt=True)
    assert len(watched.seen) == 6
    found = Receipt.read(output)
    assert found is not None
    assert found.facts["--max-tokens"] == 5


def test_a_file_of_somebody_else_is_no_receipt(job: Job, output: Path) -> None:
    output.parent.mkdir()
    receipt_path(output).write_text('{"format": "mine"}')
    with pytest.raises(FileExistsError, match=r"out.tsv.json .* is no receipt of out.tsv"):
        run_job(job, output, InProcess(), receipt=True)
    run_job(job, output, InProcess(), restart=True)
    assert receipt_path(output).read_text() == '{"format": "mine"}', "no receipt was asked for"
