"""Configs that belong to only one model."""

from copy import deepcopy
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel


def own_configs(model: PreTrainedModel) -> None:
    """Give a model and its modules copies of their configs.

    A model of transformers keeps the config object that it was created from, so anything written
    into it would be read by every other model created from the same object.
    """
    copies: dict[int, Any] = {}  # shared, so that a config within a config stays the same object
    for module in model.modules():
        attributes = vars(module)
        for name, value in attributes.items():
            if isinstance(value, PreTrainedConfig):
                attributes[name] = deepcopy(value, copies)
