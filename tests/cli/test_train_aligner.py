"""`relakit train-aligner`, in this process."""

import json
import re
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


WORDS = ("--words", "punctuation")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["train-aligner", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def files(text: Path) -> tuple[object, ...]:
    quick = "--epochs", 1, "--force"
    return "--source", text / "a.en", "--target", text / "a.de", *quick


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

    with_layer, with_heads = align(), align("--layer", 1)
    pairs = [pair_of_texts(p.source_text, p.target_text) for p in generate_pairs(40)]
    expected = [one.links for one in Aligner.load(model).align(pairs)]
    assert [set(line.split()) for line in with_layer.splitlines()] == [
        {f"{source}-{target}" for source, target in links} for links in expected
    ]
    assert with_heads != with_layer


def test_no_heads_are_chosen_where_a_layer_is_used(text: Path) -> None:
    """Nor are pairs needed to choose them on; each model has its own layer or heads."""
    model, other = write_model(text / "model"), write_model(text / "o", source="de", target="en")
    run(model, *files(text), "--reverse", other, "--links", text / "a.links", *WORDS)

    def align(*options: object) -> tuple[str, str]:
        pairs = ("--source", text / "a.en", "--target", text / "a.de", *options)
        result = CliRunner().invoke(app, ["align", str(model), *map(str, pairs), "--workers", "1"])
        assert result.exit_code == 0, result.output
        return result.stdout, result.stderr

    assert align()[1] == align("--reverse", other)[1] == ""
    assert not (model / "alignment.json").exists()
    assert not (other / "alignment.json").exists()
    assert align("--reverse", other, "--layer", 1)[1] == "", "the other model's layer is used"
    (other / "aligner.json").unlink()
    assert "nobody has chosen yet" in align("--reverse", other, "--layer", 1)[1]
    for name in ("a.en", "a.de"):
        (text / name).write_text("\n" * 500 + "dog\n")
    out, errors = align()
    assert (out.count("\n"), errors) == (501, "")


def test_choosing_heads_beside_a_layer(text: Path) -> None:
    model = write_model(text / "model")
    run(model, *files(text))
    pairs = ("--source", text / "a.en", "--target", text / "a.de")
    result = CliRunner().invoke(app, ["align", str(model), "--select", *map(str, pairs)])
    assert result.exit_code == 0
    assert "has an alignment layer, which is read instead of these heads" in result.stderr


def test_a_layer_that_learnt_little_is_refused(text: Path) -> None:
    model = write_model(text / "model")
    before = {path: path.read_bytes() for path in model.iterdir()}
    arguments = ["train-aligner", model, *files(text)]
    result = CliRunner().invoke(app, [*map(str, arguments[:-1])])
    problem = r"in its exam on 4 pairs its alignment error rate is 0\.\d+, above 0\.5"
    assert re.search(problem, str(result.exception))
    assert {path: path.read_bytes() for path in model.iterdir()} == before
    assert "layer so far" not in run(*arguments[1:])
    assert re.search(r"layer so far\s+\d\.\d{3}", run(*arguments[1:]))


def test_left_out_pairs_are_reported(text: Path) -> None:
    model = write_model(text / "model")
    lines = (text / "a.en").read_text().splitlines()
    lines[3] = ""
    (text / "a.en").write_text("\n".join(lines) + "\n")
    assert "1 pairs are left out: no words on a side, or too many tokens" in run(
        model, *files(text)
    )
