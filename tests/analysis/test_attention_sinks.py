"""Attention sinks against plain loops, and by hand."""

import pytest
import slow_numbers
import torch
from attention_cases import random_case, sentences

from relakit.analysis import end_sink_rate, first_sink_rate


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("causal", [False, True])
def test_against_loops(seed: int, causal: bool) -> None:
    case = random_case(seed, causal=causal, signed=seed % 3 == 0)
    weights, valid = case
    key_sizes = valid[:, 0].any(1).sum(-1)
    first, end = first_sink_rate(weights, valid), end_sink_rate(weights, key_sizes, valid)
    for head in range(weights.size(1)):
        slow_first = [slow_numbers.first_sink(w[head], v) for w, v in sentences(case)]
        slow_end = [
            slow_numbers.end_sink(w[head], v, int(size) - 1)
            for (w, v), size in zip(sentences(case), key_sizes, strict=True)
        ]
        for found, slow in ((first, slow_first), (end, slow_end)):
            expected = slow_numbers.added(slow)
            if expected is None:
                assert found[head].isnan()
            else:
                assert float(found[head]) == pytest.approx(expected, abs=1e-6)


def test_by_hand() -> None:
    weights = torch.tensor([[[[1.0, 3.0, 9.0], [0.0, 0.0, 9.0]]], [[[2.0, 1.0, 1.0], [9.0] * 3]]])
    valid = torch.tensor(
        [[[[True, True, False], [True, True, False]]], [[[True] * 3, [False] * 3]]]
    )
    # 1 of 4, null, 2 of 4 and padding.
    assert first_sink_rate(weights, valid).tolist() == [3 / 8]
    assert end_sink_rate(weights, torch.tensor([2, 3]), valid).tolist() == [4 / 8]


def test_one_token_and_null_heads() -> None:
    one = torch.tensor([[[[1.0]], [[0.0]]]])
    # A query that has no other key does not count for the first; its end is all there is.
    assert first_sink_rate(one).isnan().all()
    rates = end_sink_rate(one, torch.tensor([1]))
    assert rates[0] == 1
    assert rates[1].isnan()
