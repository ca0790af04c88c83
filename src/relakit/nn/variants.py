"""The kinds of attention: `AttentionSpec`, and a name for each row of the paper's Table 1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from relakit.known_names import known_name
from relakit.ops.options import DEFAULT_EPS, SMALLEST_EPS, ActivationName, check_options

Norm = Literal["none", "rms", "layer"]
GainInit = Literal["ones", "xavier", "xavier-head"]
AttentionName: TypeAlias = Literal[
    "softmax",
    "sparsemax",
    "entmax15",
    "relu",
    "relu-rms",
    "rela-i",
    "rela-g",
    "rela-g-layernorm",
    "rela-g-gelu",
    "rela-g-leaky",
]
"""Rows 1 to 10 of the paper's Table 1, in order."""
DEFAULT_ATTENTION: Final[AttentionName] = "rela-g"
"""The default for modules, conversions, models and recipes."""


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """A kind of multi-head attention. The defaults give ReLA-g, including its norm."""

    activation: ActivationName = "relu"
    """Turns scores into weights: a name in `relakit.attention`'s list of activations."""
    norm: Norm = "rms"
    """Normalisation of the concatenated heads: ``"none"``, ``"rms"`` (eq. 4) or ``"layer"``."""
    gate: bool | None = None
    """Whether to multiply the norm by sigmoid(gate * z) (eq. 5). None: yes if there is a norm."""
    gain_init: GainInit = "ones"
    """The norm's initial gain: ``"ones"``, or uniform in ±sqrt(3 / fan) as in ReLA-i, where fan is
    the model's dimension (``"xavier"``) or the head's (``"xavier-head"``)."""
    norm_eps: float = DEFAULT_EPS
    """Added under the norm's root."""
    threshold: float | Literal["learned"] = 0.0
    """Subtracted from the scores; ``"learned"``: a parameter per head that starts at 0."""
    power: float = 1.0
    """The rectified score is raised to this power."""
    length_exponent: float = 0.0
    """Weights are divided by (number of valid keys) to this power."""

    def has_norm_of(self, other: "AttentionSpec") -> bool:
        """Whether both have the same norm, so that one can keep the other's parameters."""
        return (self.norm, self.gate, self.gain_init, self.norm_eps) == (
            other.norm,
            other.gate,
            other.gain_init,
            other.norm_eps,
        )

    def __post_init__(self) -> None:
        check_options(
            self.activation,
            threshold=self.threshold,
            power=self.power,
            length_exponent=self.length_exponent,
        )
        known_name("norm", self.norm, get_args(Norm))
        known_name("gain_init", self.gain_init, get_args(GainInit))
        if self.threshold != "learned" and not isinstance(self.threshold, (int, float)):
            raise ValueError(f"threshold must be a number or 'learned', got {self.threshold!r}")
        if not isinstance(self.norm_eps, (int, float)) or not (
            SMALLEST_EPS <= self.norm_eps < math.inf
        ):
            raise ValueError(
                f"norm_eps must be a finite number of at least {SMALLEST_EPS}, got "
                f"{self.norm_eps!r}"
            )
        if not (self.gate is None or isinstance(self.gate, bool)):
            raise ValueError(f"gate must be True, False or None, got {self.gate!r}")
        if self.gate is None:
            object.__setattr__(self, "gate", self.norm != "none")  # frozen, but being constructed
        if self.norm == "none" and self.gate:
            raise ValueError("gate=True needs a norm to gate: norm='rms' or 'layer', got 'none'")
        if self.norm == "none" and self.gain_init != "ones":
            raise ValueError(
                f"gain_init={self.gain_init!r} needs a norm: norm='rms' or 'layer', got 'none'"
            )


def _plain(activation: ActivationName) -> AttentionSpec:
    return AttentionSpec(activation=activation, norm="none")


ATTENTIONS: Final[Mapping[AttentionName, AttentionSpec]] = MappingProxyType(
    {
        "softmax": _plain("softmax"),
        "sparsemax": _plain("sparsemax"),
        "entmax15": _plain("entmax15"),
        "relu": _plain("relu"),
        "relu-rms": AttentionSpec(gate=False),
        "rela-i": AttentionSpec(gate=False, gain_init="xavier"),
        "rela-g": AttentionSpec(),
        "rela-g-layernorm": AttentionSpec(norm="layer"),
        "rela-g-gelu": AttentionSpec(activation="gelu"),
        "rela-g-leaky": AttentionSpec(activation="leaky_relu"),
    }
)


def resolve_attention(attention: AttentionName | AttentionSpec) -> AttentionSpec:
    """The spec for a name in ATTENTIONS; a spec is returned unchanged."""
    if isinstance(attention, AttentionSpec):
        return attention
    if not isinstance(attention, str) or attention not in ATTENTIONS:
        hint = ""
        if isinstance(attention, str):
            spelt = attention.lower().replace("_", "-")
            hint = f" (did you mean {spelt!r}?)" if spelt in ATTENTIONS else ""
        raise ValueError(
            f"unknown attention {attention!r}{hint}; choose one of {', '.join(ATTENTIONS)}, or "
            "pass an AttentionSpec"
        )
    return ATTENTIONS[attention]
