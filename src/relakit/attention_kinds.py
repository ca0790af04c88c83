"""The kinds of attention in an encoder-decoder Transformer."""

from typing import Final, Literal, TypeAlias, get_args

AttentionKind: TypeAlias = Literal["encoder", "decoder", "cross"]
"""Which attention: the encoder's self-attention, the decoder's self-attention, or the decoder's
attention to the encoder."""
ATTENTION_KINDS: Final[tuple[AttentionKind, ...]] = get_args(AttentionKind)
