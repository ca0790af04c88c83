"""Configs that belong to one model alone."""

from copy import deepcopy
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel


def own_configs(model: PreTrainedModel) -> None:
    """Give a model, and its modules, copies of their configs.

    A model of transformers keeps the config object that it was made from, so what is written into
    it would be read by every other model that was made from the same.
    """
    copies: dict[int, Any] = {}  # one for all, so that a config within a config stays that
    for module in model.modules():
        attributes = vars(module)
        for name, value in attributes.items():
            if isinstance(value, PreTrainedConfig):
                attributes[name] = deepcopy(value, copies)
