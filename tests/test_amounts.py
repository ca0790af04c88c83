"""Amounts as people read them."""

import pytest

from relakit.amounts import format_bytes, number_with_noun


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (1 << 30, "1.0 GiB"),
        (250 << 30, "250 GiB"),
        (10**27, "867,361,738 EiB"),
    ],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (2000, "2,000 runs")]
)
def test_one_of_them_and_several(number: int, text: str) -> None:
    assert number_with_noun(number, "run") == text
