"""The committed page of results is what the committed result files say, and nothing else."""

import re
from pathlib import Path

import pytest
from made_up_records import (
    evidence_of,
    made_up_alignment,
    made_up_analysis,
    made_up_ranking,
    made_up_record,
)

from relakit.reproduce import page
from relakit.reproduce.claims_part import CLAIMS
from relakit.reproduce.page import PAGE, make_page, read_evidence, write_page
from relakit.reproduce.records import RECORDS, read_record, record_path

RESULTS = Path(__file__).parents[2] / "results"
FILES = sorted((RESULTS / RECORDS).rglob("*.json"))
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def test_the_page_follows_from_the_files() -> None:
    made = make_page(*read_evidence(RESULTS))
    committed = (RESULTS / PAGE).read_text(encoding="utf-8")
    assert committed.splitlines() == made.splitlines(), "make it again: relakit reproduce table4"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_result_file_reads(path: Path) -> None:
    record = read_record(path)
    assert path == record_path(RESULTS, record.run), "a file is named after its run"
    assert record.machine.get("cpu")
    assert record.machine.get("torch")
    assert path.stat().st_size < 200_000, "small enough for a repository"
    if record.training.verdict == "finished":
        assert record.test is not None
        assert record.test.bleu_signature


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_result_files_know_no_places(path: Path) -> None:
    """No folders of the machine that made them."""
    record = read_record(path)
    assert not {"folder", "prepared"} & record.recipe["data"].keys()
    paths = re.findall(r'"/[^"]*"', path.read_text(encoding="utf-8"))
    assert not paths


def test_every_run_is_on_the_page() -> None:
    text = (RESULTS / PAGE).read_text(encoding="utf-8")
    for path in FILES:
        assert f"({path.relative_to(RESULTS).as_posix()})" in text


def test_links_lead_somewhere() -> None:
    for target in LINK.findall((RESULTS / PAGE).read_text(encoding="utf-8")):
        assert (RESULTS / target).exists(), target


def test_a_page_without_results(tmp_path: Path) -> None:
    text = make_page(evidence_of(results=tmp_path))
    assert text.count("Here: not measured yet.") == len(CLAIMS)
    assert "Not measured yet." in text


def test_a_result_of_an_unknown_corpus_is_only_named(tmp_path: Path) -> None:
    recipe = made_up_record().recipe
    made_up_record(corpus="wmt99-en-eo", recipe=recipe).write(tmp_path)
    evidence, older = read_evidence(tmp_path)
    assert not evidence.settings()
    assert [run.corpus for run in older] == ["wmt99-en-eo"]
    assert "wmt99-en-eo" in make_page(evidence, older)


def test_claims_are_different() -> None:
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)


def test_a_page_with_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers go from the files to the page; made twice, it is the same."""
    for row, score in (("rela-g", 33.0), ("softmax", 31.0)):
        for seed in (1, 2):
            made_up_record(
                row,
                seed,
                bleu=score + seed - 1.5,
                attention=made_up_analysis(null_rate={"cross": [0.123, 0.567, 0.234]}),
                alignments={"eflomal": made_up_alignment(0.5 if row == "rela-g" else 0.6)},
                rankings={"planted noise": made_up_ranking(0.77)},
            ).write(tmp_path)
    monkeypatch.setattr(page, "why_no_figures", lambda: "no matplotlib")
    path = write_page(tmp_path)
    assert path == tmp_path / PAGE
    text = path.read_text(encoding="utf-8")
    for expected in (
        "33.0 ± 0.7 (n=2)",
        "33.0 ± 0.7 against 31.0 ± 0.7: +2.0 (",
        "12 57 23",
        "**Multi30k en-de, tiny, eflomal links**",
        "AUC 0.77 ± 0.00",
        "[tiny/multi30k-en-de/rela-g-2](reproduction/tiny/multi30k-en-de/rela-g-2.json)",
    ):
        assert expected in text, expected
    verdicts = re.findall(r"\*\*(holds|does not hold|not decidable)\*\*", text)
    summary = re.findall(r"^\| [^|]+ \| (\d*) \| (\d*) \| (\d*) \|$", text, re.MULTILINE)
    assert len(summary) == len(CLAIMS)
    for number, verdict in enumerate(("holds", "does not hold", "not decidable")):
        assert sum(int(row[number] or 0) for row in summary) == verdicts.count(verdict)
    assert write_page(tmp_path).read_text(encoding="utf-8") == text


def test_older_settings_are_named_and_not_counted(tmp_path: Path) -> None:
    made_up_record("rela-g", 1, bleu=33.0).write(tmp_path)
    older = made_up_record("rela-g", 2, bleu=11.0)
    training = {**older.recipe["training"], "warmup": 7}
    older.model_copy(update={"recipe": {**older.recipe, "training": training}}).write(tmp_path)
    text = make_page(*read_evidence(tmp_path))
    assert "33.0 (n=1)" in text
    (line,) = (line for line in text.splitlines() if "older settings" in line)
    assert "rela-g-2.json" in line
    assert "rela-g-1.json" not in line


def test_a_failed_run_is_shown_as_one(tmp_path: Path) -> None:
    text = make_page(evidence_of(made_up_record("relu", bleu=None), results=tmp_path))
    (line,) = (line for line in text.splitlines() if "relu-1.json" in line)
    assert "| failed |" in line


def test_a_result_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = made_up_record().write(tmp_path)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        write_page(tmp_path)
