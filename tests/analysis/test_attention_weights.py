"""What can be told of attention weights without a model."""

import numpy as np

from relakit.analysis.attention_weights import null_query_share


def test_null_query_share() -> None:
    weights = np.zeros((2, 2, 3, 4), dtype=np.float32)
    weights[0, 0, 0] = [1, 0, 0, 2]
    weights[1, 1, 2] = [-0.5, 0, 0, 0]
    assert null_query_share(weights) == 10 / 12
    assert null_query_share(weights[..., :0, :]) == 0.0, "of a text without tokens"
