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


def by_the_pseudo_code(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]], size: int, method: str
) -> set[tuple[int, int]]:
    """As Koehn's pseudo code has it, over the whole matrix; e is the target, f the source."""
    neighbouring = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    aligned = [[(f, e) in forward & backward for f in range(size)] for e in range(size)]

    def e_is_free(e: int) -> bool:
        return not any(aligned[e])

    def f_is_free(f: int) -> bool:
        return not any(row[f] for row in aligned)

    added = True
    while added:
        added = False
        for e in range(size):
            for f in range(size):
                if not aligned[e][f]:
                    continue
                for down, right in neighbouring:
                    new_e, new_f = e + down, f + right
                    if (new_f, new_e) not in forward | backward:
                        continue
                    if e_is_free(new_e) or f_is_free(new_f):
                        aligned[new_e][new_f] = added = True
    for direction in (forward, backward) if "final" in method else ():
        for e in range(size):
            for f in range(size):
                free = e_is_free(e), f_is_free(f)
                is_wanted = all(free) if method.endswith("and") else any(free)
                if (f, e) in direction and is_wanted:
                    aligned[e][f] = True
    return {(f, e) for e in range(size) for f in range(size) if aligned[e][f]}


@pytest.mark.parametrize("method", ["grow-diag", "grow-diag-final", "grow-diag-final-and"])
def test_against_the_pseudo_code(method: str) -> None:
    chance = random.Random(5)
    for _ in range(500):
        size = chance.randint(2, 8)
        forward, backward = (
            {(chance.randrange(size), chance.randrange(size)) for _ in range(2 * size)}
            for _ in range(2)
        )
        expected = by_the_pseudo_code(forward, backward, size, method)
        assert symmetrize(forward, backward, method) == expected


def test_a_link_that_was_just_added_grows_in_the_same_pass() -> None:
    # (2, 1) adds (1, 0) and (1, 2). Target word 2 comes later in the same pass, so (1, 2) adds
    # (0, 1); when (1, 0) has its turn, in the next pass, both words of (0, 0) have links.
    forward, backward = {(0, 1), (1, 2), (2, 1)}, {(0, 0), (1, 0), (2, 1)}
    grown = {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert symmetrize(forward, backward, "grow-diag") == grown


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
