"""The examples in the documentation and in examples/ run, and say what they say."""

import ast
import os
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_folders import write_model

from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLE = ROOT / "examples" / "sequence_task.py"
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
EXTRAS = {"huggingface.md": "transformers", "opusfilter.md": "opusfilter"}
"""What the examples of a page need besides relakit."""
PLACE = re.compile(r"`((?:src|native|tests|benchmarks|docs|examples|results)/[^`\s]*)`")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the examples run: two models under the paths that the pages use, and the results."""
    folder = tmp_path_factory.mktemp("checkout")
    for run in ("first", "mine"):
        (folder / "runs" / run).mkdir(parents=True)
        write_model(folder / "runs" / run / "model")
    chosen = ChosenOn(by="given")
    choice = AlignmentChoice(layer=0, heads=(0,), reading="normal", chosen=chosen)
    write_choice(folder / "runs" / "mine" / "model", choice)
    (folder / "results").symlink_to(ROOT / "results")
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_code_blocks_run(page: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page in order, in one namespace."""
    extra = EXTRAS.get(page.name)
    if extra is not None and not (extra == "transformers" and "RELAKIT_REQUIRE_HF" in os.environ):
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    monkeypatch.chdir(checkout)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in CODE.finditer(text):
        first_line = text[: block.start(1)].count("\n")
        source = "\n" * first_line + block[1]  # so that errors name the page's line
        exec(compile(source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_code_blocks_are_code(page: Path) -> None:
    """A block of comments alone could not fail."""
    blocks = CODE.findall(page.read_text(encoding="utf-8"))
    assert [block for block in blocks if not ast.parse(block).body] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_architecture_names_places_that_exist() -> None:
    places = PLACE.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    missing = [place for place in places if not list(ROOT.glob(place.rstrip("/")))]
    assert places
    assert not missing


def test_architecture_says_where_to_look() -> None:
    """Whatever the table says to look for is in one of the files that it names."""
    page = ARCHITECTURE.read_text(encoding="utf-8")
    table = page.partition("| question | file | look for |\n")[2].partition("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[1:]]
    assert len(rows) >= 13
    for question, files, names in rows:
        paths = [path for place in PLACE.findall(files) for path in ROOT.glob(place)]
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        for name in re.findall("`([^`]+)`", names):
            assert name in text, f"{question.strip()}: no {name} in {files.strip()}"


@pytest.fixture
def run_sequence_task(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """As a program, but in this process: another one takes seconds to import torch."""

    def run(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["sequence_task.py", *arguments])
        runpy.run_path(str(EXAMPLE), run_name="__main__")

    return run


def test_sequence_task_prints_its_table(
    run_sequence_task: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    run_sequence_task("--steps", "10", "--batch-size", "16", "--held-out", "20")
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:4]]
        for cells in (line.split("│") for line in capsys.readouterr().out.splitlines())
        if len(cells) == 5
    }
    for row in ("accuracy", "encoder sparsity", "decoder null rate", "cross null rate"):
        assert all(cell.endswith("%") for cell in rows[row]), row
    # softmax knows no zeros; ReLU has them from the start.
    assert rows["cross sparsity"][0] == "0.0%"
    assert float(rows["cross sparsity"][1].rstrip("%")) > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attention", "softmx"], "invalid choice: 'softmx' (choose from"),
        (["--steps", "0"], "must be at least 1"),
    ],
)
def test_sequence_task_rejects_bad_arguments(
    arguments: list[str],
    message: str,
    run_sequence_task: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_sequence_task(*arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
