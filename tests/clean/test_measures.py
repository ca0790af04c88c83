"""What pairs are ranked by, and how that is told to people."""

import math
from pathlib import Path

import pytest
from score_samples import score_row, write_table

from relakit.clean.columns import COLUMNS
from relakit.clean.measures import RANKED, ColumnMeasure
from relakit.clean.score_table import ScoreBlock, ScoreTable


def block(folder: Path, **cells: list[float]) -> ScoreBlock:
    count = len(next(iter(cells.values())))
    rows = [
        score_row(n + 1, "a b", "c d", **{name: values[n] for name, values in cells.items()})
        for n in range(count)
    ]
    (found,) = ScoreTable(write_table(folder / "scores.tsv", rows)).blocks()
    return found


def test_all_numbers_but_counts_of_words_can_rank() -> None:
    numbers = {column.name for column in COLUMNS if column.kind != "text"}
    assert numbers - set(RANKED) == {"source_words", "target_words"}


@pytest.mark.parametrize(
    ("column", "values", "worst", "threshold", "reason"),
    [
        ("cross_entropy", [6.31, 2.0], 0, 4.2, "cross_entropy 6.31 > 4.2"),
        ("attention_mass", [2.0, 0.31], 1, 0.5, "attention_mass 0.31 < 0.5"),
        ("target_language", [0.5, -0.25], 1, 0.0, "target_language -0.25 < 0"),
        (
            "word_ratio", [1.5, 4.0], 1, 2.0,
            "word_ratio 4 is 4 times more than the usual 1, > 2",
        ),
        (
            "word_ratio", [1.5, 0.25], 1, 2.0,
            "word_ratio 0.25 is 4 times less than the usual 1, > 2",
        ),
    ],
)  # fmt: skip
def test_by_a_column(
    column: str, values: list[float], worst: int, threshold: float, reason: str, tmp_path: Path
) -> None:
    measure = ColumnMeasure(column)
    look = measure.look(block(tmp_path, **{column: values}))
    assert int(look.badness.argmax()) == worst
    limit = measure.from_threshold(threshold)
    assert look.badness[worst] > limit >= look.badness[1 - worst]
    assert measure.shown(limit) == pytest.approx(threshold)
    assert look.value(worst) == values[worst]
    assert look.reason(worst, limit) == reason
    assert look.kind(worst) == column


def test_what_is_as_good_as_the_cut(tmp_path: Path) -> None:
    look = ColumnMeasure("cross_entropy").look(block(tmp_path, cross_entropy=[2.5]))
    assert look.reason(0, 2.5) == "cross_entropy 2.5 is the cut; lines before it were kept"


def test_a_ratio_is_measured_from_the_usual_one(tmp_path: Path) -> None:
    measure = ColumnMeasure("word_ratio", math.log(2))
    look = measure.look(block(tmp_path, word_ratio=[1.0, 2.0, 4.0]))
    assert look.badness == pytest.approx([math.log(2), 0, math.log(2)])
    with pytest.raises(ValueError, match=r"--threshold 0\.5 is how many times longer or shorter"):
        measure.from_threshold(0.5)
