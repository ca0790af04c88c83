"""The encoder-decoder Transformer, its settings and its directory on disk."""

from typing import TYPE_CHECKING

from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.lazy_names import lazy_names

if TYPE_CHECKING:
    from relakit.model.config import SIZES, ModelConfig, sized
    from relakit.model.description import ModelAbout
    from relakit.model.directory import load_model, save_model
    from relakit.model.transformer import Memory, Transformer

__all__ = [
    "ATTENTION_KINDS",
    "SIZES",
    "AttentionKind",
    "Memory",
    "ModelAbout",
    "ModelConfig",
    "Transformer",
    "load_model",
    "save_model",
    "sized",
]

__getattr__ = lazy_names(
    __name__,
    {
        "SIZES": "config",
        "Memory": "transformer",
        "ModelAbout": "description",
        "ModelConfig": "config",
        "Transformer": "transformer",
        "load_model": "directory",
        "save_model": "directory",
        "sized": "config",
    },
)
