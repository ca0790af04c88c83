"""examples/attention_choices.py."""

import pytest
import torch
from attention_choices import CHOICES, attention_rates

from relakit import ATTENTIONS
from relakit.nn.capture import AttentionRecord


def test_every_named_attention_can_be_chosen() -> None:
    assert set(ATTENTIONS) < set(CHOICES)


def test_rates_are_means_over_heads_without_padding() -> None:
    # One text of two tokens, the second padding; of two heads one attends to nothing.
    weights = torch.tensor([[[[0.5, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]]])
    record = AttentionRecord(weights, None)
    rates = attention_rates({"layer": [record]}, torch.tensor([[True, False]]))
    assert rates == pytest.approx({"zeros": 0.75, "nulls": 0.5, "sink": 1.0})
