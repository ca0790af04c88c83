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
from relakit.analysis.cross_attention import CrossAttention, capture_cross_attention
from relakit.analysis.gold_pairs import GoldPair, generated_gold_pair, read_gold_pairs
from relakit.analysis.pharaoh import (
    format_pharaoh,
    parse_pharaoh,
    read_pharaoh,
    write_pharaoh,
)
from relakit.analysis.sparsity import null_rate, sparsity_rate
from relakit.analysis.words import NO_WORD, split_words, word_weights, words_of_tokens

__all__ = [
    "NO_WORD",
    "READINGS",
    "AlignmentReport",
    "AlignmentScore",
    "AlignmentSettings",
    "AttentionScores",
    "CrossAttention",
    "EndWeight",
    "GoldAlignment",
    "GoldPair",
    "Reading",
    "alignment_error_rate",
    "best_source_words",
    "capture_cross_attention",
    "evaluate_alignment",
    "format_pharaoh",
    "generated_gold_pair",
    "links_of",
    "null_rate",
    "parse_pharaoh",
    "read_gold_pairs",
    "read_pharaoh",
    "sparsity_rate",
    "split_words",
    "word_weights",
    "words_of_tokens",
    "write_pharaoh",
]
