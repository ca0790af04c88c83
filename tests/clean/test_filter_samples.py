"""Which pairs are shown, and what is told about them."""

from pathlib import Path

import numpy as np
from pair_texts import write_pairs
from score_samples import score_row, write_table

from relakit.clean.cut import cut_at, keep_best
from relakit.clean.filter_samples import (
    ABOVE,
    BELOW,
    BEST,
    MOST_CHARACTERS,
    PER_GROUP,
    WORST,
    SampleCollector,
    choose_places,
)
from relakit.clean.measures import ColumnMeasure
from relakit.clean.score_table import ScoreTable


def test_from_both_ends_and_around_the_cut() -> None:
    badness = np.random.default_rng(1).permutation(5000).astype(float)
    badness[::10] = np.nan
    cut = keep_best(badness, 0.6)
    places = choose_places(cut, seed=1)
    ranks = np.argsort(np.argsort(badness))
    groups = {
        group: sorted(ranks[place] for place, of in places.items() if of == group)
        for group in (BEST, ABOVE, BELOW, WORST)
    }
    assert {group: len(of) for group, of in groups.items()} == dict.fromkeys(groups, PER_GROUP)
    assert max(groups[BEST]) < 0.05 * 4500
    assert groups[ABOVE] == list(range(2700 - PER_GROUP, 2700))
    assert groups[BELOW] == list(range(2700, 2700 + PER_GROUP))
    assert 0.95 * 4500 <= min(groups[WORST]) <= max(groups[WORST]) < 4500
    assert choose_places(cut, seed=1) == places
    assert choose_places(cut, seed=2) != places


def test_few_pairs_are_shown_once() -> None:
    places = choose_places(cut_at(np.array([1.0, 3.0, np.nan, 2.0]), 2.0), seed=1)
    assert places == {0: ABOVE, 3: ABOVE, 1: BELOW}


def test_what_is_told(tmp_path: Path) -> None:
    pairs = [("a b c", "x y"), ("long " * 1000, "z")]
    rows = [
        score_row(1, *pairs[0], unsupported="1:y", uncovered="0:a 2:c:d", worst_word="0:x"),
        score_row(2, *pairs[1], cross_entropy=9.0),
    ]
    table = ScoreTable(write_table(tmp_path / "scores.tsv", rows))
    measure = ColumnMeasure("cross_entropy")
    collector = SampleCollector(cut_at(np.array([2.0, 9.0]), 4.0))
    for some, block in table.blocks_with_pairs(write_pairs(tmp_path, pairs)):
        collector.add(some, block, measure.look(block))
    first, second = collector.samples
    assert (first.unsupported, first.uncovered, first.worst) == ([1], [0, 2], 0)
    assert (first.kept, first.reason, first.line) == (True, "", 1)
    assert (second.kept, second.reason) == (False, "cross_entropy 9 > 4")
    assert second.worst is None
    assert len(second.source) == MOST_CHARACTERS + 2
    assert first.scores["target_words"] == 2
    assert "dual_cross_entropy" not in first.scores
