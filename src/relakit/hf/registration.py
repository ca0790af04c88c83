"""Registers the attention and its masks with transformers, under one name."""

from typing import Final

from transformers.masking_utils import AttentionMaskInterface
from transformers.modeling_utils import AttentionInterface

from relakit.hf.attention_function import rela_attention
from relakit.hf.masks import rela_mask

NAME: Final = "rela"
"""What to pass as ``attn_implementation``."""


def register() -> None:
    """Make ``attn_implementation="rela"`` work. Importing `relakit.hf` does this.

    A name without its own mask function would get no masks at all, so both are registered.
    """
    AttentionInterface.register(NAME, rela_attention)
    AttentionMaskInterface.register(NAME, rela_mask)
