"""What the paper reports (Zhang, Titov and Sennrich, 2021), to compare with what was measured."""

from types import MappingProxyType
from typing import Final, NamedTuple

TABLE_1: Final[MappingProxyType[str, float | None]] = MappingProxyType(
    {
        "softmax": 26.9,
        "sparsemax": 26.4,
        "entmax15": 26.7,
        "relu": None,
        "relu-rms": 26.0,
        "rela-i": 26.5,
        "rela-g": 26.6,
        "rela-g-layernorm": 26.6,
        "rela-g-gelu": 26.5,
        "rela-g-leaky": 26.5,
        "rela-g-encoder": 26.3,
        "rela-g-decoder": 27.0,
        "rela-g-cross": 27.0,
    }
)
"""SacreBLEU on WMT14 English-German; None if training failed."""


class Speed(NamedTuple):
    """A row of Table 2."""

    parameters: float
    """In millions"""
    training: float
    """Relative to softmax, like ``decoding``"""
    decoding: float


TABLE_2: Final = MappingProxyType(
    {
        "softmax": Speed(72.31, 1.00, 1.00),
        "sparsemax": Speed(72.31, 0.26, 0.54),
        "entmax15": Speed(72.31, 0.27, 0.49),
        "rela-g": Speed(72.34, 0.93, 0.98),
    }
)
"""On a GPU; with other software the paper saw 0.87, 0.90 and 0.95 for training."""

TABLE_3_LANGUAGES: Final = ("wmt14-en-fr", "wmt18-en-fi", "wmt18-zh-en", "wmt16-ro-en")
TABLE_3: Final = MappingProxyType(
    {
        "softmax": (37.2, 15.5, 21.1, 32.7),
        "sparsemax": (37.3, 15.1, 19.2, 33.5),
        "entmax15": (37.9, 15.5, 20.8, 33.2),
        "rela-g": (37.9, 15.4, 20.8, 32.9),
    }
)
"""SacreBLEU, in the order of `TABLE_3_LANGUAGES`."""


class AlignmentRow(NamedTuple):
    """A row of Table 5, in percent."""

    normal_aol: float
    normal_aoh: float
    shifted_aol: float
    shifted_aoh: float


TABLE_5: Final = MappingProxyType(
    {
        "softmax": AlignmentRow(75.95, 67.51, 79.38, 54.31),
        "sparsemax": AlignmentRow(78.17, 67.88, 82.32, 54.95),
        "entmax15": AlignmentRow(78.82, 67.69, 79.84, 58.98),
        "rela-g": AlignmentRow(64.46, 61.64, 59.24, 52.41),
    }
)


class DiversityRow(NamedTuple):
    """A row of Table 6, in nats."""

    encoder: float
    decoder: float
    cross: float


TABLE_6: Final = MappingProxyType(
    {
        ("softmax", "1"): DiversityRow(0.56, 0.31, 0.45),
        ("entmax15", "1"): DiversityRow(0.84, 0.39, 0.52),
        ("rela-g", "1"): DiversityRow(1.26, 0.81, 0.78),
        ("rela-g", "0.5"): DiversityRow(0.97, 0.65, 0.69),
        ("rela-g", "0.25"): DiversityRow(0.92, 0.65, 0.71),
        ("rela-g", "0.1"): DiversityRow(0.92, 0.66, 0.72),
    }
)
"""By row and temperature."""
