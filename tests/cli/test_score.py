"""`relakit score`: its table, and the same bytes whoever computed them."""

import gzip
import io
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from extra_packages import needs_pyarrow
from interrupted_jobs import interrupt_after_two_shards
from model_folders import write_model
from pair_texts import pair_options, write_pairs

from relakit.cli import main as cli
from relakit.data.generated import generate_pairs

PAIRS = [(pair.source_text, pair.target_text) for pair in generate_pairs(33, split="test")]
PAIRS[4:4] = [("", "Ein Hund."), ("", "")]
COUNT = len(PAIRS)


class Result(NamedTuple):
    status: int
    out: bytes
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["relakit", "score", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        out, err = capsysbinary.readouterr()
        return Result(int(caught.value.code or 0), out, err.decode())

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("score") / "model")


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    """The options that name the pairs."""
    return pair_options(write_pairs(tmp_path, PAIRS))


def rows(table: bytes) -> list[list[str]]:
    return [line.split("\t") for line in table.decode().splitlines()]


def test_a_row_for_each_pair(run: Run, model: Path, files: list[object]) -> None:
    result = run(model, *files)
    assert result.status == 0, result.err
    header, *found = rows(result.out)
    assert header[:2] == ["line", "null_rate"]
    assert [row[0] for row in found] == [str(number) for number in range(1, COUNT + 1)]
    assert {len(row) for row in found} == {len(header)}
    assert [not any(row[1:]) for row in found] == [number in (4, 5) for number in range(COUNT)]
    assert "2 pairs with a blank side" in result.err
    assert "has neither aligner.json nor alignment.json" in result.err
    assert "has no languages.json" in result.err


def test_the_same_bytes_whatever_is_beside(
    run: Run, model: Path, files: list[object], tmp_path: Path
) -> None:
    expected = run(model, *files, "--workers", 1).out
    for options in (
        ["--batch-tokens", 60, "--workers", 1],
        ["--shard-pairs", 5, "--workers", 1],
        ["--shard-pairs", 9, "--workers", 2],
    ):
        output = tmp_path / "scores.tsv"
        assert run(model, *files, *options, "--output", output).status == 0
        assert output.read_bytes() == expected, options
    order = random.Random(1).sample(range(COUNT), COUNT)
    other = write_pairs(tmp_path, [PAIRS[place] for place in order])
    permuted = run(model, *pair_options(other)).out
    assert [row[1:] for row in rows(permuted)[1:]] == [
        rows(expected)[place + 1][1:] for place in order
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "scores.tsv", "scores.tsv.json", "text.de", "text.en",
    ]  # fmt: skip


def test_other_inputs_give_the_same(
    run: Run, model: Path, files: list[object], tmp_path: Path
) -> None:
    expected = run(model, *files).out
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{target}\t0.5\t{source}\n" for source, target in PAIRS))
    assert run(model, "--source", table, "--columns", "3,1").out == expected
    table.write_text("de\ten\n" + "".join(f"{target}\t{source}\n" for source, target in PAIRS))
    named = rows(run(model, "--source", table, "--columns", "en,de").out)
    assert [row[0] for row in named[1:3]] == ["2", "3"]
    assert [row[1:] for row in named] == [row[1:] for row in rows(expected)]
    bars = tmp_path / "pairs.gz"
    lines = "".join(f"{source} ||| {target}\n" for source, target in PAIRS)
    bars.write_bytes(gzip.compress(lines.encode()))
    assert run(model, "--source", bars).out == expected
    memory = tmp_path / "pairs.tmx"
    sides = (
        '<tu><tuv xml:lang="en-GB"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'
    )
    memory.write_text(f"<tmx><body>{''.join(sides.format(*p) for p in PAIRS)}</body></tmx>")
    assert run(model, "--source", memory).out == expected


def test_dual_cross_entropy_and_languages(
    run: Run, model: Path, files: list[object], tmp_path: Path
) -> None:
    back = write_model(tmp_path / "back", seed=1, source="de", target="en")
    learn = ["--languages-from", tmp_path / "text.en", tmp_path / "text.de"]
    result = run(model, *files, "--reverse", back, *learn)
    assert result.status == 0, result.err
    header, *found = rows(result.out)
    first = dict(zip(header, found[0], strict=True))
    forward, backward = float(first["cross_entropy"]), float(first["reverse_cross_entropy"])
    dual = abs(forward - backward) + (forward + backward) / 2
    assert float(first["dual_cross_entropy"]) == pytest.approx(dual, rel=1e-5)
    assert float(first["source_language"]) > 0 < float(first["target_language"])
    assert "languages.json" not in result.err


def test_a_damaged_layer_of_the_reverse_model(
    run: Run, model: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read for words without support, so it is looked at before any work."""
    back = write_model(tmp_path / "back", seed=1, source="de", target="en")
    (back / "aligner.json").write_text("{}")
    monkeypatch.setattr("relakit.clean.score_work.build", None)  # no work begins
    result = run(model, *files, "--reverse", back, "--workers", 1)
    assert result.status == 1
    assert f"{back / 'aligner.json'}: dim is missing" in result.err


def test_long_pairs_are_reported(run: Run, model: Path, files: list[object]) -> None:
    result = run(model, *files, "--max-tokens", 5)
    assert result.status == 0
    assert "33 pairs with more than 5 tokens on a side: scored by the beginning" in result.err
    shortest = run(model, *files, "--max-tokens", 1)
    assert "with more than 1 token on a side: scored by the beginning" in shortest.err


def test_softmax_has_a_note(run: Run, files: list[object], tmp_path: Path) -> None:
    folder = write_model(tmp_path / "softmax", attention="softmax")
    result = run(folder, *files)
    assert result.status == 0, result.err
    assert "has softmax cross-attention, whose weights always sum to 1" in result.err


def test_interrupted_and_given_again(
    run: Run, model: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "scores.tsv.zst"
    command = [model, *files, "--shard-pairs", 10, "--workers", 1, "--output", output]
    expected = run(*command[:-1], tmp_path / "whole.tsv.zst")
    assert expected.status == 0
    with monkeypatch.context() as patch:
        interrupt_after_two_shards(patch)
        stopped = run(*command)
    assert stopped.status == 130
    assert "relakit: stopped; the same command resumes from here" in stopped.err
    assert not output.exists()
    with monkeypatch.context() as patch:
        interrupt_after_two_shards(patch)
        stopped = run(*command, "--restart")
    assert "stopped; the same command without --restart resumes from here" in stopped.err
    other = run(*command, "--max-tokens", 7)
    assert other.status == 1
    assert "holds finished parts of another job: --max-tokens was" in other.err
    again = run(*command)
    assert "relakit: resuming: 2 of 4 shards were done before" in again.err
    assert output.read_bytes() == (tmp_path / "whole.tsv.zst").read_bytes()
    assert "2 pairs with a blank side" in again.err


def test_interrupted_before_anything_was_done(
    run: Run, model: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relakit.clean.score_work.ScoreWork.run", interrupted)
    stopped = run(model, *files, "--workers", 1, "--output", tmp_path / "scores.tsv")
    assert stopped.status == 130
    assert stopped.err == "relakit: stopped; nothing was done that could be kept\n"


def test_interrupted_where_nothing_can_be_kept(
    run: Run, model: Path, files: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relakit.clean.score_work.ScoreWork.run", interrupted)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    stopped = run(model, *files, "--workers", 1, "--output", pipe)
    os.close(reader)
    assert stopped.status == 130
    assert "resumes from here" not in stopped.err
    assert not (tmp_path / "pipe.parts").exists()


RUN = "from relakit.cli.main import main; main()"
RUN_UNTIL_A_PART_IS_KEPT = """
import os, signal
from relakit.cli.main import main
from relakit.shards.ledger import Ledger
keep = Ledger.keep
def keep_and_die(self, *result):
    keep(self, *result)
    os.kill(os.getpid(), signal.SIGKILL)
Ledger.keep = keep_and_die
main()
"""
"""A signal that comes from outside would come too late for so small a job, now and then."""


@pytest.mark.slow
def test_killed_and_given_again(model: Path, files: list[object], tmp_path: Path) -> None:
    """A real SIGKILL of a command with workers, as soon as its first part is there."""
    output = tmp_path / "scores.tsv"
    arguments = [model, *files, "--shard-pairs", 2, "--workers", 2, "--output", output]

    def score(program: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, "score", *map(str, arguments)]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)

    killed = score(RUN_UNTIL_A_PART_IS_KEPT)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list(tmp_path.glob("scores.tsv.parts/*.part"))) == 1
    again = score(RUN)
    assert again.returncode == 0, again.stderr
    assert "resuming: 1 of 18 shards were done before" in again.stderr
    assert [row[0] for row in rows(output.read_bytes())[1:]] == [str(n + 1) for n in range(COUNT)]
    assert not list(tmp_path.glob("*.parts"))


@needs_pyarrow
def test_parquet(run: Run, model: Path, files: list[object], tmp_path: Path) -> None:
    from pyarrow import parquet

    output = tmp_path / "scores.parquet"
    assert run(model, *files, "--output", output).status == 0
    found = parquet.read_table(output).to_pylist()
    assert [row["line"] for row in found] == list(range(1, COUNT + 1))
    assert isinstance(found[0]["cross_entropy"], float)
    assert found[4]["null_rate"] is None


def test_no_more_readers(
    model: Path, files: list[object], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before ``| head``: a pipe that nobody reads is the end, and no error."""

    class Closed(io.BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Closed()))
    result = run(model, *files)
    assert (result.status, "error" in result.err) == (0, False)
