"""Sparsity and null rate on cases worked out by hand."""

import pytest
import torch

from relakit.analysis import null_rate, sparsity_rate

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
