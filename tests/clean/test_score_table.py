"""Tables of scores, read back, beside the pairs that they are about."""

import math
from pathlib import Path

import pytest
from extra_packages import needs_pyarrow
from pair_texts import write_pairs
from score_samples import NAMES, score_row, write_table

from relakit.clean.score_table import BLOCK_ROWS, ScoreTable
from relakit.limits import MAX_LINE_BYTES

PAIRS = [("a dog", "ein Hund"), ("", "ein Haus"), ("old men", "alte Leute hier")]
ROWS = [score_row(n, *pair, cross_entropy=n / 2) for n, pair in enumerate(PAIRS, start=1)]


@pytest.mark.parametrize("name", ["scores.tsv", "scores.tsv.gz", "scores.tsv.zst"])
def test_what_was_written(name: str, tmp_path: Path) -> None:
    table = ScoreTable(write_table(tmp_path / name, ROWS))
    (block,) = table.blocks()
    assert block.lines.tolist() == [1, 2, 3]
    assert block.is_blank.tolist() == [False, True, False]
    assert block.numbers["cross_entropy"][2] == 1.5
    assert math.isnan(block.numbers["null_rate"][1])
    assert math.isnan(block.numbers["dual_cross_entropy"][0])
    assert block.texts["worst_token"][0] == "x"
    assert block.cells(0)["target_words"] == 2
    assert block.cells(0)["dual_cross_entropy"] is None
    found = list(table.blocks_with_pairs(write_pairs(tmp_path, PAIRS)))
    assert [pair.texts for pairs, _ in found for pair in pairs] == PAIRS


def test_many_rows_come_in_blocks(tmp_path: Path) -> None:
    pairs = [("one two", "eins zwei")] * (BLOCK_ROWS + 5)
    rows = [score_row(n, *pair) for n, pair in enumerate(pairs, start=1)]
    table = ScoreTable(write_table(tmp_path / "scores.tsv", rows))
    blocks = list(table.blocks_with_pairs(write_pairs(tmp_path, pairs)))
    assert [len(block) for _, block in blocks] == [BLOCK_ROWS, 5]
    assert blocks[1][1].start == BLOCK_ROWS
    assert int(blocks[1][1].lines[0]) == BLOCK_ROWS + 1


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (ROWS[:2], "has scores of 2 pairs, .*text.en has 3: they are of another text"),
        ([*ROWS, score_row(4, "a", "b")], "has scores of 4 pairs, .*text.en has 3"),
        ([ROWS[0], ROWS[2]], "row 2: it is about line 3, and should be about line 2"),
        (
            [score_row(1, "a dog", "ein"), *ROWS[1:]],
            "row 1: it has scores of 2 and 1 source and target words, line 1 of .* has 2 and 2",
        ),
        ([ROWS[0], score_row(2, "a", "ein Haus"), ROWS[2]], "row 2: .* has 0 and 2"),
        ([{"line": 1}, *ROWS[1:]], "row 1: it has scores of none source and target words"),
        ([{**ROWS[0], "null_rate": "x"}], "row 1: null_rate must be a number, got 'x'"),
        ([{**ROWS[0], "null_rate": "nan"}], "row 1: null_rate must be a number, got 'nan'"),
        ([{**ROWS[0], "end_loss": "inf"}], "row 1: end_loss must be a number, got 'inf'"),
        ([{**ROWS[0], "line": ""}], "row 1: the column 'line' is empty"),
        ([{**ROWS[0], "word_ratio": 0}], "row 1: word_ratio must be above 0, got '0'"),
        ([{**ROWS[0], "character_ratio": -2}], "row 1: character_ratio must be above 0, got '-2'"),
        ([{**ROWS[0], "character_ratio": ""}], "row 1: the column 'character_ratio' is empty"),
        (
            [ROWS[0], ROWS[1], {**ROWS[2], "unsupported": "0:alte Leute"}],
            "row 3: unsupported must be words with their numbers, such as 3:Hund, got '0:alte Leut",
        ),
        ([{**ROWS[0], "worst_word": ":Hund"}], "row 1: worst_word must be words with their num"),
    ],
)
def test_it_is_of_something_else(rows: list, says: str, tmp_path: Path) -> None:  # type: ignore[type-arg]
    table = ScoreTable(write_table(tmp_path / "scores.tsv", rows))
    with pytest.raises(ValueError, match=says):
        list(table.blocks_with_pairs(write_pairs(tmp_path, PAIRS)))


def test_it_is_no_such_table(tmp_path: Path) -> None:
    path = tmp_path / "scores.tsv"
    path.write_text("")
    with pytest.raises(ValueError, match="is empty"):
        ScoreTable(path)
    path.write_text("a dog\tein Hund\n")
    with pytest.raises(ValueError, match="no column called 'line', so it is no table of relakit"):
        ScoreTable(path)
    path.write_text("\t".join(NAMES) + "\n1\t2\n")
    with pytest.raises(ValueError, match=f"row 1: it has 2 columns, .* names {len(NAMES)}"):
        list(ScoreTable(path).blocks())


def test_columns_of_others_are_left_alone(tmp_path: Path) -> None:
    rows = [{**row, "laser": "much"} for row in ROWS]
    table = ScoreTable(write_table(tmp_path / "scores.tsv", rows, (*NAMES, "laser")))
    (block,) = table.blocks()
    assert "laser" not in block.numbers


def test_a_row_may_be_longer_than_a_line_of_text(tmp_path: Path) -> None:
    """It names the words of two lines, and the number of each."""
    words = ["ab"] * (MAX_LINE_BYTES // 3)
    listed = " ".join(f"{n}:{word}" for n, word in enumerate(words))
    pair = (" ".join(words), " ".join(words))
    cells = {"unsupported": listed, "uncovered": listed}
    table = ScoreTable(write_table(tmp_path / "scores.tsv", [score_row(1, *pair, **cells)]))
    ((_, block),) = table.blocks_with_pairs(write_pairs(tmp_path, [pair]))
    assert block.texts["uncovered"][0] == listed


@needs_pyarrow
def test_parquet(tmp_path: Path) -> None:
    from relakit.clean.parquet import write_parquet

    text = write_table(tmp_path / "scores.tsv", ROWS)
    path = tmp_path / "scores.parquet"
    with path.open("wb") as file:
        write_parquet(file, path, [text.read_bytes()])
    (expected,), (found,) = ScoreTable(text).blocks(), ScoreTable(path).blocks()
    for place in range(len(ROWS)):
        assert found.cells(place) == expected.cells(place)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="is no Parquet file, or is damaged"):
        ScoreTable(path)
