"""Reports of speed: ratios, files, going on with a run, the table and the plot."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from relakit.bench.machine import Machine
from relakit.bench.results import read_earlier, write_csv, write_json
from relakit.bench.rounds import CaseRounds, Turn
from toolkits.report import SpeedReport
from toolkits.report_plot import draw_report
from toolkits.report_table import print_report
from toolkits.settings import DecodingSettings, TrainingSettings

RESULTS = Path(__file__).parents[2] / "results" / "benchmarks"
MACHINE = Machine(
    cpu="an abacus",
    system="Linux",
    relakit="1",
    torch="2",
    torch_instructions="AVX2",
    rela_instructions=None,
)
TRAINING = TrainingSettings(
    attentions=("softmax", "rela-g"), peers=("joeynmt", "marian"), precisions=("fp32",), rounds=2
)
DECODING = DecodingSettings(
    attentions=("softmax", "rela-g"), precisions=("fp32",), peers=("ctranslate2",), groups=2
)


def turn(tokens_per_second: float) -> Turn:
    return Turn(10 / tokens_per_second, {"target_tokens": 10, "sentences": 2})


def training_report() -> SpeedReport:
    rounds = [
        {"softmax fp32": turn(100), "rela-g fp32": turn(200), "marian fp32": turn(50)},
        {"softmax fp32": turn(10), "rela-g fp32": turn(40), "marian fp32": turn(5)},
    ]
    return SpeedReport(
        benchmark="train",
        settings=TRAINING,
        machine=MACHINE,
        cases=[CaseRounds("training", rounds)],
        notes={"joeynmt fp32": "not installed: nowhere"},
        about={"marian fp32": "Marian 1"},
    )


def decoding_report() -> SpeedReport:
    own = [
        {"softmax fp32": turn(100), "rela-g fp32": turn(100 + 10 * number)} for number in range(2)
    ]
    cases = [
        CaseRounds("batch 1", own),
        CaseRounds("group 1", own[:1]),
        CaseRounds("group 2", own[1:]),
    ]
    return SpeedReport(
        benchmark="decode",
        settings=DECODING,
        machine=MACHINE,
        cases=cases,
        source_lengths={"group 1": 4.0, "group 2": 9.0},
    )


def test_speeds_and_ratios() -> None:
    report = training_report()
    softmax, rela, joeynmt, marian = report.speeds(report.cases[0])
    assert softmax.ratio is not None
    assert softmax.ratio.median == 1
    assert rela.ratio is not None
    assert rela.ratio.median == 3.0, "of 2 and 4: not of the medians of speed"
    assert rela.over_peers["joeynmt fp32"] is None
    assert rela.over_peers["marian fp32"] is not None
    assert rela.over_peers["marian fp32"].median == 6.0
    assert rela.tokens_per_second is not None
    assert rela.tokens_per_second.median == 120
    assert rela.sentences_per_second == 24
    assert rela.tokens_per_sentence == 5
    assert joeynmt.rounds == 0
    assert joeynmt.note == "not installed: nowhere"
    assert marian.ratio is not None
    assert marian.ratio.median == 0.5
    assert marian.over_peers == {}


def test_csv_has_everyone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "speeds.csv"
    write_csv(path, training_report().measured().rows)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["contender"] for row in rows] == [
        "softmax fp32", "rela-g fp32", "joeynmt fp32", "marian fp32",
    ]  # fmt: skip
    assert rows[1]["ratio"] == "3.0"
    assert rows[1]["over marian fp32"] == "6.0"
    assert rows[2]["tokens_per_second"] == ""
    assert rows[2]["note"] == "not installed: nowhere"


@pytest.mark.parametrize(
    "path",
    [*sorted(RESULTS.glob("train*.csv")), *sorted(RESULTS.glob("decode*.csv"))],
    ids=lambda path: path.stem,
)
def test_published_results_have_these_columns(path: Path) -> None:
    with path.open(newline="") as file:
        columns = csv.DictReader(file).fieldnames
    report = decoding_report() if path.stem.startswith("decode") else training_report()

    def without_peers(names: Iterable[str]) -> list[str]:
        return [name for name in names if not name.startswith("over ")]

    assert columns is not None
    assert without_peers(columns) == without_peers(report.measured().rows[0])


def test_json_comes_back(tmp_path: Path) -> None:
    path, report = tmp_path / "speeds.json", training_report()
    write_json(path, report.run, report.measured())
    assert read_earlier(path, report.run) == report.measured()
    document = json.loads(path.read_text())
    assert document["contenders"][3]["about"] == "Marian 1"
    assert document["results"][1]["ratio"] == 3.0


def printed(report: SpeedReport) -> str:
    text = io.StringIO()
    print_report(report, Console(file=text, width=150, highlight=False))
    return text.getvalue()


def test_table_of_training() -> None:
    text = printed(training_report())
    assert "training, 2 rounds, 1 thread" in text
    [row] = [line.split() for line in text.splitlines() if line.startswith(" rela-g fp32")]
    assert row[-2:] == ["-", "6.00"]
    assert "Did not run: joeynmt fp32: not installed: nowhere" in text
    report = training_report()
    report.notes["marian fp32"] = "tired"
    assert "Stopped on the way: marian fp32: tired" in printed(report)


def test_a_wide_table_is_not_cut() -> None:
    peers = ("joeynmt", "joeynmt-own-batches", "marian")
    settings = replace(TRAINING, peers=peers, precisions=("fp32", "bf16"))
    text = printed(replace(training_report(), settings=settings))
    assert "…" not in text


def test_table_of_groups() -> None:
    lines = printed(decoding_report()).splitlines()
    [row] = [line.split() for line in lines if line.startswith(" group 2")]
    assert row == ["group", "2", "9.00", "1.00", "1.10"]


def test_bars_and_lines() -> None:
    pytest.importorskip("matplotlib")
    figure = draw_report(training_report())
    [ax] = figure.axes
    assert sorted(bar.get_width() for bar in ax.patches) == [27.5, 55, 120]
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == "softmax fp32"
    bars, lines = draw_report(decoding_report()).axes
    assert len(bars.patches) == 2
    [line] = [line for line in lines.lines if line.get_label() == "rela-g fp32"]
    assert list(line.get_xdata()) == [4, 9]
    assert list(line.get_ydata()) == pytest.approx([1.0, 1.1])


def test_nothing_to_draw() -> None:
    pytest.importorskip("matplotlib")
    empty = SpeedReport(benchmark="train", settings=TRAINING, machine=MACHINE)
    with pytest.raises(ValueError, match="no round was measured"):
        draw_report(empty)
