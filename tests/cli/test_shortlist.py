"""`relakit shortlist`, and `relakit translate --shortlist`."""

from pathlib import Path

import pytest
from model_folders import TEXTS, write_model
from typer.testing import CliRunner

import relakit
from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.cli.main import app
from relakit.decode.shortlist import read_shortlist
from relakit.model.description import SHORTLIST_FILE
from relakit.ops.native.extension import why_unavailable


def run(*arguments: object, input: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    if isinstance(result.exception, ValueError | OSError):
        return 1, result.stdout, str(result.exception)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = write_model(tmp_path / "model")
    choice = AlignmentChoice(layer=0, heads=(0,), reading="normal", chosen=ChosenOn(by="given"))
    write_choice(folder, choice)
    return folder


@pytest.fixture
def text(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "text.en", tmp_path / "text.de"
    for path, sentence in zip(paths, TEXTS, strict=True):
        path.write_text(f"{sentence}\n\n" * 2, encoding="utf-8")
    return paths


def test_made_and_used(model: Path, text: tuple[Path, Path]) -> None:
    code, _, told = run("shortlist", model, "--source", text[0], "--target", text[1], "--best", 3)
    assert code == 0, told
    assert f"{model / SHORTLIST_FILE}, of 4 pairs: a sentence may have" in told
    made = read_shortlist(model)
    assert made.about.best == 3
    assert made.about.files == tuple(map(str, text))
    for precision in ("fp32",) if why_unavailable() else ("fp32", "int8"):
        command = ("translate", model, "--max-length", 8, "--precision", precision)
        code, listed, told = run(*command, "--shortlist", input=f"{TEXTS[0]}\n")
        assert code == 0, told
        assert listed != run(*command, input=f"{TEXTS[0]}\n")[1]
        translator = relakit.load(model, precision=precision, shortlist=True)
        assert translator.translate([TEXTS[0]], max_length=8) == listed.splitlines()


def test_translating_without_one(model: Path) -> None:
    code, _, told = run("translate", model, "--shortlist", input="A dog.\n")
    assert code == 1
    assert told.startswith(f"there is no {model / SHORTLIST_FILE}; make it from the training text")


def test_heads_must_have_been_chosen(text: tuple[Path, Path], tmp_path: Path) -> None:
    folder = write_model(tmp_path / "other")
    code, _, told = run("shortlist", folder, "--source", text[0], "--target", text[1])
    assert code == 1
    assert "relakit align" in told
    assert not (folder / SHORTLIST_FILE).exists()


@pytest.mark.parametrize("broken", ["a line too many", "a folder in the way"])
def test_errors_come_before_the_model_is_loaded(
    model: Path, text: tuple[Path, Path], broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "a line too many":
        text[1].write_text(text[1].read_text(encoding="utf-8") + "Ein Hund.\n", encoding="utf-8")
        problem = f"{text[0]} has 4 lines, {text[1]} has 5: line n of one must be the translation"
    else:
        (model / SHORTLIST_FILE).mkdir()
        problem = f"{model / SHORTLIST_FILE} cannot be written: it is a folder"
    monkeypatch.setattr("relakit.align.aligner.Aligner.load", None)
    options = ("--source", text[0], "--target", text[1], "--limit", 2)
    code, _, told = run("shortlist", model, *options)
    assert code == 1
    assert told.startswith(problem)


def test_texts_without_words(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n\n", encoding="utf-8")
    code, _, told = run(
        "shortlist", model, "--source", tmp_path / "empty", "--target", tmp_path / "empty"
    )
    assert code == 1
    assert told.endswith("has no text: all its 2 lines are blank")
    assert not (model / SHORTLIST_FILE).exists()
