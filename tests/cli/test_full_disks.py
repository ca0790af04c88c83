"""Commands on a disk that is full at any one step: one line, nothing half written, and again.

The step that fails moves on by one until the command gets through.
"""

import errno
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_system import failing
from model_folders import write_model

from relakit.cli import main as cli
from relakit.files.leftovers import is_unfinished
from relakit.report import report_folder

Run = Callable[..., tuple[int, str]]
RECIPE = """
data = {{ prepared = "{}" }}
model = {{ size = "tiny", dim = 16, heads = 2, encoder_layers = 1, decoder_layers = 1 }}
training = {{ updates = 3, update_tokens = 50, checkpoint_every = 1, keep = 2, threads = 1 }}
"""
MANY = 400
"""More steps than any command here takes."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; its status, and what it says on standard error."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["relakit", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return int(caught.value.code or 0), capsys.readouterr().err

    return run


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for language, line in {"en": "A small dog runs.", "de": "Ein kleiner Hund läuft."}.items():
        paths[language] = tmp_path / f"text.{language}"
        paths[language].write_text(f"{line}\n" * 6, encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("full") / "model")


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if is_unfinished(path.relative_to(folder))]


def check_line(text: str, out: Path) -> None:
    lines = text.splitlines()
    assert lines[-1].startswith(f"relakit: error: {out}"), text
    assert " cannot be written: no space is left on the disk" in lines[-1]
    assert not any("Errno" in line or "Traceback" in line for line in lines)
    assert sum("error" in line for line in lines) == 1


def until_it_succeeds(run: Run, arguments: list[object], out: Path) -> int:
    """Fail at each step in turn; returns how many there were. What is there then is whole."""
    for fail_at in range(1, MANY):
        with failing(fail_at) as system:
            status, text = run(*arguments)
        assert leftovers(out.parent) == []
        if not system.has_failed:
            assert status == 0, text
            return fail_at - 1
        assert status == 1, text
        check_line(text, out)
        if out.exists():
            return fail_at  # only the last step comes after it has its name
    raise AssertionError("there is no end of steps")


def test_prepare(run: Run, texts: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "made" / "prepared"
    arguments = ["prepare", out, "--train", texts["en"], texts["de"], "--vocab-size", 300]
    steps = until_it_succeeds(run, arguments, out)
    assert steps > 30
    assert (out / "corpus.json").is_file()


def test_generate(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "made" / "generated"
    arguments = ["generate", out, "--pairs", 3, "--split", "valid=0", "--split", "test=0"]
    assert until_it_succeeds(run, arguments, out) > 20


def test_translate(run: Run, model: Path, texts: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "made" / "out.de"
    arguments = ["translate", model, "--input", texts["en"], "--output", out, "--max-length", 2]
    assert until_it_succeeds(run, arguments, out) >= 5
    assert len(out.read_text(encoding="utf-8").splitlines()) == 6


def test_evaluate(run: Run, model: Path, texts: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "made" / "out.de"
    files = ["--source", texts["en"], "--reference", texts["de"]]
    arguments = ["evaluate", model, *files, "--output", out, "--max-length", 2]
    assert until_it_succeeds(run, arguments, out) >= 5
    assert len(out.read_text(encoding="utf-8").splitlines()) == 6


def test_analyze(
    run: Run,
    model: Path,
    texts: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report_folder, "why_no_figures", lambda: "they take seconds")
    out = tmp_path / "made" / "analysis"
    files = ["--source", texts["en"], "--target", texts["de"], "--limit", 1]
    arguments = ["analyze", model, *files, "--no-translate", "--out", out]
    # Many tables are written alike: the first steps, then every seventh.
    for fail_at in (*range(1, 12), *range(12, MANY, 7)):
        with failing(fail_at) as system:
            status, text = run(*arguments)
        assert leftovers(tmp_path) == []
        if not system.has_failed:
            assert status == 0, text
            break
        assert status == 1
        check_line(text, out)
    assert fail_at > 30
    assert (out / "report.html").is_file()


def test_train(run: Run, texts: dict[str, Path], tmp_path: Path) -> None:
    """After each failure the run goes on where it was, until it is finished."""
    corpus, recipe, out = (tmp_path / name for name in ("corpus", "small.toml", "made/run"))
    run("prepare", corpus, "--train", texts["en"], texts["de"], "--vocab-size", 300)
    recipe.write_text(RECIPE.format(corpus), encoding="utf-8")
    failures, finished = 0, False
    for fail_at in range(1, MANY):
        resumed = ["--resume"] if (out / "recipe.json").exists() else []
        with failing(fail_at) as system:
            status, text = run("train", recipe, "--out", out, *resumed)
        assert leftovers(tmp_path) == []
        assert not (out / ".lock").exists()
        if status == 0:
            finished = True
            if not system.has_failed:
                break
            # Only what a log could not write is no reason to stop.
            assert "The run continues; what it logs is kept in memory" in text
            continue
        failures += 1
        assert status == 1
        check_line(text, out)
        assert f", then relakit train --resume --out {out}" in text or not resumed
    assert finished
    assert failures > 30
    lines = map(json.loads, (out / "log.jsonl").read_text().splitlines())
    assert [entry["update"] for entry in lines] == [1, 2, 3]
    assert json.loads((out / "result.json").read_text())["verdict"] == "finished"
    assert (out / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "its file system is read-only; choose another place"),
        (errno.EACCES, "permission denied; choose another place"),
    ],
)
def test_other_reasons(
    run: Run, texts: dict[str, Path], tmp_path: Path, number: int, reason: str
) -> None:
    out = tmp_path / "prepared"
    arguments = ["prepare", out, "--train", texts["en"], texts["de"], "--vocab-size", 300]
    for fail_at in (1, 2, 5, 9):
        with failing(fail_at, number):
            status, text = run(*arguments)
        assert status == 1
        assert f" cannot be written: {reason}" in text
        assert text.startswith(f"relakit: error: {out}")
    assert leftovers(tmp_path) == []
    assert not out.exists()
