"""Links of two directions as one set."""

import random

import pytest

from relakit.align.settings import SYMMETRIZATIONS
from relakit.align.symmetrize import symmetrize

FORWARD = frozenset({(0, 0), (1, 1), (2, 1), (4, 4), (6, 5)})
BACKWARD = frozenset({(0, 0), (1, 1), (2, 2), (4, 4), (5, 6)})


def test_by_hand() -> None:
    both = {(0, 0), (1, 1), (4, 4)}
    assert symmetrize(FORWARD, BACKWARD, "intersection") == both
    assert symmetrize(FORWARD, BACKWARD, "union") == FORWARD | BACKWARD
    # (2, 1) lies below (1, 1), and source word 2 has no link yet; (2, 2) lies across, and target
    # word 2 has none. (6, 5) and (5, 6) lie beside no link.
    grown = both | {(2, 1), (2, 2)}
    assert symmetrize(FORWARD, BACKWARD, "grow-diag") == grown
    assert symmetrize(FORWARD, BACKWARD, "grow-diag-final") == grown | {(6, 5), (5, 6)}
    assert symmetrize(FORWARD, BACKWARD, "grow-diag-final-and") == grown | {(6, 5), (5, 6)}


def test_final_takes_what_reaches_one_free_word_and_final_and_what_reaches_two() -> None:
    forward, backward = frozenset({(0, 0), (0, 3)}), frozenset({(0, 0)})
    assert symmetrize(forward, backward, "grow-diag-final") == {(0, 0), (0, 3)}
    assert symmetrize(forward, backward, "grow-diag-final-and") == {(0, 0)}


def test_growing_goes_on_from_what_was_added() -> None:
    forward, backward = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (2, 2)})
    assert symmetrize(forward, backward, "grow-diag") == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.parametrize("method", SYMMETRIZATIONS)
def test_properties(method: str) -> None:
    chance = random.Random(3)
    for _ in range(200):
        forward, backward = (
            frozenset(
                (chance.randrange(6), chance.randrange(6)) for _ in range(chance.randrange(9))
            )
            for _ in range(2)
        )
        found = symmetrize(forward, backward, method)
        assert forward & backward <= found <= forward | backward
        exchanged = [frozenset((t, s) for s, t in links) for links in (backward, forward)]
        if not method.startswith("grow"):
            assert symmetrize(*exchanged, method) == {(t, s) for s, t in found}
        if method == "grow-diag-final":
            # Every word that has a link in either direction has one now.
            assert {s for s, _ in found} == {s for s, _ in forward | backward}
            assert {t for _, t in found} == {t for _, t in forward | backward}


def test_unknown_method() -> None:
    with pytest.raises(ValueError, match="unknown method 'grow'; choose one of intersection"):
        symmetrize(FORWARD, BACKWARD, "grow")
