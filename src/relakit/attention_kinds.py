"""The kinds of attention in an encoder-decoder Transformer."""

from typing import Final, Literal, TypeAlias, get_args

AttentionKind: TypeAlias = Literal["encoder", "decoder", "cross"]
"""Which attention: the encoder's on itself, the decoder's on itself, the decoder's on the
encoder."""
ATTENTION_KINDS: Final[tuple[AttentionKind, ...]] = get_args(AttentionKind)
