"""The encoder-decoder Transformer, its settings and its directory on disk."""

from relakit.model.config import ATTENTION_KINDS, SIZES, AttentionKind, ModelConfig, sized
from relakit.model.directory import ModelAbout, load_model, save_model
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
