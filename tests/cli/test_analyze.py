"""`relakit analyze`: what it writes and prints, and what it says about bad input."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from model_folders import write_model

from relakit.analysis import AlignmentResult
from relakit.analysis.results import ModelAnalysis
from relakit.cli import main as cli
from relakit.report import figures, report_folder

SOURCES = ["A small dog runs.", "The old bridge", "A dog runs across.", "It is old."]
TARGETS = ["Ein kleiner Hund läuft.", "Die alte Brücke", "Ein Hund läuft darüber.", "Es ist alt."]
LINKS = ["0-0 1-1 2-2 3-3 4-4", "0-0 1-1 2-2", "0-0 1-1 2-2 3?3", "0-0 1-1 2-2"]
TAGS = ["DET ADJ NOUN VERB PUNCT", "DET ADJ NOUN", "DET NOUN VERB ADV PUNCT", "PRON VERB ADJ PUNCT"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("analyze") / "run"
    run.mkdir()
    return write_model(run / "model")


@pytest.fixture
def with_figures() -> None:
    """For tests that want them: they take seconds."""


@pytest.fixture(autouse=True)
def _no_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "with_figures" not in request.fixturenames:
        monkeypatch.setattr(
            report_folder, "why_no_figures", lambda: "pip install 'relakit[report]'"
        )


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"source": SOURCES, "target": TARGETS, "gold": LINKS, "tags": TAGS}
    paths = {}
    for name, lines in texts.items():
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Analyze = Callable[..., Outcome]


@pytest.fixture
def analyze(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Analyze:
    """Run the command."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setenv("COLUMNS", "160")
        monkeypatch.setattr(sys, "argv", ["relakit", "analyze", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return Outcome(int(caught.value.code or 0), *capsys.readouterr())

    return run


def options(files: dict[str, Path], *names: str) -> list[object]:
    return [part for name in names for part in (f"--{name}", files[name])]


@pytest.mark.usefixtures("with_figures")
def test_everything_is_written(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    analyze: Analyze,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))  # each takes a second or two
    out = tmp_path / "out"
    arguments = options(files, "source", "target", "gold", "tags")
    printed = analyze(model, *arguments, "--compare", model, "--out", out)
    assert printed.status == 0, printed.err
    assert "4 pairs." in printed.out
    assert f"with 4 sentences to explore: {out / 'report.html'}" in printed.out
    rows = [line.split() for line in printed.out.splitlines() if line.startswith("run ")]
    assert len(rows) == 2
    first = ModelAnalysis.read(out / "analysis-1.json")
    assert (first.name, first.pairs) == ("run 1", 4)
    assert first.classes.origin == "tags"
    assert isinstance(first.alignment, AlignmentResult)
    assert rows[0][2] == f"{first.bleu:.1f}"
    best = first.alignment.best_score(first.alignment.best_reading)
    assert rows[0][-3] == f"{best.aer:.2f}"
    with open(out / "tables" / "sparsity.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert {row["model"] for row in table} == {"run 1", "run 2"}
    assert float(table[0]["value"]) == first.kind("encoder").sparsity[0][0]
    assert (out / "figures" / "figure-6.svg").exists()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert TARGETS[0] in page
    for block in ("view-1-3", "own-1-3", "links-1"):
        assert f'id="{block}"' in page


def test_without_gold_and_translations(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    analyze: Analyze,
) -> None:
    out = tmp_path / "out"
    arguments = [*options(files, "source", "target"), "--out", out, "--no-translate"]
    status, printed, _ = analyze(model, *arguments, "--explore", "2", "--limit", "3")
    assert status == 0
    assert "There is no --gold" in printed
    assert "3 pairs." in printed
    assert "with 2 sentences" in printed
    analysis = ModelAnalysis.read(out / "analysis.json")
    assert (analysis.pairs, analysis.bleu, analysis.alignment) == (3, None, None)
    assert analysis.classes.origin == "token classes"


def test_pairs_that_are_too_long(
    model: Path, files: dict[str, Path], tmp_path: Path, analyze: Analyze
) -> None:
    out = tmp_path / "out"
    lines = [SOURCES[0], *["dog " * 3000] * 7, *SOURCES[1:]]
    files["source"].write_text("".join(f"{line}\n" for line in lines))
    files["target"].write_text("".join(f"{line}\n" for line in [*["Hund"] * 7, *TARGETS]))
    arguments = [*options(files, "source", "target"), "--out", out, "--no-translate"]
    problem = (
        f"{files['source']}, lines 2, 3, 4, 5, 6 and 2 more: more than 1,024 tokens on a side; "
    )
    refused = analyze(model, *arguments, "--too-long", "error")
    assert refused.status == 1
    assert f"relakit: error: {problem}leave them out with --too-long skip, or " in refused.err
    assert not out.exists()
    status, printed, told = analyze(model, *arguments)
    assert status == 0
    assert "4 pairs." in printed
    assert f"relakit: {problem}left out (--max-tokens)\n" in told
    analysis = ModelAnalysis.read(out / "analysis.json")
    assert analysis.inputs["left out"] == "7 pairs with more than 1,024 tokens on a side"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--temperatures", "1,a"], "--temperatures must be numbers"),
        (
            ["--temperatures", "1,1"],
            "--temperatures must be numbers above 0 that differ in their first six digits, got "
            "'1,1'",
        ),
        (["--temperatures", "1,inf"], "--temperatures must be numbers above 0 that differ"),
        (["--confidence", "2"], "--confidence must be between 0 and 1, got 2.0"),
        (["--seed", "-1"], "--seed must not be negative, got -1"),
        (["--tags", "nowhere"], "--tags nowhere: there is no such file"),
        (["--name", "a", "--name", "b"], "there are 1 model and 2 names; give one --name for each"),
        (["--tags", "x", "--tagger", "y"], "--tags and --tagger exclude each other"),
        (["--tags", "/"], "--tags / is a folder; name a file"),
        (["--too-long", "crop"], "--too-long must be skip or error, got 'crop'"),
        (["--gold-format", "moses"], "unknown format 'moses'; choose one of auto, pharaoh"),
    ],
)
def test_options_that_cannot_be(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    analyze: Analyze,
    more: list[str],
    message: str,
) -> None:
    out = tmp_path / "out"
    arguments = [*options(files, "source", "target", "gold"), "--out", out, *more]
    outcome = analyze(model, *arguments)
    assert outcome.status == 1
    assert f"relakit: error: {message}" in outcome.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("target", "", "source.txt has 4 lines, {path} has 3"),
        ("gold", "0-0 9-1\n", "{path}, line 4: the link of source word 9 and target word 1"),
        ("gold", "x\n", "{path}, line 4: 'x' is not a link"),
        ("gold", "", "source.txt has 4 lines, {path} has 3: line n of the links"),
        ("tags", "NOUN\n", "{path}, line 4: it has 1 tag, the target has 4 words"),
    ],
)
def test_broken_files(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    analyze: Analyze,
    name: str,
    line: str,
    message: str,
) -> None:
    lines = files[name].read_text(encoding="utf-8").splitlines(keepends=True)
    files[name].write_text("".join(lines[:-1]) + line, encoding="utf-8")
    arguments = [*options(files, "source", "target", "gold", "tags"), "--out", tmp_path / "out"]
    outcome = analyze(model, *arguments)
    assert outcome.status == 1
    assert message.format(path=files[name]) in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("lines", ["\n\n\n\n", "0?0\n1?1\n\n\n"])
def test_gold_without_a_sure_link(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    analyze: Analyze,
    lines: str,
) -> None:
    files["gold"].write_text(lines)
    arguments = [*options(files, "source", "target", "gold"), "--out", tmp_path / "out"]
    outcome = analyze(model, *arguments)
    assert outcome.status == 1
    assert f"{files['gold']} has no sure link in 4 pairs" in outcome.err


def test_columns_of_one_file_with_empty_ones(
    model: Path,
    tmp_path: Path,
    analyze: Analyze,
) -> None:
    pairs = tmp_path / "pairs.tsv"
    lines = [f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)]
    pairs.write_text("".join([*lines, "\t\n", "A dog\t\n"]), encoding="utf-8")
    out = tmp_path / "out"
    outcome = analyze(model, "--source", pairs, "--out", out, "--no-translate")
    assert outcome.status == 0
    assert "2 pairs with an empty side" in outcome.err
    assert ModelAnalysis.read(out / "analysis.json").pairs == 6


@pytest.mark.usefixtures("with_figures")
def test_one_short_pair_and_a_name_with_brackets(
    model: Path,
    tmp_path: Path,
    analyze: Analyze,
) -> None:
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "[x]y"
    pairs.write_text("Hi.\tHallo.\n")
    status, printed, _ = analyze(model, "--source", pairs, "--out", out, "--name", "a[/]b")
    assert status == 0
    assert "a[/]b" in printed
    assert f"1 pair. Numbers in {out}/*.json" in printed
    assert f"with 1 sentence to explore: {out / 'report.html'}" in printed


class TestFolder:
    def test_an_earlier_analysis_is_replaced(
        self,
        model: Path,
        files: dict[str, Path],
        tmp_path: Path,
        analyze: Analyze,
    ) -> None:
        out = tmp_path / "out"
        arguments = [*options(files, "source", "target"), "--out", out, "--no-translate"]
        gold = options(files, "gold")
        assert analyze(model, *arguments, *gold, "--compare", model).status == 0
        assert (out / "tables" / "alignment.csv").exists()
        assert analyze(model, *arguments).status == 0
        assert not (out / "tables" / "alignment.csv").exists()
        assert [path.name for path in out.glob("*.json")] == ["analysis.json"]
        assert [path.name for path in tmp_path.glob(".*")] == []

    def test_anything_else_is_kept(
        self,
        model: Path,
        files: dict[str, Path],
        tmp_path: Path,
        analyze: Analyze,
    ) -> None:
        arguments = [*options(files, "source", "target"), "--out", tmp_path]
        outcome = analyze(model, *arguments)
        assert outcome.status == 1
        assert "which would be lost; choose another folder" in outcome.err
        assert files["source"].exists()

    def test_one_that_cannot_be_written(
        self,
        model: Path,
        files: dict[str, Path],
        analyze: Analyze,
    ) -> None:
        arguments = [*options(files, "source", "target"), "--out", "/proc/analysis"]
        outcome = analyze(model, *arguments)
        assert outcome.status == 1
        assert "/proc/analysis cannot be written: " in outcome.err


def test_without_matplotlib(
    model: Path,
    files: dict[str, Path],
    tmp_path: Path,
    analyze: Analyze,
) -> None:
    arguments = [*options(files, "source", "target"), "--out", tmp_path / "out", "--no-translate"]
    outcome = analyze(model, *arguments)
    assert outcome.status == 0
    assert "No figures: pip install 'relakit[report]'" in outcome.out
    assert not (tmp_path / "out" / "figures").exists()


def test_a_file_is_no_folder(
    model: Path,
    files: dict[str, Path],
    analyze: Analyze,
) -> None:
    arguments = [*options(files, "source", "target"), "--out", files["tags"]]
    outcome = analyze(model, *arguments)
    assert outcome.status == 1
    assert "is a file; a report needs a folder" in outcome.err
