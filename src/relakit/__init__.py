"""relakit: Rectified Linear Attention (ReLA) for PyTorch.

``relakit.attention`` is the attention function. The package of the same name that holds the
library is reached by ``from relakit.attention import ...``.
"""

import sys
from importlib import import_module
from importlib.metadata import version
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relakit import analysis
    from relakit.attention import (
        ATTENTIONS,
        AttentionRecord,
        AttentionResult,
        AttentionSpec,
        GatedLayerNorm,
        GatedRMSNorm,
        LayerNorm,
        MultiheadAttention,
        RMSNorm,
        RowStatistics,
        attention,
        attention_details,
        capture,
        convert_attention,
    )
    from relakit.decode.translator import Precision, Translator

__version__ = version("relakit")

__all__ = [
    "ATTENTIONS",
    "AttentionRecord",
    "AttentionResult",
    "AttentionSpec",
    "GatedLayerNorm",
    "GatedRMSNorm",
    "LayerNorm",
    "MultiheadAttention",
    "RMSNorm",
    "RowStatistics",
    "__version__",
    "analysis",
    "attention",
    "attention_details",
    "capture",
    "convert_attention",
    "load",
]


def load(
    folder: str | PathLike[str], *, device: str = "cpu", precision: "Precision" = "fp32"
) -> "Translator":
    """Read a model directory: ``relakit.load(folder).translate(["A sentence."])``.

    Args:
        folder: holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``.
        device: where to compute.
        precision: ``"fp32"``, ``"bf16"``, or ``"auto"`` for bf16 where the device computes with it.
    """
    from relakit.decode.translator import Translator

    return Translator.load(folder, device=device, precision=precision)


class _LazyPackage(ModuleType):
    """Loads the library, and with it torch, on first use: `relakit --version` needs neither."""

    def __getattr__(self, name: str) -> object:
        if name == "analysis":
            return import_module("relakit.analysis")
        if name not in __all__:
            raise AttributeError(f"module 'relakit' has no attribute {name!r}")
        library = import_module("relakit.attention")
        for public in __all__:
            if public not in ("__version__", "analysis", "load"):
                setattr(self, public, getattr(library, public))
        return getattr(library, name)

    def __setattr__(self, name: str, value: object) -> None:
        # The import system would bind the package relakit.attention over the function.
        if name == "attention" and isinstance(value, ModuleType):
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _LazyPackage
