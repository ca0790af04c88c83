"""How many threads torch computes with."""

import pytest
import torch

from relakit.threads import limited_threads, set_threads


def test_a_block_gives_the_threads_back() -> None:
    before = torch.get_num_threads()
    seen = []

    def fail() -> None:
        with limited_threads(before + 1):
            seen.append(torch.get_num_threads())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [before + 1]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("number", "expected"), [(3, 3), (0, 2), (None, 2)])
def test_no_number_changes_nothing(number: int | None, expected: int) -> None:
    with limited_threads(2):
        set_threads(number)
        assert torch.get_num_threads() == expected
