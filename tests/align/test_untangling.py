"""Spans that cross."""

from hypothesis import given
from hypothesis import strategies as st

from relakit.align.untangling import untangle

SPANS = st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda span: (span[0], sum(span)))


def crosses(one: tuple[int, int], two: tuple[int, int]) -> bool:
    first, second = sorted([one, two])
    return first[0] < second[0] < first[1] < second[1]


def encloses(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return one[0] <= two[0] and two[1] <= one[1]


@given(st.lists(SPANS, max_size=12))
def test_none_cross_any_more(spans: list[tuple[int, int]]) -> None:
    widened = untangle(spans)
    assert widened.keys() == set(spans)
    assert not any(crosses(one, two) for one in widened.values() for two in widened.values())
    assert all(encloses(new, old) for old, new in widened.items())
    for outer in spans:
        for inner in spans:
            if encloses(outer, inner):
                assert encloses(widened[outer], widened[inner])


@given(st.lists(SPANS, max_size=12))
def test_spans_that_cross_no_other_stay(spans: list[tuple[int, int]]) -> None:
    if not any(crosses(one, two) for one in spans for two in spans):
        assert all(old == new for old, new in untangle(spans).items())


def test_the_one_that_takes_in_less_is_widened() -> None:
    assert untangle([(0, 4), (3, 20)]) == {(0, 4): (0, 4), (3, 20): (0, 20)}
    assert untangle([(0, 17), (16, 20)]) == {(0, 17): (0, 20), (16, 20): (16, 20)}
    assert untangle([(0, 3), (0, 9), (2, 4)]) == {(0, 9): (0, 9), (0, 3): (0, 4), (2, 4): (2, 4)}
    # Two take in a word each, where the third would take in four.
    assert untangle([(0, 5), (1, 5), (4, 6)]) == {(0, 5): (0, 6), (1, 5): (1, 6), (4, 6): (4, 6)}


def test_many() -> None:
    steps = [(start, start + 5) for start in range(0, 1500)]
    widened = set(untangle(steps).values())
    assert not any(crosses(one, two) for one in widened for two in list(widened)[:20])
