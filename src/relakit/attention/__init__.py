"""The attention library: functions, norms, modules and backends. Imports torch and nothing else."""

from relakit.attention.activations import ACTIVATIONS
from relakit.attention.backends import BACKENDS
from relakit.attention.call import AttentionResult, RowStatistics
from relakit.attention.capturing import AttentionRecord, Records, capture
from relakit.attention.convert import convert_attention
from relakit.attention.functional import attention, attention_details
from relakit.attention.module import MultiheadAttention
from relakit.attention.norms import GatedLayerNorm, GatedRMSNorm, LayerNorm, RMSNorm
from relakit.attention.spec import ATTENTIONS, AttentionSpec, build_norm, resolve_attention

__all__ = [
    "ACTIVATIONS",
    "ATTENTIONS",
    "BACKENDS",
    "AttentionRecord",
    "AttentionResult",
    "AttentionSpec",
    "GatedLayerNorm",
    "GatedRMSNorm",
    "LayerNorm",
    "MultiheadAttention",
    "RMSNorm",
    "Records",
    "RowStatistics",
    "attention",
    "attention_details",
    "build_norm",
    "capture",
    "convert_attention",
    "resolve_attention",
]
