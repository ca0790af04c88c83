"""`relakit align` and `relakit aer`."""

import gzip
import io
import json
import os
import sys
from pathlib import Path
from threading import Thread

import pytest
from model_folders import TEXTS, write_model
from typer.testing import CliRunner

from relakit.align.choice import AlignmentChoice, ChosenOn, read_choice, write_choice
from relakit.align.work import AlignSettings, AlignWork
from relakit.cli.main import app, main
from relakit.data.parallel_files import NumberedPair
from relakit.data.tokenizer import Tokenizer
from relakit.model.description import read_description


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, "", f"{type(result.exception).__name__}: {result.exception}"
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """With a choice of heads."""
    folder = write_model(tmp_path / "model")
    choose(folder)
    return folder


def reverse_model(folder: Path) -> Path:
    return write_model(folder, seed=1, source="de", target="en")


def choose(folder: Path, **changes: object) -> None:
    on = ChosenOn(by="given")
    values = {"layer": 0, "heads": (0,), "reading": "normal", "chosen": on, **changes}
    write_choice(folder, AlignmentChoice.model_validate(values))


@pytest.fixture
def text(tmp_path: Path) -> tuple[Path, Path]:
    english = [TEXTS[0], "", "A dog.", "The old dog runs across the bridge."]
    german = [TEXTS[1], "", "Ein Hund.", ""]
    for name, lines in (("en", english), ("de", german)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "en", tmp_path / "de"


def test_a_line_for_each_pair(model: Path, text: tuple[Path, Path], tmp_path: Path) -> None:
    status, out, errors = run("align", model, "--source", text[0], "--target", text[1])
    lines = out.split("\n")
    assert (status, errors) == (0, "")
    assert len(lines) == 5
    assert (lines[1], lines[3], lines[4]) == ("", "", "")
    for line, words in ((lines[0], 8), (lines[2], 2)):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert links == sorted(links)
        assert links
        assert all(source < 8 and target < words for source, target in links)
    status, out, errors = run(
        "align", model, "--source", text[0], "--target", text[1], "--output", tmp_path / "links.gz"
    )
    assert (status, out) == (0, "")
    assert errors == f"relakit: 4 pairs aligned: {tmp_path / 'links.gz'}\n"
    assert gzip.decompress((tmp_path / "links.gz").read_bytes()).decode().split("\n") == lines


def test_no_more_readers(
    model: Path,
    text: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As before ``| head``: a pipe that nobody reads is the end, and no error."""

    class Closed(io.BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError

    arguments = ["align", model, "--source", text[0], "--target", text[1]]
    monkeypatch.setattr(sys, "argv", ["relakit", *map(str, arguments)])
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Closed()))
    with pytest.raises(SystemExit) as caught:
        main()
    assert (caught.value.code or 0, capsys.readouterr().err) == (0, "")


def test_formats_and_levels(model: Path, text: tuple[Path, Path], tmp_path: Path) -> None:
    pairs = ("--source", text[0], "--target", text[1])
    _, out, _ = run("align", model, *pairs, "--format", "json")
    objects = [json.loads(line) for line in out.splitlines()]
    assert objects[1] == {
        "links": [], "unaligned_source": [], "unaligned_target": [], "null_rate": None,
    }  # fmt: skip
    assert set(objects[0]) == set(objects[1])
    assert len(objects[3]["unaligned_source"]) == 7
    _, out, _ = run("align", model, *pairs, "--format", "text")
    assert "dog." in out.splitlines()[2]
    _, out, _ = run("align", model, *pairs, "--words", "punctuation", "--format", "text")
    assert "dog." not in out.splitlines()[2]
    _, words, _ = run("align", model, *pairs)
    _, tokens, _ = run("align", model, *pairs, "--level", "token")
    assert len(tokens.split()) > len(words.split())
    _, out, _ = run("align", model, *pairs, "--format", "json", "--level", "token")
    objects = [json.loads(line) for line in out.splitlines()]
    assert "".join(objects[2]["source_tokens"]).endswith("Ġdog.")
    for one in objects:  # also of the pair that has no target
        linked = {source for source, _, _ in one["links"]} | {*one["unaligned_source"]}
        assert linked == set(range(len(one["source_tokens"])))
    assert len(objects[3]["source_tokens"]) > 7
    assert objects[3]["target_tokens"] == []
    _, out, _ = run("align", model, *pairs, "--format", "text", "--level", "token")
    assert len(out.splitlines()[3].split()) == len(objects[3]["source_tokens"])


def test_texts_are_not_encoded_again_for_numbers(
    model: Path, text: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    encode = Tokenizer.encode

    def counted(self: Tokenizer, text: str) -> object:
        calls.append(text)
        return encode(self, text)

    monkeypatch.setattr(Tokenizer, "encode", counted)
    choice = read_choice(model, read_description(model).config)
    pairs = [NumberedPair(1, "a dog", "ein Hund")]
    for format in ("pharaoh", "json"):
        calls.clear()
        work = AlignWork(AlignSettings(model=model, choice=choice, format=format))
        work.run(pairs, lambda count: None)
        assert sorted(calls) == ["a dog", "ein Hund"]


def test_one_file_with_bars(model: Path, text: tuple[Path, Path], tmp_path: Path) -> None:
    both = zip(*(path.read_text().splitlines() for path in text), strict=True)
    (tmp_path / "bars").write_text("".join(f"{s} ||| {t}\n" for s, t in both))
    apart = run("align", model, "--source", text[0], "--target", text[1])
    assert run("align", model, "--source", tmp_path / "bars") == apart


def test_other_heads(model: Path, text: tuple[Path, Path]) -> None:
    pairs = ("--source", text[0], "--target", text[1], "--format", "json")
    chosen = run("align", model, *pairs)
    given = run("align", model, *pairs, "--layer", 1, "--head", 1)
    assert given == chosen
    assert run("align", model, *pairs, "--layer", 1, "--head", 2) != chosen
    assert run("align", model, *pairs, "--layer", 1, "--reading", "shifted") != chosen
    choose(model, end="competes")
    competing = run("align", model, *pairs)
    assert competing != chosen
    assert run("align", model, *pairs, "--layer", 1, "--head", 1, "--end", "competes") == competing


def test_two_models(model: Path, text: tuple[Path, Path], tmp_path: Path) -> None:
    other = reverse_model(tmp_path / "other")
    choose(other)
    links = {}
    for method in ("intersection", "union", "grow-diag-final"):
        status, out, _ = run(
            *("align", model, "--reverse", other, "--symmetrize", method),
            *("--source", text[0], "--target", text[1]),
        )
        assert status == 0
        links[method] = set(out.splitlines()[0].split())
    assert links["intersection"] <= links["grow-diag-final"] <= links["union"]
    assert len(links["union"]) > len(links["intersection"])


def test_heads_are_chosen_and_kept(text: tuple[Path, Path], tmp_path: Path) -> None:
    model, other = write_model(tmp_path / "model"), reverse_model(tmp_path / "other")
    pairs = ("--source", text[0], "--target", text[1])
    status, out, errors = run("align", model, *pairs)
    assert status == 0
    assert len(out.split("\n")) == 5
    assert "nobody has chosen yet" in errors
    assert "on 2 pairs, for this run alone, as fewer than 100 pairs tell little" in errors
    assert read_choice(model, read_description(model).config) is None
    assert run("align", model, *pairs) == (0, out, errors)
    english, german = (path.read_text() * 50 for path in text)
    for name, content in (("many.en", english), ("many.de", german)):
        (tmp_path / name).write_text(content)
    many = ("--source", tmp_path / "many.en", "--target", tmp_path / "many.de")
    status, _, errors = run("align", model, *many)
    assert f"on 100 pairs, kept in {model / 'alignment.json'}" in errors
    choice = read_choice(model, read_description(model).config)
    assert (choice.chosen.by, choice.chosen.pairs) == ("same words", 100)
    assert choice.chosen.files == (str(tmp_path / "many.en"), str(tmp_path / "many.de"))
    assert run("align", model, *pairs)[::2] == (0, "")
    status, out, errors = run("align", model, *pairs, "--select", "--reverse", other)
    assert (status, out) == (0, "")
    for folder in (model, other):
        assert f"{folder}: layer" in errors
        chosen = read_choice(folder, read_description(folder).config).chosen
        assert chosen.by == "agreement"
    (tmp_path / "gold").write_text("0-0 1-1\n\n0-0\n\n")
    status, _, errors = run("align", model, *pairs, "--select", "--gold", tmp_path / "gold")
    assert status == 0
    assert read_choice(model, read_description(model).config).chosen.by == "aer"


@pytest.mark.parametrize("select", [False, True])
def test_no_heads_are_chosen_on_pairs_that_do_not_fit(
    text: tuple[Path, Path], tmp_path: Path, select: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relakit.cli.align_request.PAIRS_TO_KEEP_A_CHOICE", 1)
    model = write_model(tmp_path / "model")
    text[1].write_text(text[1].read_text(encoding="utf-8") + "Ein Hund.\n", encoding="utf-8")
    pairs = ("--source", text[0], "--target", text[1], "--limit", 1)
    status, _, errors = run("align", model, *pairs, *(["--select"] if select else []))
    assert status == 1
    assert f"{text[0]} has 4 lines, {text[1]} has 5" in errors
    assert read_choice(model, read_description(model).config) is None


def test_no_heads_are_chosen_for_an_output_that_cannot_be(
    text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relakit.cli.align_request.PAIRS_TO_KEEP_A_CHOICE", 1)
    model = write_model(tmp_path / "model")
    (tmp_path / "folder").mkdir()
    pairs = ("--source", text[0], "--target", text[1])
    status, _, errors = run("align", model, *pairs, "--output", tmp_path / "folder")
    assert status == 1
    assert "cannot be written: it is a folder" in errors
    assert read_choice(model, read_description(model).config) is None


def test_a_hyphen_is_standard_output(
    model: Path, text: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("align", model, "--source", text[0], "--target", text[1])
    assert run(*command, "--output", "-") == run(*command)
    assert not (tmp_path / "-").exists()


def test_pairs_that_are_too_long_have_no_links(model: Path, text: tuple[Path, Path]) -> None:
    pairs = ("--source", text[0], "--target", text[1])
    status, out, errors = run("align", model, *pairs, "--max-tokens", 8)
    assert (status, out.split("\n")[0]) == (0, "")
    assert "1 of 4 pairs are too long and have no links (--max-tokens)" in errors


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--format", "xml"], "unknown --format 'xml'; choose one of pharaoh, json, text"),
        (["--level", "letter"], "unknown --level 'letter'; choose one of word, token"),
        (["--words", "all"], "unknown --words 'all'; choose one of spaces, punctuation, tokenized"),
        (
            ["--symmetrize", "x", "--reverse", "m"],
            "unknown --symmetrize 'x'; choose one of intersection",
        ),
        (["--reading", "twice"], "unknown --reading 'twice'; choose one of normal, shifted"),
        (["--gold", "g"], "--gold is for --select; relakit aer scores links"),
        (["--head", "1"], "--head is one of a layer: name it with --layer"),
        (["--reading", "shifted"], "--reading is one of a layer: name it with --layer"),
        (["--end", "competes"], "--end is one of a layer: name it with --layer"),
        (
            ["--end", "wins", "--layer", "1"],
            "unknown --end 'wins'; choose one of ignored, competes",
        ),
        (
            ["--layer", "1", "--head", "1", "--head", "1"],
            "--head must name different heads, got 1, 1",
        ),
        (["--symmetrize", "union"], "--symmetrize union is for the links of two models; name the"),
        (["--select", "--format", "json"], "--select aligns nothing; leave --format out"),
        (["--select", "--level", "word"], "--select aligns nothing; leave --level out"),
        (["--select", "--restart"], "--select aligns nothing; leave --restart out"),
        (["--select", "--output", "o"], "--select aligns nothing; leave --output out"),
        (["--select", "--layer", "1"], "--select looks for the best layer; leave --layer out"),
        (["--layer", "99"], "there is no layer 99; the decoder has"),
        (["--columns", "1"], "--columns must be SOURCE,TARGET, got '1'"),
        (["--workers", "0"], "--workers must be from 1 to"),
        (["--input-format", "tsv"], "--input-format is for one file with both sides"),
    ],
)
def test_wrong_use(
    model: Path, text: tuple[Path, Path], arguments: list[str], problem: str
) -> None:
    pairs = ("--source", text[0], "--target", text[1])
    status, out, errors = run("align", model, *pairs, *arguments)
    assert (status, out) == (1, "")
    assert problem in errors


def test_output_may_not_be_an_input(model: Path, text: tuple[Path, Path]) -> None:
    pairs = ("--source", text[0], "--target", text[1])
    status, _, errors = run("align", model, *pairs, "--output", text[0])
    assert status == 1
    assert "--source" in errors
    assert text[0].read_text().startswith(TEXTS[0])


def test_scores(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0 1p1\n0-1\n")
    (tmp_path / "links").write_text("0-0 1-1\n0-0\n")
    files = ("--gold", tmp_path / "gold", "--hypothesis", tmp_path / "links")
    status, out, _ = run("aer", *files, "--gold-format", "pharaoh")
    assert status == 0
    assert f"{tmp_path / 'links'}: 2 pairs, 3 links, 2 sure ones" in out
    rows = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}
    assert rows == {"AER": "0.400", "precision": "0.667", "recall": "0.500", "F1": "0.571"}


def test_scores_of_no_links(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0\n0-1\n")
    (tmp_path / "links").write_text("\n\n")
    status, out, _ = run("aer", "--gold", tmp_path / "gold", "--hypothesis", tmp_path / "links")
    assert status == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:]}
    assert rows["precision"] == ["-"]
    assert rows["F1"] == ["0.000", "(0.000", "to", "0.000)"]


def test_links_do_not_depend_on_shards_or_workers(
    model: Path, text: tuple[Path, Path], tmp_path: Path
) -> None:
    pairs = ("--source", text[0], "--target", text[1], "--format", "json")
    _, expected, _ = run("align", model, *pairs)
    output = tmp_path / "links"
    several = ("--shard-pairs", 1, "--workers", 2, "--output", output)
    status, _, errors = run("align", model, *pairs, *several)
    assert status == 0, errors
    assert output.read_text() == expected


def test_a_worker_elsewhere_finds_the_models(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    choice = read_choice(model, read_description(model).config)
    assert choice is not None
    settings = AlignSettings(model=Path("model"), choice=choice, reverse=Path("back"))
    described = settings.description({}).settings["settings"]
    assert (described["model"], described["reverse"]) == (str(model), str(tmp_path / "back"))


@pytest.mark.parametrize("command", ["aer", "align"])
def test_gold_through_a_pipe(
    model: Path, text: tuple[Path, Path], tmp_path: Path, command: str
) -> None:
    """It is read once if its format is known."""
    (tmp_path / "links").write_text("0-0\n\n0-0\n\n")
    os.mkfifo(tmp_path / "gold")
    writing = Thread(target=(tmp_path / "gold").write_text, args=("0-0\n\n1-1\n\n",), daemon=True)
    writing.start()
    given = {
        "aer": ("--hypothesis", tmp_path / "links"),
        "align": (model, "--source", text[0], "--target", text[1], "--select"),
    }
    gold = ("--gold", tmp_path / "gold", "--gold-format", "pharaoh")
    status, out, errors = run(command, *given[command], *gold)
    assert status == 0, errors
    if command == "aer":
        assert "4 pairs, 2 links, 2 sure ones" in out
