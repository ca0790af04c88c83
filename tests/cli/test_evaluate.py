import json
import sys
from pathlib import Path

import pytest
from model_folders import write_model

import relakit
from relakit.cli import main as cli
from relakit.metrics.bleu import bleu_score, corpus_score

REFERENCES = ["A small dog runs across the bridge.", "The old man sees a tree.", "It rains today."]
OUTPUTS = ["A small dog walks across the bridge.", "The old man sees a house.", "It rains today."]
SOURCES = ["Ein kleiner Hund läuft über die Brücke.", "Der alte Mann sieht einen Baum.", "Regen."]


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return written(tmp_path / "reference.txt", REFERENCES)


def test_a_file_is_no_model(
    reference: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor are its lines taken for translations: that is what --hypothesis is for."""
    assert evaluate(monkeypatch, output, "--source", output, "--reference", reference) == 1
    assert "is no model directory" in capsys.readouterr().err


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return written(tmp_path / "output.txt", OUTPUTS)


def evaluate(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["relakit", "evaluate", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_scores_of_a_file(
    reference: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert evaluate(monkeypatch, "--hypothesis", output, "--reference", reference) == 0
    printed = capsys.readouterr().out
    assert f"{bleu_score(OUTPUTS, REFERENCES).score:.2f}" in printed
    assert f"{corpus_score('chrF', OUTPUTS, REFERENCES).score:.2f}" in printed
    assert bleu_score(OUTPUTS, REFERENCES).signature in printed
    assert "tok:intl|smooth:none" in printed
    assert "3 sentences." in printed


@pytest.fixture
def compared(tmp_path: Path, reference: Path, output: Path) -> tuple[object, ...]:
    """Options that compare an output with a baseline."""
    baseline = written(tmp_path / "baseline.txt", ["A dog.", "The old man sees.", "It rains now."])
    return ("--hypothesis", output, "--reference", reference, "--baseline", baseline)


def test_comparison_with_a_baseline(
    compared: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert evaluate(monkeypatch, *compared, "--json", "--samples", 50) == 0
    content = json.loads(capsys.readouterr().out)
    assert [score["name"] for score in content["scores"]] == ["BLEU", "chrF", "tokenised BLEU"]
    bleu, chrf, tokenised = content["comparison"]
    assert tokenised["metric"] == "tokenised BLEU"
    assert bleu["difference"] > 0
    assert 0 < chrf["p_value"] <= 1
    assert evaluate(monkeypatch, *compared, "--samples", 50) == 0
    printed = capsys.readouterr().out
    assert f"+{bleu['difference']:.2f}" in printed
    assert bleu["signature"] in printed


def test_metrics_by_name(
    compared: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--metric", "ter", "--metric", "chrF++", "--samples", 20)
    assert evaluate(monkeypatch, *compared, *options, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert [score["name"] for score in content["scores"]] == ["TER", "chrF++"]
    assert [both["metric"] for both in content["comparison"]] == ["TER", "chrF++"]
    assert content["comparison"][0]["difference"] < 0, "of TER less is better"
    assert evaluate(monkeypatch, *compared, *options) == 0
    printed = capsys.readouterr().out
    assert "Of TER less is better" in printed
    assert corpus_score("TER", OUTPUTS, REFERENCES).signature in printed


def test_several_references(
    tmp_path: Path,
    reference: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = ["A small dog walks across the bridge.", "The old man looks at a house.", "Rain!"]
    second = written(tmp_path / "second.txt", others)
    files = ("--hypothesis", output, "--reference", reference, "--reference", second)
    assert evaluate(monkeypatch, *files, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["references"] == [str(reference), str(second)]
    assert content["scores"][0]["score"] == corpus_score("BLEU", OUTPUTS, REFERENCES, others).score
    assert content["scores"][0]["signature"].startswith("nrefs:2|")


def test_tokenizers(
    tmp_path: Path,
    reference: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = ("--hypothesis", output, "--reference", reference, "--metric", "BLEU", "--json")
    for options, expected in [
        ((), "13a"),
        (("--tokenize", "char"), "char"),
        (("--target-lang", "zh"), "zh"),
        (("--target-lang", "zh", "--tokenize", "none"), "none"),
    ]:
        assert evaluate(monkeypatch, *files, *options) == 0
        [score] = json.loads(capsys.readouterr().out)["scores"]
        assert f"|tok:{expected}|" in score["signature"]


def test_the_language_of_the_model_decides(
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, model = written(tmp_path / "source.txt", SOURCES), write_model(tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    config["languages"]["target"] = "zh"
    (model / "config.json").write_text(json.dumps(config))
    files = (model, "--source", source, "--reference", reference, "--max-length", 3, "--json")
    assert evaluate(monkeypatch, *files) == 0
    assert "|tok:zh|" in json.loads(capsys.readouterr().out)["scores"][0]["signature"]


def test_an_ensemble(
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, kept = written(tmp_path / "source.txt", SOURCES), tmp_path / "kept.txt"
    one, two = write_model(tmp_path / "one"), write_model(tmp_path / "two", seed=1)
    files = ("--model", one, "--model", two, "--source", source, "--reference", reference)
    options = ("--output", kept, "--max-length", 5, "--min-length", 5, "--json")
    assert evaluate(monkeypatch, *files, *options) == 0
    assert json.loads(capsys.readouterr().out)["system"] == f"{one} + {two}"
    expected = relakit.load(one, two).translate(SOURCES, max_length=5, min_length=5)
    assert kept.read_text(encoding="utf-8").splitlines() == expected


def test_a_model_and_another(
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = written(tmp_path / "source.txt", SOURCES)
    model, other = write_model(tmp_path / "model"), write_model(tmp_path / "other", seed=1)
    kept = tmp_path / "kept.txt"
    files = ("--source", source, "--reference", reference, "--baseline", other)
    options = ("--max-length", 5, "--beam", 2, "--samples", 20, "--output", kept, "--json")
    assert evaluate(monkeypatch, model, *files, *options) == 0
    content = json.loads(capsys.readouterr().out)
    expected = relakit.load(model).translate(SOURCES, beam=2, max_length=5)
    assert kept.read_text(encoding="utf-8").splitlines() == expected
    assert content["scores"][1]["score"] == corpus_score("chrF", expected, REFERENCES).score
    assert (content["system"], content["baseline"]) == (str(model), str(other))


def test_errors(
    tmp_path: Path,
    reference: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = written(tmp_path / "short.txt", OUTPUTS[:2])
    empty = written(tmp_path / "empty.txt", [])
    cases: list[tuple[tuple[object, ...], str]] = [
        ((), "name what to score: either MODEL with --source, or --hypothesis"),
        ((tmp_path, "--hypothesis", output), "name what to score"),
        (("--hypothesis", output), "--reference is missing"),
        ((tmp_path, "--reference", reference), "--source is missing"),
        (
            ("--hypothesis", output, "--reference", reference, "--source", short),
            "--source is for a model to translate",
        ),
        (
            ("--hypothesis", short, "--reference", reference),
            f"{short} has 2 lines, {reference} has 3: line n of one must belong to line n of",
        ),
        (
            (tmp_path, "--source", short, "--reference", reference),
            f"{short} has 2 lines, {reference} has 3: line n of one must belong to line n of",
        ),
        (("--hypothesis", empty, "--reference", reference), f"{empty} is empty"),
        (
            ("--hypothesis", output, "--reference", reference, "--reference", short),
            f"{short} has 2 lines, {reference} has 3: line n of one must belong to line n of",
        ),
        (
            ("--hypothesis", output, "--reference", reference, "--metric", "comet"),
            "unknown metric 'comet'; choose one of BLEU, chrF, chrF++, TER, tokenised BLEU",
        ),
        (
            ("--hypothesis", output, "--reference", reference, "--tokenize", "mecab"),
            "unknown BLEU tokenizer 'mecab'; choose one of 13a, intl, zh",
        ),
        (
            (tmp_path, "--source", output, "--reference", reference),
            f"{tmp_path} is no model directory",
        ),
        (
            ("--hypothesis", output, "--reference", reference, "--output", short),
            "--output keeps a model's translations",
        ),
    ]
    for arguments, message in cases:
        assert evaluate(monkeypatch, *arguments) == 1
        printed = capsys.readouterr().err
        assert printed.startswith("relakit: error: ")
        assert message in printed


@pytest.mark.parametrize("option", ["--source", "--reference"])
def test_an_input_is_not_overwritten(
    option: str,
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = write_model(tmp_path / "model")
    files = {"--source": written(tmp_path / "source.txt", SOURCES), "--reference": reference}
    given = [part for name, path in files.items() for part in (name, path)]
    assert evaluate(monkeypatch, model, *given, "--output", files[option]) == 1
    assert f"is also {option} {files[option]}" in capsys.readouterr().err
    assert files[option].read_text(encoding="utf-8").splitlines() in (SOURCES, REFERENCES)


def test_an_output_that_cannot_be_written_is_found_before_the_work(
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Even before the model is looked for."""
    files = ["--source", reference, "--reference", reference]
    output = reference / "below" / "out.txt"
    assert evaluate(monkeypatch, tmp_path / "nowhere", *files, "--output", output) == 1
    assert f"{output} cannot be written: {reference} is a file" in capsys.readouterr().err
