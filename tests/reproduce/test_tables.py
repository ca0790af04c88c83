"""Tables in Markdown, from made-up records."""

from dataclasses import replace
from pathlib import Path

from made_up_records import (
    evidence_of,
    made_up_alignment,
    made_up_analysis,
    made_up_ranking,
    made_up_record,
)

from relakit.analysis.estimate import Estimate
from relakit.reproduce import paper, tables
from relakit.reproduce.markdown import table
from relakit.reproduce.rows import ROWS
from relakit.reproduce.studies import COMPARED


def row_of(text: str, name: str) -> list[str]:
    """The cells of the one row that has this cell."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (found,) = (row for row in rows if name in row)
    return found


def test_markdown() -> None:
    text = table(["model", "BLEU"], [["a|b", "1.0"], ["two\nlines", "2.0"]])
    assert text.splitlines() == [
        "| model | BLEU |", "| --- | ---: |", "| a\\|b | 1.0 |", "| two lines | 2.0 |",
    ]  # fmt: skip


def test_table_1() -> None:
    evidence = evidence_of(
        *(made_up_record("rela-g", seed, bleu=30.0 + seed) for seed in (1, 2, 3)),
        made_up_record("relu", 1, bleu=None),
        made_up_record("relu", 2, bleu=3.0),
    )
    text = tables.table_1(evidence)
    assert row_of(text, "7")[1:] == ["1 + ReLA-g", "26.6", "32.0 ± 1.0 (n=3)"]
    assert row_of(text, "4")[1:] == ["1 + ReLU alone", "failed", "3.0 (n=1), 1 of 2 failed"]
    assert row_of(text, "2")[-1] == tables.NONE
    assert len(text.splitlines()) == 2 + 13


def test_table_3() -> None:
    evidence = evidence_of(made_up_record("softmax", corpus="multi30k-fr-en", bleu=40.0))
    text = tables.table_3(evidence)
    assert text.splitlines()[0].endswith("| Multi30k fr-en, tiny |")
    assert row_of(text, "softmax")[1:] == ["37.2", "15.5", "21.1", "32.7", "40.0 (n=1)"]


def test_table_4_has_the_formulas_numbers() -> None:
    text = tables.table_4()
    assert row_of(text, "100") == ["100", "239,200", "592,100"]
    assert row_of(text, "1000") == ["1000", "23,992,000", "13,121,000"]


def test_table_5_has_intervals_over_sentences_or_seeds() -> None:
    def aligned(row: str, seed: int, rate: float) -> object:
        return made_up_record(row, seed, alignments={"RWTH": made_up_alignment(rate)})

    evidence = evidence_of(
        aligned("softmax", 1, 0.6), aligned("rela-g", 1, 0.5), aligned("rela-g", 2, 0.52)
    )
    (text,) = tables.table_5(evidence, "ignored")
    assert text.startswith("**Multi30k en-de, tiny, RWTH links**")
    assert row_of(text, "softmax")[1:] == ["60.0 (59.0 to 61.0)"] * 4 + ["1"]
    assert row_of(text, "rela-g")[1:] == ["51.0 ± 1.4"] * 4 + ["2"]
    assert row_of(tables.table_5_paper(), "rela-g")[1:] == ["64.5", "61.6", "59.2", "52.4"]


def test_table_5_leaves_out_what_was_compared_with_other_links() -> None:
    records = [
        made_up_record(row, seed, alignments={"eflomal": made_up_alignment(rate, sure=sure)})
        for row, seed, rate, sure in (
            ("softmax", 1, 0.6, 100),
            ("softmax", 2, 0.9, 101),
            ("rela-g", 1, 0.5, 100),
            ("rela-g-gelu", 1, 0.5, 101),
        )
    ]
    text, note = tables.table_5(evidence_of(*records), "ignored")
    assert row_of(text, "softmax")[1:] == ["60.0 (59.0 to 61.0)"] * 4 + ["1"]
    assert note == (
        "Not counted, as they were compared with other eflomal links: "
        "tiny/multi30k-en-de/softmax-2."
    )


def test_table_6() -> None:
    values = {"1": 1.2, "0.5": 1.0, "0.25": 0.9, "0.1": 0.8}
    analysis = made_up_analysis(diversity=values)
    text = tables.table_6(evidence_of(made_up_record(attention=analysis)))
    assert row_of(text, "rela-g, τ = 0.25")[1:] == [
        "0.92 / 0.65 / 0.71",
        "0.90 / 0.90 / 0.90 (n=1)",
    ]
    assert row_of(text, "softmax")[-1] == tables.NONE


def test_areas() -> None:
    evidence = evidence_of(
        *(
            made_up_record(seed=n, rankings={"planted noise": made_up_ranking(area)})
            for n, area in ((1, 0.6), (2, 0.7))
        )
    )
    (text,) = tables.areas_table(evidence, "planted noise")
    assert text.startswith("**Multi30k en-de, tiny, rela-g** (n=2)")
    assert row_of(text, "all")[1:] == [
        "0.65 (0.55 to 0.75)", "0.65 0.65 0.65", "0.65 (0.55 to 0.75)", "0.95 (0.94 to 0.96)",
    ]  # fmt: skip
    assert tables.areas_table(evidence, "ParaCrawl labels") == []


def test_areas_beside_those_of_the_score_that_pairs_came_with() -> None:
    ranking = made_up_ranking(0.6)
    given = Estimate(value=0.81, low=0.8, high=0.82)
    with_score = replace(ranking, overall=replace(ranking.overall, given_score=given))
    (text,) = tables.areas_table(
        evidence_of(made_up_record(rankings={"ParaCrawl labels": with_score})), "ParaCrawl labels"
    )
    assert row_of(text, "bad pairs")[-1] == "the corpus's own score"
    assert row_of(text, "all")[-1] == "0.81 (0.80 to 0.82)"


def test_stability() -> None:
    def record(row: str, **numbers: float | None) -> object:
        return made_up_record(row, corpus="demo", attention=made_up_analysis(**numbers))

    evidence = evidence_of(
        record("softmax", output_rms=1.0),
        record("rela-i", output_rms=None),
        record("half-rate", output_rms=12.0, closed_gates=0.25),
        made_up_record("clipping", corpus="demo", bleu=None),
    )
    text = tables.stability_table(evidence)
    assert text is not None
    assert row_of(text, "learning rate factor 0.5")[1:] == ["30.0 (n=1)", "12", "25%"]
    assert row_of(text, "softmax")[2:] == ["1", tables.NONE]
    assert row_of(text, "rela-i")[2:] == [tables.NONE, tables.NONE], "it was not measured"
    failed = row_of(text, "gradients clipped at norm 1")
    assert failed[1:] == ["1 of 1 failed", tables.NONE, tables.NONE]
    assert tables.stability_table(evidence_of()) is None


def test_speed_needs_benchmarks(tmp_path: Path) -> None:
    evidence = evidence_of(results=tmp_path)
    assert tables.table_2(evidence) is None
    assert tables.figure_2(evidence) is None


def test_the_papers_tables_have_all_rows() -> None:
    assert paper.TABLE_1.keys() == ROWS.keys()
    for reported in (paper.TABLE_2, paper.TABLE_3, paper.TABLE_5):
        assert tuple(reported) == COMPARED
