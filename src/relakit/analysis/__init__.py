"""Numbers about attention: from captured weights to results."""

from relakit.analysis.alignment import (
    READINGS,
    AlignmentScore,
    GoldAlignment,
    Reading,
    alignment_error_rate,
    best_source_words,
    links_of,
)
from relakit.analysis.alignment_evaluation import evaluate_alignment
from relakit.analysis.alignment_report import (
    AlignmentReport,
    AlignmentSettings,
    AttentionScores,
    EndWeight,
)
from relakit.analysis.analysis_pairs import AnalysisPair
from relakit.analysis.analyze import analyze_model
from relakit.analysis.attention_pass import AttentionBatch, attention_batches
from relakit.analysis.cross_attention import CrossAttention, capture_cross_attention
from relakit.analysis.diversity import head_diversity
from relakit.analysis.flops import rela_g_flops, softmax_flops
from relakit.analysis.gold_formats import GoldFormatChoice, read_gold
from relakit.analysis.gold_pairs import (
    GoldPair,
    generated_gold_pair,
    read_analysis_pairs,
    read_gold_pairs,
)
from relakit.analysis.pharaoh import (
    format_pharaoh,
    parse_pharaoh,
    read_pharaoh,
    write_pharaoh,
)
from relakit.analysis.results import AnalysisSettings, ModelAnalysis
from relakit.analysis.sinks import end_sink_rate, first_sink_rate
from relakit.analysis.sparsity import layer_null_rate, null_rate, sparsity_rate
from relakit.analysis.tags import read_tags
from relakit.analysis.views import SentenceView
from relakit.analysis.word_classes import query_classes, token_class
from relakit.analysis.words import NO_WORD, split_words, word_weights, words_of_tokens

__all__ = [
    "NO_WORD",
    "READINGS",
    "AlignmentReport",
    "AlignmentScore",
    "AlignmentSettings",
    "AnalysisPair",
    "AnalysisSettings",
    "AttentionBatch",
    "AttentionScores",
    "CrossAttention",
    "EndWeight",
    "GoldAlignment",
    "GoldFormatChoice",
    "GoldPair",
    "ModelAnalysis",
    "Reading",
    "SentenceView",
    "alignment_error_rate",
    "analyze_model",
    "attention_batches",
    "best_source_words",
    "capture_cross_attention",
    "end_sink_rate",
    "evaluate_alignment",
    "first_sink_rate",
    "format_pharaoh",
    "generated_gold_pair",
    "head_diversity",
    "layer_null_rate",
    "links_of",
    "null_rate",
    "parse_pharaoh",
    "query_classes",
    "read_analysis_pairs",
    "read_gold",
    "read_gold_pairs",
    "read_pharaoh",
    "read_tags",
    "rela_g_flops",
    "softmax_flops",
    "sparsity_rate",
    "split_words",
    "token_class",
    "word_weights",
    "words_of_tokens",
    "write_pharaoh",
]
