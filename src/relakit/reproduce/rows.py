"""The models of Table 1, by row."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

BASELINE: Final = "softmax"
OURS: Final = "rela-g"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A model of the paper's Table 1, or a variant of one."""

    number: int
    """Its ID in the table; variants have the ID of the row they change."""
    label: str
    """What the paper calls it, or what is changed."""
    attention: str
    """A name in `relakit.ATTENTIONS`."""
    only: str | None = None
    """The one kind of attention it is used for; the others are softmax. None for all three."""
    minutes_factor: float = 1.0
    """Roughly how many times as long as softmax it trains; for estimates."""
    others: tuple[str, ...] = ()
    """Further settings of a recipe, as ``--set`` takes them."""

    def settings(self) -> list[str]:
        """The settings for a recipe, as ``--set`` takes them."""
        if self.only is None:
            return [f"model.attention={self.attention}", *self.others]
        own = f"model.{self.only}_attention={self.attention}"
        return [f"model.attention={BASELINE}", own, *self.others]


ROWS: Final = MappingProxyType(
    {
        "softmax": Row(number=1, label="Baseline (softmax)", attention="softmax"),
        "sparsemax": Row(
            number=2, label="1 + sparsemax", attention="sparsemax", minutes_factor=1.5
        ),
        "entmax15": Row(number=3, label="1 + 1.5-entmax", attention="entmax15", minutes_factor=1.5),
        "relu": Row(number=4, label="1 + ReLU alone", attention="relu"),
        "relu-rms": Row(number=5, label="4 + RMSNorm", attention="relu-rms"),
        "rela-i": Row(number=6, label="1 + ReLA-i", attention="rela-i"),
        "rela-g": Row(number=7, label="1 + ReLA-g", attention="rela-g"),
        "rela-g-layernorm": Row(number=8, label="7 + LayerNorm", attention="rela-g-layernorm"),
        "rela-g-gelu": Row(number=9, label="7 + GeLU", attention="rela-g-gelu"),
        "rela-g-leaky": Row(number=10, label="7 + Leaky ReLU", attention="rela-g-leaky"),
        "rela-g-encoder": Row(
            number=11, label="7 + Encoder Attention Only", attention="rela-g", only="encoder"
        ),
        "rela-g-decoder": Row(
            number=12, label="7 + Decoder Attention Only", attention="rela-g", only="decoder"
        ),
        "rela-g-cross": Row(
            number=13, label="7 + Cross Attention Only", attention="rela-g", only="cross"
        ),
    }
)
"""By the name in result files."""


def _variant(label: str, *others: str, attention: str = OURS, only: str | None = None) -> Row:
    number = next(row.number for row in ROWS.values() if row.attention == attention)
    return Row(number=number, label=label, attention=attention, only=only, others=others)


_SMALL_UPDATES: Final = (
    "training.batch_tokens=750", "training.update_tokens=650", "training.warmup=800",
    "training.checkpoint_every=300",
)  # fmt: skip
_DEMO: Final = (*_SMALL_UPDATES, "training.epochs=8")
VARIANTS: Final = MappingProxyType(
    {
        "joint-init": _variant(
            "the authors' joint initialisation of q, k, v", "model.self_attention_init=joint"
        ),
        "half-rate": _variant("learning rate factor 0.5", "training.learning_rate_factor=0.5"),
        "encoder-softmax": _variant("softmax in the encoder", "model.encoder_attention=softmax"),
        "more-epochs": _variant("8 epochs", "training.epochs=8"),
        "softmax-more-epochs": _variant(
            "softmax, 8 epochs", "training.epochs=8", attention="softmax"
        ),
        "higher-rate": _variant("learning rate factor 1.5", "training.learning_rate_factor=1.5"),
        "long-warmup": _variant("warm-up of 1,200 updates", "training.warmup=1200"),
        "attention-dropout": _variant("attention dropout 0.1", "model.attention_dropout=0.1"),
        "feed-forward-dropout": _variant(
            "feed-forward dropout 0.1", "model.feed_forward_dropout=0.1"
        ),
        "small-updates": _variant("updates of 650 tokens", *_SMALL_UPDATES),
        "softmax-small-updates": _variant(
            "softmax, updates of 650 tokens", *_SMALL_UPDATES, attention="softmax"
        ),
        "small-updates-more-epochs": _variant("updates of 650 tokens, 8 epochs: the demo", *_DEMO),
        "softmax-small-updates-more-epochs": _variant(
            "softmax, updates of 650 tokens, 8 epochs", *_DEMO, attention="softmax"
        ),
        "clipping": _variant("gradients clipped at norm 1", "training.clip_norm=1.0"),
    }
)
"""What may keep training stable: changes to the recipe, by the name in result files.

Smaller updates come with their own warm-up.
"""
ALL_ROWS: Final = MappingProxyType({**ROWS, **VARIANTS})
