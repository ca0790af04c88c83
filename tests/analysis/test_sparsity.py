"""Sparsity and null rate on cases worked out by hand."""

import pytest
import slow_numbers
import torch
from attention_cases import random_case, sentences

from relakit.analysis import layer_null_rate, null_rate, sparsity_rate

# One sequence, two heads, three queries, three keys.
WEIGHTS = torch.tensor(
    [
        [
            [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 3.0, 4.0]],
            [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.5]],
        ]
    ]
)
CAUSAL = torch.ones(3, 3, dtype=torch.bool).tril()


def test_without_a_mask() -> None:
    torch.testing.assert_close(sparsity_rate(WEIGHTS), torch.tensor([5 / 9, 8 / 9]))
    torch.testing.assert_close(null_rate(WEIGHTS), torch.tensor([1 / 3, 2 / 3]))


def test_masked_keys_do_not_count() -> None:
    # Valid: one, two and three keys. Head 0 is then null for queries 0 and 1.
    torch.testing.assert_close(sparsity_rate(WEIGHTS, CAUSAL), torch.tensor([3 / 6, 5 / 6]))
    torch.testing.assert_close(null_rate(WEIGHTS, CAUSAL), torch.tensor([2 / 3, 2 / 3]))


def test_queries_without_a_valid_key_do_not_count() -> None:
    valid = torch.tensor([[True], [False], [True]]).expand(3, 3)
    torch.testing.assert_close(null_rate(WEIGHTS, valid), torch.tensor([0.0, 1 / 2]))
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    assert null_rate(WEIGHTS, nothing).isnan().all()
    assert sparsity_rate(WEIGHTS, nothing).isnan().all()


def test_negative_weights_are_no_zeros() -> None:
    assert sparsity_rate(-WEIGHTS).tolist() == sparsity_rate(WEIGHTS).tolist()
    assert null_rate(-WEIGHTS).tolist() == null_rate(WEIGHTS).tolist()


def test_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"\[\.\.\., heads, queries, keys\], got shape \(3, 3\)"):
        sparsity_rate(torch.ones(3, 3))


@pytest.mark.parametrize("seed", range(30))
def test_against_loops(seed: int) -> None:
    case = random_case(seed, causal=seed % 2 == 0, signed=seed % 5 == 0)
    weights, valid = case
    sparse, null = sparsity_rate(weights, valid), null_rate(weights, valid)
    for head in range(weights.size(1)):
        slow = [slow_numbers.sparsity(w[head], v) for w, v in sentences(case)]
        assert float(sparse[head]) == pytest.approx(slow_numbers.added(slow))
        slow = [slow_numbers.null(w[head], v) for w, v in sentences(case)]
        assert float(null[head]) == pytest.approx(slow_numbers.added(slow))
    slow = [slow_numbers.layer_null(w, v) for w, v in sentences(case)]
    assert float(layer_null_rate(weights, valid)) == pytest.approx(slow_numbers.added(slow))


def test_layer_null_rate_by_hand() -> None:
    assert float(layer_null_rate(WEIGHTS)) == pytest.approx(1 / 3)  # query 1
    assert float(layer_null_rate(WEIGHTS, CAUSAL)) == pytest.approx(2 / 3)  # and 0, masked
    assert float(layer_null_rate(torch.zeros(2, 3, 4, 5))) == 1
    assert layer_null_rate(WEIGHTS, torch.zeros(3, 3, dtype=torch.bool)).isnan()


def test_masks_may_differ_between_heads() -> None:
    valid = torch.ones(2, 3, 3, dtype=torch.bool)
    valid[1, 2] = False
    torch.testing.assert_close(sparsity_rate(WEIGHTS, valid), torch.tensor([5 / 9, 1.0]))
    torch.testing.assert_close(null_rate(WEIGHTS, valid), torch.tensor([1 / 3, 1.0]))
