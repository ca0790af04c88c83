"""The commands of training.py and decoding.py: options, files, resuming, missing peers."""

import csv
import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import decoding
import training
from relakit.bench.rounds import ContenderError
from runs import given_or, run_app, split_names, split_numbers
from toolkits import training_turns

SMALL = ("--size", "tiny", "--vocab", "400", "--attention", "softmax", "--rounds", "2")
TRAIN = ("train", *SMALL, "--steps", "1", "--batch-tokens", "100", "--precision", "fp32")
DECODE = (
    "decode", *SMALL, "--sentences", "2", "--batch-size", "2", "--groups", "0", "--beam", "2",
    "--precision", "fp32",
)  # fmt: skip


def bench(command: str, *arguments: str | Path) -> Result:
    app = {"train": training.app, "decode": decoding.app}[command]
    return CliRunner().invoke(app, list(map(str, arguments)))


def contenders(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row["contender"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("command", [TRAIN, DECODE], ids=["train", "decode"])
def test_files_and_peers_that_are_missing(
    command: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    json_file, csv_file = tmp_path / "out" / "speed.json", tmp_path / "out" / "speed.csv"
    plot_file = tmp_path / "out" / "speed.svg"
    options = (
        "--corpus", corpus, "--peers", "marian", "--peer-python", tmp_path / "nowhere", "--json",
        json_file, "--csv", csv_file, "--plot", plot_file,
    )  # fmt: skip
    result = bench(*command, *options)
    assert result.exit_code == 0, result.output
    assert "Did not run: marian fp32: not installed: there is no" in result.stdout
    assert contenders(csv_file) == ["softmax fp32", "marian fp32"]
    document = json.loads(json_file.read_text())
    assert document["benchmark"] == command[0]
    assert [len(case["rounds"]) for case in document["rounds"]] == [2]
    assert document["settings"]["vocabulary"] == 400
    assert plot_file.read_text().startswith("<?xml")

    again = bench(*command, *options)
    assert isinstance(again.exception, ValueError)
    assert "exists already: --resume continues it" in str(again.exception)
    resumed = bench(*command, *options, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert json.loads(json_file.read_text())["rounds"] == document["rounds"], "measured again"


def test_an_interrupted_run_goes_on(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "speed.json"
    real = training_turns.OwnTraining.run

    def run(self: training_turns.OwnTraining, case: str, number: int) -> object:
        if number == 1:
            raise KeyboardInterrupt
        return real(self, case, number)

    monkeypatch.setattr(training_turns.OwnTraining, "run", run)
    options = ("--corpus", corpus, "--peers", "none", "--json", path)
    assert bench(*TRAIN, *options).exit_code != 0
    [kept] = json.loads(path.read_text())["rounds"][0]["rounds"]
    monkeypatch.setattr(training_turns.OwnTraining, "run", real)
    assert bench(*TRAIN, *options, "--resume").exit_code == 0
    rounds = json.loads(path.read_text())["rounds"][0]["rounds"]
    assert len(rounds) == 2
    assert rounds[0] == kept


def test_peers_by_their_scripts(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "marian_worker.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'error': 'no ' + json.loads(line)['do']}), flush=True)\n"
    )
    place = ("--peer-python", sys.executable, "--peer-scripts", tmp_path)
    result = bench(*TRAIN, "--corpus", corpus, "--peers", "marian", *place)
    assert result.exit_code == 0, result.output
    assert "Did not run: marian fp32: no setup-train" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TRAIN, "--peers", "fairseq"), "unknown peer 'fairseq'"),
        ((*TRAIN, "--rounds", "0"), "rounds must be at least 1, got 0"),
        ((*TRAIN, "--resume"), "--resume needs --json"),
        ((*TRAIN, "--plot", "speed.txt"), "must end in .svg, .png, .pdf"),
        ((*TRAIN, "--corpus", "nowhere"), "nowhere"),
        ((*DECODE, "--batch-size", "many"), "--batch-size must be numbers such as 64,1"),
        ((*DECODE, "--model", "m"), "--model and --attention exclude each other"),
        (("decode", "--model", "nowhere"), "nowhere is no model directory"),
        ((*DECODE, "--free-length"), "random weights translate"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    result = bench(*arguments)
    assert isinstance(result.exception, ValueError | OSError), result.output
    assert message in str(result.exception)


def test_lists() -> None:
    assert split_names("a, b") == ("a", "b")
    assert split_names("none") == ()
    assert split_numbers("64,1", "--x") == (64, 1)


def test_quick_gives_way_to_what_is_given() -> None:
    assert given_or(None, 0, 10) == 10
    assert given_or(None, 3, 10) == 3
    assert given_or(7, 3, 10) == 7


@pytest.mark.parametrize("kind", [ValueError, OSError, ContenderError])
def test_errors_are_one_line(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        raise kind("rounds must be at least 1, got 0")

    monkeypatch.setattr(sys, "argv", ["fail"])
    monkeypatch.delenv("RELAKIT_DEBUG", raising=False)
    with pytest.raises(SystemExit) as end:
        run_app(app)
    assert end.value.code == 1
    assert capsys.readouterr().err == "error: rounds must be at least 1, got 0\n"
    monkeypatch.setenv("RELAKIT_DEBUG", "1")
    with pytest.raises(kind, match="at least 1"):
        run_app(app)
