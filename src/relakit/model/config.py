"""The settings of a translation model, and its named sizes."""

from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from relakit.attention_kinds import AttentionKind
from relakit.data.tokenizer_pair import Tokenizers
from relakit.known_names import known_name
from relakit.limits import MAX_COUNT
from relakit.model.attention_setting import AttentionSetting, write_attention
from relakit.nn.variants import DEFAULT_ATTENTION, AttentionSpec, resolve_attention

Timescales: TypeAlias = Literal["vaswani", "tensor2tensor"]

Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]

SIZES: Final = MappingProxyType(
    {
        "tiny": {"dim": 128, "heads": 4, "layers": 2, "feed_forward": 512},
        "small": {"dim": 256, "heads": 4, "layers": 3, "feed_forward": 1024},
        "base": {"dim": 512, "heads": 8, "layers": 6, "feed_forward": 2048},
    }
)
"""``tiny`` for tests and the demo, ``small`` for small corpora, ``base`` is the paper's."""
_BASE: Final = SIZES["base"]


class ModelOptions(BaseModel):
    """What a model has besides its size and its attention; recipes take the same settings.

    Where the paper is silent, the authors' code may differ from the default; see
    ``docs/authors.md``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dropout: Share = 0.1
    """Applied to the embeddings and to what each sublayer adds, in training."""
    attention_dropout: Share = 0.1
    """Applied to the attention weights, in training."""
    feed_forward_dropout: Share = 0.0
    """Applied to the inner activations of the feed-forward layers, in training."""
    norm_first: bool = False
    """LayerNorm before each sublayer (pre-norm) instead of after it (post-norm)."""
    norm_eps: Positive = 1e-5
    """Added to the variance in every LayerNorm."""
    source_embedding: Literal["shared", "separate"] = "shared"
    """Whether the source shares the matrix of target and output, or has its own."""
    embedding_bias: bool = False
    """Add a learned vector, the same on both sides, to all embeddings."""
    first_input: Literal["begin", "zeros"] = "begin"
    """What the decoder reads first: the begin-of-sentence token, or a vector of zeros."""
    timescales: Timescales = "vaswani"
    """The frequency of position feature i: 10000^(-i / (dim / 2)), as in Vaswani et al. (2017), or
    10000^(-i / (dim / 2 - 1)), as in their code, tensor2tensor."""
    self_attention_init: Literal["separate", "joint"] = "separate"
    """Whether query, key and value of self-attention are initialised as three matrices or one."""


class ModelConfig(ModelOptions):
    """An encoder-decoder Transformer. The defaults are the paper's (Transformer base)."""

    vocabulary: Count
    """Entries in the vocabulary of target and output, and of the source unless it has its own."""
    source_vocabulary: Count | None = None
    """Entries in the source's own vocabulary, if it has one; it then has its own matrix."""
    dim: Count = _BASE["dim"]
    """Features of every position."""
    heads: Count = _BASE["heads"]
    """Number of attention heads; divides ``dim``."""
    encoder_layers: Count = _BASE["layers"]
    decoder_layers: Count = _BASE["layers"]
    feed_forward: Count = _BASE["feed_forward"]
    """Features inside the feed-forward layers."""
    encoder_attention: AttentionSetting = DEFAULT_ATTENTION
    """Self-attention in the encoder: a name in `relakit.ATTENTIONS`, or an `AttentionSpec`."""
    decoder_attention: AttentionSetting = DEFAULT_ATTENTION
    """Self-attention in the decoder."""
    cross_attention: AttentionSetting = DEFAULT_ATTENTION
    """Attention from the decoder to the encoder."""

    def attention(self, kind: AttentionKind) -> str:
        """The name of the attention of this kind, or a description if it has no name."""
        return write_attention(getattr(self, f"{kind}_attention"))

    def attention_spec(self, kind: AttentionKind) -> AttentionSpec:
        """The full specification of the attention of this kind."""
        return resolve_attention(getattr(self, f"{kind}_attention"))

    @property
    def source_entries(self) -> int:
        """Entries in the vocabulary of the source."""
        return self.vocabulary if self.source_vocabulary is None else self.source_vocabulary

    def check_tokenizer(
        self, tokenizers: Tokenizers, name: str = "the tokenizer", *, exactly: bool = False
    ) -> None:
        """Raise ValueError for a tokenizer that does not fit, as one with more entries.

        With ``exactly``, also for one with fewer, which the tokenizer of a trained model never has.
        """
        size, source_size = tokenizers.sizes
        if (source_size is None) != (self.source_vocabulary is None):
            raise ValueError(
                f"{name} is of {'both languages' if source_size is None else 'one language each'}, "
                "the model's is not: they do not belong together"
            )
        for side, entries, known in (
            ("", size, self.vocabulary),
            (" of the source", source_size or 0, self.source_vocabulary or 0),
        ):
            if entries > known or (exactly and entries < known):
                raise ValueError(
                    f"{name}{side} has {entries:,} entries, the model {known:,}: they do not "
                    "belong together"
                )

    @model_validator(mode="after")
    def _fit(self) -> "ModelConfig":
        if self.source_vocabulary is not None and self.source_embedding != "separate":
            raise ValueError(
                "source_embedding must be 'separate' with a source_vocabulary, got "
                f"{self.source_embedding!r}"
            )
        if self.dim % self.heads:
            raise ValueError(f"heads must divide dim, got heads={self.heads} and dim={self.dim}")
        if self.dim % 2:
            raise ValueError(f"dim must be even (a sine and a cosine each), got {self.dim}")
        return self


def sized(size: str) -> dict[str, int]:
    """The fields of `ModelConfig` that a named size sets."""
    fields = dict(SIZES[known_name("size", size, SIZES)])
    layers = fields.pop("layers")
    return {**fields, "encoder_layers": layers, "decoder_layers": layers}
