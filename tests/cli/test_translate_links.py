"""`relakit translate --alignment` and `--keep-markup`."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from model_folders import write_model
from translate_runs import Result, Run

import relakit
from relakit.align import linked_translator
from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.align.hypotheses import align_hypotheses, aligner_of
from relakit.align.linked_translator import LinkedTranslator
from relakit.align.markup_writing import MarkedTranslation
from relakit.decode.native_engine import why_not_native

LINES = ["A small dog runs.", "", "the old bridge", "über die alte Brücke!"]
MARKED = ["A <b>small dog</b> runs.", "", "the old bridge", "<br/>über {0} die <i>alte</i> Brücke!"]
SHORT = ("--max-length", 8)
CHOICE = AlignmentChoice(layer=0, heads=(1,), reading="normal", chosen=ChosenOn(by="given"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_model(tmp_path_factory.mktemp("links") / "model")
    write_choice(folder, CHOICE)
    return folder


def as_text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def lines_of(result: Result) -> list[str]:
    assert result.status == 0, result.err
    return result.out.decode().split("\n")[:-1]


def links_of(folder: Path, *more: Path, precision: str = "fp32", **options: object) -> list[str]:
    """``text ||| links`` of every hypothesis."""
    translator = relakit.load(folder, *more, precision=precision)
    found = translator.translate_nbest(LINES, max_length=8, **options)
    aligned = align_hypotheses(aligner_of(translator, folder), LINES, found)
    return [
        f"{one.text} ||| {' '.join(f'{s}-{t}' for s, t in sorted(links.links))}"
        for hypotheses, several in zip(found, aligned, strict=True)
        for one, links in zip(hypotheses, several, strict=True)
    ]


def test_links_after_each_translation(run: Run, folder: Path) -> None:
    found = lines_of(run(folder, "--alignment", *SHORT, text=as_text(LINES)))
    assert found == links_of(folder, nbest=1)
    assert found[1] == " ||| "
    assert "-" in found[0].partition(" ||| ")[2]
    interactive = run(folder, "--alignment", "--interactive", *SHORT, text=as_text(LINES))
    assert lines_of(interactive) == found


def test_of_nbest_samples_and_prefixes(run: Run, folder: Path, tmp_path: Path) -> None:
    nbest = lines_of(run(folder, "--alignment", "--nbest", 3, *SHORT, text=as_text(LINES)))
    rows = [line.split(" ||| ") for line in nbest]
    assert [f"{row[1]} ||| {row[3]}" for row in rows] == links_of(folder, nbest=3)
    samples = ("--alignment", "--sample", "--scores", *SHORT)
    found = lines_of(run(folder, *samples, text=as_text(LINES)))
    assert [line.partition("\t")[2] for line in found] == links_of(folder, nbest=1, sample=True)
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("Ein\n\ndie\nalt\n")
    options = ("--alignment", "--prefix-file", prefixes, *SHORT)
    found = lines_of(run(folder, *options, text=as_text(LINES)))
    assert found == links_of(folder, nbest=1, prefixes=["Ein", "", "die", "alt"])


def test_of_weights_of_one_byte_and_of_an_ensemble(run: Run, folder: Path, tmp_path: Path) -> None:
    other = write_model(tmp_path / "other", seed=1)
    both = run(folder, "--model", other, "--alignment", *SHORT, text=as_text(LINES))
    assert lines_of(both) == links_of(folder, other, nbest=1)
    if reasons := why_not_native(relakit.load(folder).model):
        pytest.skip("; ".join(reasons))
    result = run(folder, "--precision", "int8", "--alignment", *SHORT, text=as_text(LINES))
    assert lines_of(result) == links_of(folder, precision="int8", nbest=1)


def test_markup(run: Run, folder: Path) -> None:
    result = run(folder, "--keep-markup", *SHORT, text=as_text(MARKED))
    translator = relakit.load(folder)
    linked = LinkedTranslator(translator, markup=aligner_of(translator, folder))
    expected = [one for [one] in linked.translate(MARKED, nbest=1, max_length=8)]
    assert lines_of(result) == [one.text for one in expected]
    assert lines_of(result)[2] == translator.translate(LINES, max_length=8)[2]
    lost = {number: one.lost for number, one in enumerate(expected, start=1) if one.lost}
    told = [
        f"relakit: standard input, line {number}: lost {' '.join(pieces)}\n"
        for number, pieces in lost.items()
    ]
    if count := sum(map(len, lost.values())):
        told.append(f"relakit: standard input: lost {count} of 6 tags, placeholders and entities\n")
    assert result.err.decode() == "".join(told)


def test_lost_markup_is_named(run: Run, folder: Path, tmp_path: Path) -> None:
    """That of a line which is cut off."""
    source = tmp_path / "in.txt"
    source.write_text("dog\n<b>dog</b> dog\n" + "<i>dog</i> " * 15 + "\n")
    options = ("--keep-markup", "--input", source, "--max-tokens", 1, "--max-length", 2)
    result = run(folder, *options, "--nbest", 2)
    lines = [line for line in result.err.decode().splitlines() if ": lost " in line]
    assert lines[0] == f"relakit: {source}, line 2: lost <b> </b>"
    assert lines[1] == f"relakit: {source}, line 2, translation 2: lost <b> </b>"
    assert lines[2] == f"relakit: {source}, line 3: lost {'<i> </i> ' * 10}and 10 more"
    assert lines[-1] == f"relakit: {source}: lost 64 of 64 tags, placeholders and entities"


def test_json(run: Run, folder: Path) -> None:
    options = ("--format", "json", "--alignment", "--keep-markup", "--nbest", 2, *SHORT)
    found = [json.loads(line) for line in lines_of(run(folder, *options, text=as_text(MARKED)))]
    assert [one["index"] for one in found] == [0, 0, 1, 2, 2, 3, 3]
    assert found[0]["plain_source"] == LINES[0]
    assert found[0].keys() == {
        "index", "text", "score", "lost", "reordered", "plain_source", "plain_text", "alignment",
    }  # fmt: skip
    assert found[0]["alignment"].keys() == {
        "links", "unaligned_source", "unaligned_target", "null_rate",
    }  # fmt: skip
    text = run(folder, "--alignment", "--nbest", 2, *SHORT, text=as_text(LINES))
    rows = [line.split(" ||| ") for line in lines_of(text)]
    plain = [one["plain_text"] for one in found if one["index"] == 0]
    assert plain == [row[1] for row in rows if row[0] == "0"]
    links = [" ".join(f"{s}-{t}" for s, t, _ in one["alignment"]["links"]) for one in found]
    assert links[0] == rows[0][3]
    [alone] = lines_of(run(folder, "--format", "json", *SHORT, text=b"the old bridge\n"))
    assert json.loads(alone).keys() == {"index", "text", "score"}


def test_links_and_markup_in_one_line_of_text_are_refused(run: Run, folder: Path) -> None:
    """The numbers of words would not be those of the line."""
    result = run(folder, "--alignment", "--keep-markup", text=as_text(MARKED))
    assert (result.status, result.out) == (1, b"")
    assert b"with --keep-markup it needs --format json" in result.err


def test_placeholders_in_another_order_are_named(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = MarkedTranslation("%d Hund %s", (), ("%d", "%s"))
    monkeypatch.setattr(linked_translator, "put_back", lambda *arguments: turned)
    result = run(folder, "--keep-markup", *SHORT, text=b"%s the %d\n")
    assert result.err.decode() == (
        "relakit: standard input, line 1: %d %s are in another order than in the source, and get "
        "each other's values; number or name them, such as %1$s or {0}\n"
    )
    [line] = lines_of(run(folder, "--keep-markup", "--format", "json", text=b"%s the %d\n"))
    assert json.loads(line)["reordered"] == ["%d", "%s"]


def test_tokens(run: Run, folder: Path) -> None:
    options = ("--alignment", "--alignment-level", "token", "--format", "json", *SHORT)
    [line] = lines_of(run(folder, *options, text=b"the old bridge\n"))
    found = json.loads(line)
    tokenizer = relakit.load(folder).tokenizer
    ids = tokenizer.encode("the old bridge").ids
    assert found["source_tokens"] == [tokenizer.tokens[id] for id in ids]
    assert len(found["target_tokens"]) > len(found["text"].split())
    linked = {target for _, target, _ in found["alignment"]["links"]}
    unlinked = set(found["alignment"]["unaligned_target"])
    assert linked | unlinked == set(range(len(found["target_tokens"])))


def test_lines_without_markup_are_as_without_the_option(run: Run, folder: Path) -> None:
    plain = run(folder, "--nbest", 2, *SHORT, text=as_text(LINES))
    assert run(folder, "--nbest", 2, "--keep-markup", *SHORT, text=as_text(LINES)) == plain
