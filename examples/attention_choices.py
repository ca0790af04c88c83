"""The kinds of attention that the examples compare, and rates that describe what they look at."""

import torch
from torch import Tensor

from relakit import ATTENTIONS, AttentionSpec
from relakit.analysis import first_sink_rate, null_rate, sparsity_rate
from relakit.nn.capture import Records

CHOICES: dict[str, AttentionSpec] = {
    **ATTENTIONS,
    "rela-g-threshold": AttentionSpec(threshold="learned"),
    # A norm would undo the division by the number of keys.
    "relu2-length": AttentionSpec(power=2.0, length_exponent=1.0, norm="none"),
    "softpick": AttentionSpec(activation="softpick", norm="none"),
    "sigmoid": AttentionSpec(activation="sigmoid", norm="none"),
}


def attention_rates(records: Records, is_query: Tensor | None = None) -> dict[str, float]:
    """What `relakit.capture` has recorded, in three numbers: means over layers and heads.

    zeros: weights that are exactly 0. nulls: queries that attend to nothing. sink: the share of the
    attention that lies on the first key.

    Args:
        records: what was recorded, by module name.
        is_query: ``[batch, queries]``, False for padding.
    """
    rates: dict[str, list[Tensor]] = {"zeros": [], "nulls": [], "sink": []}
    for record in (record for calls in records.values() for record in calls):
        valid = record.valid
        if is_query is not None:
            queries = is_query[:, None, :, None]
            valid = queries if valid is None else queries & valid
        rates["zeros"].append(sparsity_rate(record.weights, valid))
        rates["nulls"].append(null_rate(record.weights, valid))
        rates["sink"].append(first_sink_rate(record.weights, valid))
    # A head without any weight has no sink rate.
    return {name: torch.stack(heads).nanmean().item() for name, heads in rates.items()}
