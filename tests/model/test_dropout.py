"""Dropout's share, its scale and its gradient."""

import pytest
import torch

from relakit.model.dropout import Dropout


def test_dropout() -> None:
    torch.manual_seed(1)
    dropout = Dropout(0.3)
    x = torch.ones(501, 403, requires_grad=True)
    y = dropout(x)
    share = (y == 0).float().mean().item()
    assert share == pytest.approx(0.3, abs=0.005)
    assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    assert set(y.unique().tolist()) == {0.0, y.max().item()}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert dropout(x.bfloat16()).dtype == torch.bfloat16
    assert dropout.eval()(x) is x
