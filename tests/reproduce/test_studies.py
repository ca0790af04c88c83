"""What each table and figure needs."""

import pytest

from relakit.reproduce.corpora import CORPORA, SCALES
from relakit.reproduce.rows import ROWS
from relakit.reproduce.studies import STUDIES, chosen_studies, runs_of, scales_of

PAPER = [f"table{n}" for n in range(1, 7)] + [f"figure{n}" for n in range(2, 11)]


def test_every_table_and_figure_of_the_paper_is_known() -> None:
    assert set(PAPER) <= set(STUDIES)
    assert [study.name for study in chosen_studies(PAPER)] == PAPER


@pytest.mark.parametrize("name", ["all", "claims"])
def test_groups_are_everything(name: str) -> None:
    assert [study.name for study in chosen_studies([name, "table1"])] == list(STUDIES)


def test_names_given_twice_count_once() -> None:
    assert [s.name for s in chosen_studies(["table5", "table1", "table5"])] == ["table1", "table5"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no 'table7' to reproduce; choose from table1, .*, all"):
        chosen_studies(["table1", "table7"])


def test_table_1_is_thirteen_rows_by_three_seeds() -> None:
    runs = STUDIES["table1"].runs("tiny")
    assert len(runs) == len(set(runs)) == 39
    assert {run.row for run in runs} == set(ROWS)
    assert {run.seed for run in runs} == {1, 2, 3}
    assert {run.corpus for run in runs} == {"multi30k-en-de"}
    assert runs[0].name == "tiny/multi30k-en-de/softmax-1"


def test_table_3_has_four_language_pairs() -> None:
    corpora = {run.corpus for run in STUDIES["table3"].runs("tiny")}
    assert corpora == {f"multi30k-{pair}" for pair in ("en-de", "en-fr", "de-en", "fr-en")}


def test_tables_share_runs() -> None:
    table_1, table_5 = chosen_studies(["table1", "table5"])
    assert set(table_5.runs("tiny")) < set(table_1.runs("tiny"))
    assert len(runs_of([table_1, table_5], "tiny")) == 39


@pytest.mark.parametrize("scale", SCALES)
def test_everything_is_planned_once(scale: str) -> None:
    runs = runs_of(STUDIES.values(), scale)  # type: ignore[arg-type]
    assert len(runs) == len(set(runs))
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)
    for run in runs:
        assert scale in CORPORA[run.corpus].recipes, run.name


def test_seeds_replace_those_of_the_study() -> None:
    one = STUDIES["table1"].runs("tiny", seeds=1)
    assert len(one) == 13
    assert {run.seed for run in STUDIES["table3"].runs("tiny", seeds=5)} == {1, 2, 3, 4, 5}


def test_formulas_and_benchmarks_need_no_runs() -> None:
    for name in ("table2", "table4", "figure2"):
        assert STUDIES[name].runs("tiny") == []
    assert STUDIES["table2"].benchmark
    assert not STUDIES["table4"].benchmark


def test_scales_of_a_study() -> None:
    assert scales_of(STUDIES["table1"]) == SCALES
    assert "deep" not in scales_of(STUDIES["table3"])
    assert STUDIES["table3"].runs("deep") == []
