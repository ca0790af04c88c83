"""Scored and aligned pairs per second: who takes part, on what, and who is left out."""

import csv
import json
import sys
from pathlib import Path

import pytest
from model_folders import write_model
from speed_corpus import fake_place
from typer.testing import CliRunner, Result

import pair_throughput
from relakit.bench.machine import describe_machine
from toolkits.measure import measure_pairs
from toolkits.pair_report import PairReport, computed_by
from toolkits.pair_settings import PEERS, PairSettings
from toolkits.pair_turns import read_bench_pairs
from toolkits.peers import PeerPlace

SMALL = PairSettings(size="tiny", vocabulary=400, pairs=12, rounds=2, attentions=("softmax",))
OURS = ["relakit score, softmax", "relakit align, softmax"]
EFLOMAL = """#!{python}
import sys
source, forward = (sys.argv[sys.argv.index(option) + 1] for option in ("-s", "-f"))
lines = open(source).readlines()
open(forward, "w").writelines("0-0\\n" for line in lines[{skipped}:])
"""


@pytest.fixture
def eflomal(tmp_path: Path) -> Path:
    return write_eflomal(tmp_path / "eflomal-align")


def write_eflomal(path: Path, skipped: int = 0) -> Path:
    path.write_text(EFLOMAL.format(python=sys.executable, skipped=skipped))
    path.chmod(0o755)
    return path


def measured(settings: PairSettings, place: PeerPlace, eflomal: Path | None) -> PairReport:
    report = PairReport(settings=settings, machine=describe_machine())
    measure_pairs(report, place, eflomal)
    return report


def test_all_take_turns_on_the_same_pairs(tmp_path: Path, eflomal: Path) -> None:
    report = measured(SMALL, fake_place(tmp_path, ctranslate2="scores"), eflomal)
    # The stand-in knows nothing of the model, which is noticed.
    assert "it does not compute the same model" in report.notes["ctranslate2 fp32"]
    [case] = report.cases
    assert len(case.rounds) == 2
    for turns in case.rounds:
        assert sorted(turns) == sorted([*OURS, "eflomal"])
        assert all(turn.work == {"pairs": 12} for turn in turns.values())
    rows = report.measured().rows
    assert [row["contender"] for row in rows] == [*OURS, *PEERS]
    assert rows[-1]["over eflomal"] == 1
    assert rows[0]["over eflomal"] > 0
    assert rows[0]["over ctranslate2 fp32"] is None


def test_a_program_that_loses_lines(tmp_path: Path) -> None:
    program = write_eflomal(tmp_path / "eflomal-align", skipped=3)
    settings = PairSettings(**{**vars(SMALL), "peers": ("eflomal",), "rounds": 1})
    report = measured(settings, PeerPlace(), program)
    assert report.notes == {"eflomal": "aligned 9 of 12 pairs"}


def test_given_files_and_models(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    for name in ("en", "de"):
        (tmp_path / name).write_text("a dog\n\nthe bridge\nan old dog\n")
    settings = PairSettings(
        models=(str(model),), source=str(tmp_path / "en"), target=str(tmp_path / "de"), pairs=3,
        rounds=1,
    )  # fmt: skip
    assert [pair.number for pair in read_bench_pairs(settings)] == [1, 3, 4], "no blank ones"
    report = measured(settings, PeerPlace(python=tmp_path / "none"), None)
    [turns] = report.cases[0].rounds
    [attention] = {label.partition(", ")[2] for label in turns}
    assert list(turns) == [f"relakit score, {attention}", f"relakit align, {attention}"]
    assert report.notes["eflomal"].startswith("not installed")
    assert report.notes["ctranslate2 int8"].startswith("it needs a model with softmax attention")
    many = PairSettings(**{**vars(settings), "pairs": 9})
    with pytest.raises(ValueError, match="has 3 pairs with text, fewer than --pairs 9"):
        read_bench_pairs(many)


def test_what_each_computes_is_said() -> None:
    assert all(computed_by(label) for label in (*OURS, *PEERS))
    assert "alone" in computed_by("ctranslate2 int8")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(pair_throughput.app, list(map(str, arguments)))


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which the command sets
    paths = tmp_path / "pairs.json", tmp_path / "pairs.csv"
    small = ("--size", "tiny", "--vocab", "400", "--pairs", "12", "--rounds", "1")
    files = ("--json", paths[0], "--csv", paths[1])
    result = run(*small, "--attention", "softmax", "--peers", "none", *files)
    assert result.exit_code == 0, result.output
    assert "They do not compute the same thing" in result.stdout
    document = json.loads(paths[0].read_text())
    assert document["machine"]["cpu"]
    assert [known["label"] for known in document["contenders"]] == OURS
    with paths[1].open(newline="") as file:
        assert [row["contender"] for row in csv.DictReader(file)] == OURS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--peers", "fast_align"), "unknown peer 'fast_align'; choose from ctranslate2 int8"),
        (("--pairs", "0"), "pairs must be at least 1, got 0"),
        (("--source", "a.en"), "--source and --target belong together"),
        (("--attention", "none"), "attentions must name at least one"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, ValueError), result.output
    assert message in str(result.exception)
