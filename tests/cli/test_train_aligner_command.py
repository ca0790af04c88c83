"""`relakit train-aligner`, in this process."""

import json
from pathlib import Path

import pytest
from model_folders import write_model
from typer.testing import CliRunner

from relakit.align.aligner import Aligner
from relakit.align.pair_text import pair_of_texts
from relakit.cli.main import app
from relakit.data.generated import generate_pairs


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A corpus of 40 pairs, whose words have spaces around them, and their links."""
    pairs = list(generate_pairs(40))
    (tmp_path / "a.en").write_text("".join(f"{pair.source_text}\n" for pair in pairs))
    (tmp_path / "a.de").write_text("".join(f"{pair.target_text}\n" for pair in pairs))
    links = (" ".join(f"{s}-{t}" for s, t in sorted(pair.links)) for pair in pairs)
    (tmp_path / "a.links").write_text("".join(f"{line}\n" for line in links))
    return tmp_path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["train-aligner", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def files(text: Path) -> tuple[object, ...]:
    return "--source", text / "a.en", "--target", text / "a.de", "--epochs", 1


def test_one_model(text: Path) -> None:
    model = write_model(text / "model")
    output = run(model, *files(text))
    assert "4 pairs that were not trained on, against the links that were to be learnt" in output
    assert "aligner.safetensors" in output
    about = json.loads((model / "aligner.json").read_text())
    assert about["trained"]["files"] == [str(text / "a.en"), str(text / "a.de")]
    assert about["trained"]["by"] == "one model"
    assert Aligner.load(model).layer is not None


def test_links_and_gold_with_all_options(text: Path) -> None:
    model = write_model(text / "model")
    output = run(
        model, *files(text), "--words", "punctuation", "--links", text / "a.links",
        "--valid-source", text / "a.en", "--valid-target", text / "a.de",
        "--gold", text / "a.links", "--limit", 20, "--seed", 3, "--minutes", 5, "--threads", 1,
    )  # fmt: skip
    assert "40 pairs that were not trained on, against gold links" in output
    about = json.loads((model / "aligner.json").read_text())["trained"]
    assert (about["by"], about["pairs"], about["seed"]) == ("links", 20, 3)
    assert about["scores"]["against"] == "gold"


def test_aligning_uses_the_layer(text: Path) -> None:
    """Also without chosen heads; named heads are read instead."""
    model = write_model(text / "model")
    run(model, *files(text), "--words", "punctuation", "--links", text / "a.links")

    def align(*options: object) -> str:
        arguments = ["align", model, "--source", text / "a.en", "--target", text / "a.de", *options]
        result = CliRunner().invoke(app, [*map(str, arguments), "--workers", "1"])
        assert result.exit_code == 0, result.output
        return result.stdout

    with_layer, with_heads = align(), align("--layer", 0)
    pairs = [pair_of_texts(p.source_text, p.target_text) for p in generate_pairs(40)]
    expected = [one.links for one in Aligner.load(model).align(pairs)]
    assert [set(line.split()) for line in with_layer.splitlines()] == [
        {f"{source}-{target}" for source, target in links} for links in expected
    ]
    assert with_heads != with_layer


def test_left_out_pairs_are_reported(text: Path) -> None:
    model = write_model(text / "model")
    lines = (text / "a.en").read_text().splitlines()
    lines[3] = ""
    (text / "a.en").write_text("\n".join(lines) + "\n")
    assert "1 pairs are left out: no words on a side, or too many tokens" in run(
        model, *files(text)
    )
