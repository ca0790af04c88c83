"""Names, options and defaults of attention, and which of them can be combined.

This module does not import torch, so that errors in a recipe are found before torch is loaded.
"""

import math
from typing import Final, Literal, TypeAlias, get_args

ActivationName: TypeAlias = Literal[
    "softmax", "sparsemax", "entmax15", "relu", "gelu", "leaky_relu", "sigmoid", "softpick"
]

BackendName: TypeAlias = Literal["sdpa", "native", "reference"]
BACKEND_NAMES: Final[tuple[BackendName, ...]] = get_args(BackendName)

DEFAULT_EPS: Final = 1e-8
"""Added to the mean square under a norm's root, as in the authors' code."""
SMALLEST_EPS: Final = 1e-37
"""A smaller one may be flushed to 0 in single precision, and zeros divided by that are NaN."""

_POINTWISE: Final = frozenset({"threshold", "length_exponent"})

OPTIONS: Final[dict[ActivationName, frozenset[str]]] = {
    "softmax": frozenset(),
    "sparsemax": frozenset(),
    "entmax15": frozenset(),
    "relu": _POINTWISE | {"power"},
    # No power for the next two: they have negative values, whose powers are not real numbers.
    "gelu": _POINTWISE,
    "leaky_relu": _POINTWISE,
    "sigmoid": frozenset(),
    "softpick": frozenset(),
}
"""The options that each activation takes."""


def check_options(
    activation: ActivationName, *, threshold: object, power: float, length_exponent: float
) -> None:
    """Raise ValueError for an unknown activation, and for an option that it does not take."""
    if not isinstance(activation, str) or activation not in OPTIONS:
        raise ValueError(
            f"unknown activation {activation!r}; choose one of {', '.join(OPTIONS)} (names "
            "such as 'rela-g' are for MultiheadAttention and convert_attention)"
        )
    are_floats = type(threshold) is float and type(power) is float is type(length_exponent)
    if are_floats and threshold == 0 and power == 1 and length_exponent == 0:
        return  # the defaults, which work with every activation
    for name, number in (("power", power), ("length_exponent", length_exponent)):
        if not isinstance(number, (int, float)):
            raise TypeError(f"{name} must be a number, got {number!r}")
    if not 0 < power < math.inf:  # not math.isfinite, which torch.compile cannot trace
        raise ValueError(f"power must be a finite number above 0, got {power}")
    if not -math.inf < length_exponent < math.inf:
        raise ValueError(f"length_exponent must be a finite number, got {length_exponent}")
    if isinstance(threshold, (int, float)) and not -math.inf < threshold < math.inf:
        raise ValueError(f"threshold must be a finite number, got {threshold}")
    is_default_threshold = isinstance(threshold, (int, float)) and threshold == 0
    given: dict[str, object] = {}
    if not is_default_threshold:
        given["threshold"] = "a tensor" if hasattr(threshold, "shape") else threshold
    if power != 1:
        given["power"] = power
    if length_exponent != 0:
        given["length_exponent"] = length_exponent
    allowed = OPTIONS[activation]
    for option, value in given.items():
        if option not in allowed:
            choices = ", ".join(name for name, its in OPTIONS.items() if option in its)
            raise ValueError(
                f"{option}={value} has no meaning for activation {activation!r} (options of "
                f"{activation!r}: {', '.join(sorted(allowed)) or 'none'}); activations that take "
                f"{option}: {choices}"
            )
