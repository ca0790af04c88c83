"""Settings that are one of a few names."""

import pytest

from relakit.known_names import known_name


def test_a_known_one_comes_back() -> None:
    assert known_name("size", "small", {"tiny": 1, "small": 2}) == "small"


@pytest.mark.parametrize("given", ["huge", "", None, 3, ["small"]])
def test_another_is_answered_with_all_of_them(given: object) -> None:
    with pytest.raises(ValueError, match="unknown size") as caught:
        known_name("size", given, ("tiny", "small"))
    assert str(caught.value) == f"unknown size {given!r}; choose one of tiny, small"
