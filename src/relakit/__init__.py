"""relakit: Rectified Linear Attention (ReLA) for PyTorch, and a translation toolkit built on it."""

from importlib import import_module
from importlib.metadata import version
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from relakit.decode.settings import DEVICE, PRECISION, Precision, SearchSettings
from relakit.lazy_names import lazy_names

if TYPE_CHECKING:
    from relakit import analysis
    from relakit import hf as hf  # not in __all__: it needs an extra
    from relakit.decode.translator import Hypothesis, Translator
    from relakit.nn.adapters import register_attention
    from relakit.nn.cache import KeyValueCache
    from relakit.nn.calibrate import Calibration, calibrate
    from relakit.nn.capture import AttentionRecord, capture
    from relakit.nn.convert import convert_attention
    from relakit.nn.core import AttentionCore
    from relakit.nn.multihead import MultiheadAttention
    from relakit.nn.norms import GatedLayerNorm, GatedRMSNorm, LayerNorm, RMSNorm
    from relakit.nn.variants import ATTENTIONS, AttentionSpec
    from relakit.ops.attention import attention, attention_details
    from relakit.ops.call import AttentionResult, RowStatistics

__version__ = version("relakit")

__all__ = [
    "ATTENTIONS",
    "AttentionCore",
    "AttentionRecord",
    "AttentionResult",
    "AttentionSpec",
    "Calibration",
    "GatedLayerNorm",
    "GatedRMSNorm",
    "Hypothesis",
    "KeyValueCache",
    "LayerNorm",
    "MultiheadAttention",
    "RMSNorm",
    "RowStatistics",
    "SearchSettings",
    "Translator",
    "__version__",
    "analysis",
    "attention",
    "attention_details",
    "calibrate",
    "capture",
    "convert_attention",
    "load",
    "register_attention",
]

_HOMES: Final = MappingProxyType(
    {
        "ATTENTIONS": "nn.variants",
        "AttentionCore": "nn.core",
        "AttentionRecord": "nn.capture",
        "AttentionResult": "ops.call",
        "AttentionSpec": "nn.variants",
        "Calibration": "nn.calibrate",
        "GatedLayerNorm": "nn.norms",
        "GatedRMSNorm": "nn.norms",
        "Hypothesis": "decode.translator",
        "KeyValueCache": "nn.cache",
        "LayerNorm": "nn.norms",
        "MultiheadAttention": "nn.multihead",
        "RMSNorm": "nn.norms",
        "RowStatistics": "ops.call",
        "Translator": "decode.translator",
        "attention": "ops.attention",
        "attention_details": "ops.attention",
        "calibrate": "nn.calibrate",
        "capture": "nn.capture",
        "convert_attention": "nn.convert",
        "register_attention": "nn.adapters",
    }
)
"""Where each public name is loaded from on first use: `relakit --version` needs no torch."""


def load(
    *folders: str | PathLike[str],
    device: str = DEVICE,
    precision: Precision = PRECISION,
    shortlist: bool = False,
) -> "Translator":
    """Read a model directory: ``relakit.load(folder).translate(["A sentence."])``.

    Args:
        *folders: each holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``. Several
            make an ensemble: a token's probability is the mean over the models.
        device: where to compute.
        precision: ``"fp32"``, ``"bf16"``, ``"int8"`` (one-byte weights, on a CPU) or ``"auto"``
            (bf16 if the device computes with it, otherwise fp32).
        shortlist: choose only among the tokens of the first model's shortlist, which
            ``relakit shortlist`` makes.
    """
    from relakit.decode.translator import Translator

    return Translator.load(*folders, device=device, precision=precision, shortlist=shortlist)


_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return import_module(f"relakit.{name}") if name in ("analysis", "hf") else _find(name)


def __dir__() -> list[str]:
    return sorted(__all__)
