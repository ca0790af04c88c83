"""Shards: what is in each, and what a survey finds."""

import os
from pathlib import Path

import pytest
from shard_works import write_files

from relakit.data.parallel_files import NumberedPair, ParallelFiles
from relakit.shards.cutting import (
    SHARD_BYTES,
    Shard,
    cut_into_shards,
    survey,
    surveyed_shards,
)


def pairs(count: int, text: str = "x") -> list[NumberedPair]:
    return [NumberedPair(number, text, text) for number in range(1, count + 1)]


def test_all_pairs_are_in_one_shard_each() -> None:
    shards = list(cut_into_shards(pairs(7), 3))
    assert [shard.index for shard in shards] == [0, 1, 2]
    assert [len(shard.pairs) for shard in shards] == [3, 3, 1]
    assert [pair for shard in shards for pair in shard.pairs] == pairs(7)


def test_much_text_ends_a_shard() -> None:
    sizes = [len(shard.pairs) for shard in cut_into_shards(pairs(5, "x" * (SHARD_BYTES // 4)), 100)]
    assert sizes == [2, 2, 1]


def test_shards_travel_as_json() -> None:
    shard = Shard(3, [NumberedPair(7, 'a "b"\t\u2028', "ü\U0001f600")])
    assert Shard.from_json(shard.to_json()) == shard


def test_in_words() -> None:
    assert Shard(0, pairs(1)).in_words("line") == "line 1"
    assert Shard(0, pairs(2000)).in_words("unit") == "units 1 to 2,000"


def test_survey(tmp_path: Path) -> None:
    files = write_files(tmp_path, 25)
    found = survey(files, 10)
    assert (found.pairs, found.shards) == (25, 3)
    assert survey(files, 7).digest == found.digest, "of the text, however it is cut"
    assert [shard.index for shard in surveyed_shards(files, 10, found)] == [0, 1, 2]


@pytest.mark.parametrize("change", [("s3\n", "s4\n"), ("s3\n", ""), ("s3\n", "s3 \n")])
def test_an_input_that_changes(tmp_path: Path, change: tuple[str, str]) -> None:
    files = write_files(tmp_path, 25)
    assert files.target is not None
    found = survey(files, 10)
    for path in files.paths:
        path.write_text(
            path.read_text().replace(*change).replace(*(c.replace("s", "t") for c in change))
        )
    with pytest.raises(ValueError, match="has changed while it was read"):
        list(surveyed_shards(files, 10, found))


@pytest.mark.parametrize("count", [20, 29, 31])
def test_a_changed_shard_is_not_given(tmp_path: Path, count: int) -> None:
    found = survey(write_files(tmp_path, 25), 10)
    shards = surveyed_shards(write_files(tmp_path, count), 10, found)
    assert [next(shards).index, next(shards).index] == [0, 1]
    with pytest.raises(ValueError, match="has changed while it was read"):
        next(shards)


def test_a_pipe_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no regular file: pairs are read twice"):
        survey(ParallelFiles(tmp_path / "pipe"), 10)
