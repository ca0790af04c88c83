"""Head diversity against plain loops, and where the answer is known."""

import math

import pytest
import slow_numbers
import torch
from attention_cases import random_case, sentences

from relakit.analysis import head_diversity

TEMPERATURES = (1.0, 0.5, 0.25, 0.1)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("temperature", [None, *TEMPERATURES])
def test_against_loops(seed: int, temperature: float | None) -> None:
    sums_to_one = temperature is None
    case = random_case(seed, sums_to_one=sums_to_one, causal=seed % 2 == 0, signed=seed % 5 == 0)
    slow = [slow_numbers.diversity(w, v, temperature) for w, v in sentences(case)]
    expected = slow_numbers.added(slow)
    assert float(head_diversity(*case, temperature)) == pytest.approx(expected, abs=2e-6)
    assert float(head_diversity(*case, temperature)) <= math.log(case[0].size(1)) + 1e-6


@pytest.mark.parametrize("temperature", [None, *TEMPERATURES])
def test_identical_heads_agree(temperature: float | None) -> None:
    one = torch.rand(2, 1, 5, 7).softmax(-1)
    assert float(head_diversity(one.expand(2, 3, 5, 7), None, temperature)) < 1e-6
    assert float(head_diversity(one, None, temperature)) < 1e-6


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_null_heads(temperature: float) -> None:
    """Null attention is a distribution of its own: heads agree on it, or differ by it alone."""
    assert head_diversity(torch.zeros(1, 4, 3, 3), None, temperature) == 0
    weights = torch.zeros(1, 2, 1, 3)
    weights[0, 0, 0] = torch.tensor([0.0, 1.0, 2.0])
    # Two heads without a key in common: as different as two heads can be.
    found = float(head_diversity(weights, None, temperature))
    assert found == pytest.approx(math.log(2), abs=1e-6)


def test_disjoint_heads_and_zero_weights() -> None:
    assert float(head_diversity(torch.eye(4)[None, :, None])) == pytest.approx(math.log(4))
    # A key of weight 0 stays a key: softmax(1, 0), softmax(0, 1), and their mean of halves.
    p = math.e / (math.e + 1)
    expected = math.log(2) + p * math.log(p) + (1 - p) * math.log(1 - p)
    found = head_diversity(torch.eye(2)[None, :, None], None, 0.25)
    assert float(found) == pytest.approx(expected, abs=1e-6)


def test_large_weights_do_not_overflow() -> None:
    weights = torch.tensor([[[[500.0, 0.0]], [[0.0, 500.0]]]])
    assert float(head_diversity(weights, None, 1.0)) == pytest.approx(math.log(2), abs=1e-6)


def test_one_token_sentences_have_no_diversity() -> None:
    assert float(head_diversity(torch.ones(3, 4, 1, 1))) == 0
    assert head_diversity(torch.ones(1, 2, 1, 1), torch.zeros(1, 1, dtype=torch.bool)).isnan()


def test_temperature_is_positive() -> None:
    with pytest.raises(ValueError, match=r"temperature must be above 0, got 0\.0"):
        head_diversity(torch.ones(1, 2, 1, 1), None, 0.0)
