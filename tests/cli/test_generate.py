"""`relakit generate`: a corpus that the other commands read, and how it refuses."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_folders import write_model

from relakit.cli import main as cli
from relakit.data.generated import generate_pairs
from relakit.data.prepared_reader import PreparedCorpus
from relakit.report import report_folder

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["relakit", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return int(caught.value.code or 0)

    return run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "new" / "corpus"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_splits_and_summary(run: Run, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", out, "--pairs", 30, "--split", "test=4", "--seed", 3) == 0
    expected = list(generate_pairs(30, seed=3))
    assert lines(out / "train.en") == [pair.source_text for pair in expected]
    assert [len(lines(out / f"{split}.de")) for split in ("train", "valid", "test")] == [30, 500, 4]
    assert not (out / "train.noise").exists()
    printed = capsys.readouterr()
    rows = [line.split() for line in printed.out.splitlines()]
    words = [f"{sum(len(pair.source) for pair in expected)}"]
    assert rows[0] == ["split", "pairs", "source", "words", "target", "words", "links"]
    assert rows[1][:3] == ["train", "30", *words]
    assert rows[3][:2] == ["test", "4"]
    assert printed.out.endswith(f"The corpus is in {out}.\n")
    assert printed.err == ""


def test_noise_and_its_labels(run: Run, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = ("--noise", "copied=0.25", "--noise", "truncated=0.25")
    small = ("--pairs", 200, "--split", "valid=0", "--split", "test=0")
    assert run("generate", out, *small, *noise) == 0
    kinds = [line.partition("\t")[0] for line in lines(out / "train.noise")]
    assert len(kinds) == 200
    assert set(kinds) == {"clean", "copied", "truncated"}
    copied = [number for number, kind in enumerate(kinds) if kind == "copied"]
    sources, targets = lines(out / "train.en"), lines(out / "train.de")
    assert all(sources[number] == targets[number] for number in copied)
    header, row, _ = capsys.readouterr().out.splitlines()
    assert header.split()[-2:] == ["copied", "truncated"]
    assert row.split()[-2:] == [str(len(copied)), str(kinds.count("truncated"))]
    assert not (out / "valid.en").exists()


def test_an_earlier_corpus_is_replaced_by_force_only(
    run: Run, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("--pairs", 3, "--split", "valid=0", "--split", "test=0")
    assert run("generate", out, *small) == 0
    before = lines(out / "train.en")
    capsys.readouterr()
    assert run("generate", out, *small, "--seed", 2) == 1
    error = f"relakit: error: {out} holds a generated corpus already; --force replaces it"
    assert capsys.readouterr().err.startswith(error)
    assert lines(out / "train.en") == before
    assert run("generate", out, *small, "--seed", 2, "--force") == 0
    assert lines(out / "train.en") != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "0"], "--pairs must be at least 1, got 0"),
        (["--pairs", "9", "--seed", "-1"], "--seed must not be negative, got -1"),
        (["--pairs", "9", "--split", "dev=3"], "--split dev=3: unknown split 'dev'; choose one of"),
        (["--pairs", "9", "--split", "train=3"], "--pairs sets the size of train; --split is for"),
        (["--pairs", "9", "--split", "test=-3"], "--split test=-3: the size must not be negative"),
        (["--pairs", "9", "--split", "test"], "--split needs a name and a number, such as test="),
        (
            ["--pairs", "9", "--noise", "typos=0.1"],
            "--noise typos=0.1: unknown noise 'typos'; choose one of shuffled, inserted, "
            "truncated, language, copied\n",
        ),
        (
            ["--pairs", "9", "--noise", "copied"],
            "--noise needs a name and a number, such as shuffled=0.1, got 'copied'",
        ),
        (
            ["--pairs", "9", "--noise", "copied=0.1", "--noise", "copied=0.2"],
            "--noise copied is given twice",
        ),
        (
            ["--pairs", "9", "--noise", "copied=0.7", "--noise", "shuffled=0.4"],
            "--noise: the shares of noisy pairs must not exceed 1 together, got 0.7 + 0.4",
        ),
        (
            ["--pairs", "9", "--noise", "copied=7"],
            "--noise: the share of copied pairs must be from 0 to 1, got 7.0",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str],
    message: str,
    run: Run,
    out: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("generate", out, *arguments) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"relakit: error: {message}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not out.parent.exists()


def test_a_folder_with_something_else(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.en").write_text("mine\n")
    assert run("generate", tmp_path, "--pairs", 3, "--force") == 1
    assert "holds 'train.en', which is not part of a generated corpus" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["train.en"]


def test_a_terminal_shows_what_is_being_done(
    run: Run, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    assert run("generate", out, "--pairs", 3, "--split", "valid=0", "--split", "test=2") == 0
    assert "generating test" in capsys.readouterr().err


def test_prepare_and_analyze_read_it(
    run: Run, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = ("--pairs", 60, "--split", "valid=5", "--split", "test=5")
    assert run("generate", out, *sizes, "--noise", "inserted=0.5") == 0
    languages = ("--source-lang", "en", "--target-lang", "de")
    prepared = tmp_path / "prepared"
    assert run("prepare", prepared, "--folder", out, *languages, "--vocab-size", 300) == 0
    corpus = PreparedCorpus.load(prepared)
    assert [len(corpus.split(name)) for name in ("train", "valid", "test")] == [60, 5, 5]

    monkeypatch.setattr(report_folder, "why_no_figures", lambda: "they take seconds")
    model = write_model(tmp_path / "model")
    for split, pairs in (("test", 5), ("train", 60)):  # clean, and with noise
        files = (
            *("--source", out / f"{split}.en", "--target", out / f"{split}.de"),
            *("--gold", out / f"{split}.links", "--tags", out / f"{split}.de.tags"),
        )
        results = tmp_path / split
        assert run("analyze", model, *files, "--no-translate", "--out", results) == 0
        analysis = json.loads((results / "analysis.json").read_text(encoding="utf-8"))
        assert analysis["pairs"] == pairs
        assert analysis["alignment"] is not None
