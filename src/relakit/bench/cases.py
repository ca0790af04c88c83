"""What is measured: one case is one shape, one kind of pass and one share of zeros.

This module does not import torch, so that the command line can list its choices quickly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Final, Literal, TypeAlias

from relakit.known_names import known_name

MODES: Final = {
    "forward": "forward pass, every query sees every key",
    "both": "forward and backward pass",
    "causal-forward": "forward pass, query i sees the keys 0 to i",
    "causal-both": "forward and backward pass, causal",
    "decode": "one query, as many keys as the length says; forward pass",
}
DTYPES: Final = ("float32", "bfloat16")
MASKS: Final = ("none", "padding", "additive")
TOKENS: Final = 2048
"""Positions in a batch, unless the batch size is given: short sequences come in larger batches."""
DEMO: Final = "demo"
DEMO_DIM: Final = 16
"""Features per head of the demo model."""

Zeros: TypeAlias = float | Literal["demo"]
"""Wanted share of zeros in percent, or "demo": queries, keys and values of a trained model."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One attention problem."""

    mode: str
    """A key of MODES."""
    length: int
    """Number of keys; and of queries, unless the mode is decode."""
    zeros: Zeros
    dtype: str = "float32"
    heads: int = 8
    dim: int = 64
    """Features per head."""
    batch: int = 1
    mask: str = "none"
    """none; padding: boolean, hides the last keys of a sequence; additive: adds a bias per head."""

    def __post_init__(self) -> None:
        known_name("mode", self.mode, MODES)
        known_name("dtype", self.dtype, DTYPES)
        known_name("mask", self.mask, MASKS)
        for name in ("length", "heads", "dim", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.zeros != DEMO and not 0 <= self.zeros <= 100:
            raise ValueError(f"zeros must be a percentage from 0 to 100, got {self.zeros}")
        if self.zeros == DEMO and self.dim != DEMO_DIM:
            raise ValueError(
                f"the demo's model has {DEMO_DIM} features per head: zeros 'demo' needs "
                f"dim={DEMO_DIM}, got {self.dim}"
            )
        if self.is_causal and self.mask != "none":
            raise ValueError(f"mode {self.mode!r} takes no mask, got {self.mask!r}")

    @property
    def is_causal(self) -> bool:
        return self.mode.startswith("causal-")

    @property
    def has_backward(self) -> bool:
        return self.mode.endswith("both")

    @property
    def queries(self) -> int:
        return 1 if self.mode == "decode" else self.length

    @property
    def zeros_label(self) -> str:
        return self.zeros if isinstance(self.zeros, str) else f"{self.zeros:g}%"

    @property
    def flops(self) -> float:
        """Floating-point operations of the dense formula, whatever a contender skips.

        The usual convention: two products forward, five backward (one of them recomputes the
        scores), and two operations per multiplication and addition; half of that if causal.
        """
        forward = 4.0 * self.batch * self.heads * self.queries * self.length * self.dim
        return forward * (3.5 if self.has_backward else 1) * (0.5 if self.is_causal else 1)

    def __str__(self) -> str:
        mask = "" if self.mask == "none" else f", {self.mask} mask"
        return (
            f"{self.mode}, length {self.length}, {self.zeros_label} zeros, batch {self.batch}, "
            f"{self.heads} heads of {self.dim}, {self.dtype}{mask}"
        )


CASE_FIELDS: Final = tuple(field.name for field in fields(Case))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Cases as the product of modes, lengths and shares of zeros."""

    modes: Sequence[str]
    lengths: Sequence[int]
    zeros: Sequence[Zeros]

    def cases(
        self,
        *,
        dtype: str = Case.dtype,
        heads: int = Case.heads,
        dim: int = Case.dim,
        batch: int | None = None,
    ) -> list[Case]:
        """All combinations; ``batch`` None: as many sequences as make up TOKENS, one for decode."""
        return [
            make_case(mode, length, zeros, dtype=dtype, heads=heads, dim=dim, batch=batch)
            for mode, length, zeros in product(self.modes, self.lengths, self.zeros)
        ]


QUICK: Final = Grid(modes=("forward", "both", "decode"), lengths=(64, 512), zeros=(50.0, 90.0))
DEFAULT: Final = Grid(modes=tuple(MODES), lengths=(64, 256, 1024), zeros=(50.0, 90.0, DEMO))
FULL: Final = Grid(
    modes=tuple(MODES),
    lengths=tuple(2**n for n in range(5, 14)),  # 32 to 8192
    zeros=(50.0, 80.0, 90.0, 95.0, DEMO),
)


def make_case(
    mode: str,
    length: int,
    zeros: Zeros,
    *,
    dtype: str = Case.dtype,
    heads: int = Case.heads,
    dim: int = Case.dim,
    batch: int | None = None,
    mask: str = Case.mask,
) -> Case:
    """A case with the usual batch, and with the demo's dimension if it uses the demo's tensors."""
    if batch is None:
        batch = 1 if mode == "decode" else max(1, TOKENS // max(1, length))
    return Case(
        mode=mode,
        length=length,
        zeros=zeros,
        dtype=dtype,
        heads=heads,
        dim=DEMO_DIM if zeros == DEMO else dim,
        batch=batch,
        mask=mask,
    )


def parse_zeros(text: str) -> Zeros:
    """``"90"``, ``"90%"`` or ``"demo"``."""
    if text == DEMO:
        return DEMO
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(
            f"zeros must be a percentage such as 90, or {DEMO!r}, got {text!r}"
        ) from None
    if not 0 <= percent <= 100:
        raise ValueError(f"zeros must be a percentage from 0 to 100, got {text!r}")
    return percent
