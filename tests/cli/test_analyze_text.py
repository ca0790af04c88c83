"""`relakit analyze-text`: what it writes and prints, and what it says about bad input."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tiny_hf_models import ARCHITECTURES
from tiny_tokenizers import word_tokenizer

import relakit.hf
from relakit.analysis.results import ModelAnalysis
from relakit.cli import main as cli
from relakit.report import report_folder


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A converted model, its twin with softmax, one that was not converted, and others."""
    folder = tmp_path_factory.mktemp("models")
    kinds = {"rela": ("gpt2", "rela-g"), "softmax": ("gpt2", "softmax"), "plain": ("bert", None),
             "vision": ("vit", "rela-g")}  # fmt: skip
    for name, (architecture, attention) in kinds.items():
        model = ARCHITECTURES[architecture].build()
        if attention is not None:
            relakit.hf.convert(model, attention)
        model.save_pretrained(folder / name)
        word_tokenizer().save_pretrained(folder / name)
    shutil.copytree(folder / "rela", folder / "mute", ignore=shutil.ignore_patterns("token*"))
    shutil.copytree(folder / "rela", folder / "cut")
    weights = folder / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    return folder


@pytest.fixture
def run(
    folders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run it in the folder of the models, with a text and ``--out``."""
    monkeypatch.chdir(folders)
    monkeypatch.setattr(report_folder, "why_no_figures", lambda: "pip install 'relakit[report]'")

    def do(model: str, *options: str, lines: str = "w3 w4 w5\n\nw6 w7\n") -> Outcome:
        text = tmp_path / "text.txt"
        text.write_text(lines)
        arguments = [model, "--text", str(text), "--out", str(tmp_path / "out"), *options]
        monkeypatch.setattr(sys, "argv", ["relakit", "analyze-text", *arguments])
        status: Any = 0
        try:
            cli.main()
        except SystemExit as end:
            status = end.code or 0
        return Outcome(status, *capsys.readouterr())

    return do


def test_two_models(run: Run, tmp_path: Path) -> None:
    outcome = run("rela", "--compare", "softmax", "--title", "Two models")
    assert outcome.status == 0, outcome.err
    assert "2 texts. Numbers in" in outcome.out
    assert "2 texts to explore" in outcome.out
    analyses = [ModelAnalysis.read(tmp_path / "out" / f"analysis-{n}.json") for n in (1, 2)]
    assert [(a.name, a.main.attention) for a in analyses] == [
        ("rela", "rela-g"), ("softmax", "softmax"),
    ]  # fmt: skip
    assert analyses[0].source_tokens == 5
    assert analyses[0].inputs["texts"].endswith("text.txt")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Two models" in page
    assert outcome.err == ""


def test_options(run: Run, tmp_path: Path) -> None:
    outcome = run(
        "plain", "--unconverted", "--name", "BERT", "--limit", "1", "--where", "*layer.1.*",
        "--temperatures", "0.5", "--explore", "0",
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    analysis = ModelAnalysis.read(tmp_path / "out" / "analysis.json")
    assert (analysis.name, analysis.pairs, analysis.main.layers) == ("BERT", 1, 1)
    assert analysis.main.attention == "softmax"
    assert "0 texts to explore" in outcome.out


def test_the_tokenizer_of_another_folder(run: Run) -> None:
    assert run("mute", "--tokenizer", "rela").status == 0


def test_long_texts(run: Run, tmp_path: Path) -> None:
    lines = f"w3 w4\n{'w5 ' * 70}\n{'w6 ' * 80}\n"
    outcome = run("rela", lines=lines)
    assert outcome.err.count("\n") == 1
    assert (
        "text.txt, line 2: it has 70 tokens, but the model has 64 positions; split the text, or "
        "leave it out with --too-long skip"
    ) in outcome.err
    assert not (tmp_path / "out").exists()
    outcome = run("rela", "--too-long", "skip", lines=lines)
    assert outcome.status == 0
    assert "left out: " in outcome.err
    assert "(1 more text like it)" in outcome.err
    assert ModelAnalysis.read(tmp_path / "out" / "analysis.json").pairs == 1


@pytest.mark.parametrize(
    ("model", "options", "problem"),
    [
        ("plain", [], "plain was not converted: convert the model with relakit.hf.convert and"),
        ("vision", [], "ViTForImageClassification reads pixel_values, not text"),
        ("mute", [], "mute has no tokenizer; save it there with tokenizer.save_pretrained('mute')"),
        ("cut", [], "cut cannot be loaded: its weights (*.safetensors) are damaged or cut short"),
        ("bert-base-uncased", [], "bert-base-uncased is no folder; give one that save_pretrained"),
        ("rela", ["--where", "*none*"], "no attention module is called '*none*'"),
        ("rela", ["--device", "warp"], "device 'warp' cannot be used: there is no such kind"),
        ("rela", ["--compare", "rela", "--name", "a"], "there are 2 models and 1 name"),
        ("rela", ["--too-long", "cut"], "--too-long must be skip or error, got 'cut'"),
        ("rela", ["--tokenizer", "none"], "--tokenizer none: there is no such folder"),
    ],
)  # fmt: skip
def test_bad_input(run: Run, tmp_path: Path, model: str, options: list[str], problem: str) -> None:
    outcome = run(model, *options)
    assert outcome.status == 1
    assert outcome.err.startswith(f"relakit: error: {problem}")
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_transformers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("relakit.hf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(relakit, "hf", raising=False)
    monkeypatch.setitem(sys.modules, "transformers", None)
    outcome = run("rela")
    assert outcome.status == 1
    assert (
        "needs the package transformers; install it with pip install 'relakit[hf]'" in outcome.err
    )
    assert outcome.err.count("\n") == 1


def test_weights_that_are_not_in_the_folder_are_named(
    run: Run, folders: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(folders / "plain", other)
    config = json.loads((other / "config.json").read_text())
    config["num_hidden_layers"] = 3
    (other / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="has no weights for .* parameters, which are random now"):
        assert run(str(other), "--unconverted").status == 0
