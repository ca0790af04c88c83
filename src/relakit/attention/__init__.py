"""The attention library: functions, norms, modules and backends. Imports torch and nothing else."""

from relakit.attention.activations import ACTIVATIONS
from relakit.attention.backends import BACKENDS
from relakit.attention.capturing import AttentionRecord, Records, capture
from relakit.attention.convert import convert_attention
from relakit.attention.functional import attention
from relakit.attention.module import MultiheadAttention
from relakit.attention.norms import GatedLayerNorm, GatedRMSNorm, LayerNorm, RMSNorm
from relakit.attention.spec import ATTENTIONS, AttentionSpec

__all__ = [
    "ACTIVATIONS",
    "ATTENTIONS",
    "BACKENDS",
    "AttentionRecord",
    "AttentionSpec",
    "GatedLayerNorm",
    "GatedRMSNorm",
    "LayerNorm",
    "MultiheadAttention",
    "RMSNorm",
    "Records",
    "attention",
    "capture",
    "convert_attention",
]
