"""Numbers about attention: from a model and sentence pairs, or from weights, to results."""

from relakit.analysis.aer import AlignmentScore, AttentionScores, alignment_error_rate
from relakit.analysis.alignment_bootstrap import (
    AlignmentEstimates,
    BootstrapSettings,
    ReadingEstimates,
    bootstrap_alignment,
    compare_alignments,
)
from relakit.analysis.analyze import (
    analyze_model,
    analyze_models,
    count_pair_links,
    evaluate_alignment,
    name_models,
)
from relakit.analysis.attention_pass import (
    AttentionBatch,
    CrossAttention,
    attention_batches,
    capture_cross_attention,
)
from relakit.analysis.attention_sinks import end_sink_rate, first_sink_rate
from relakit.analysis.diversity import head_diversity
from relakit.analysis.estimate import Estimate
from relakit.analysis.flops import rela_g_flops, softmax_flops
from relakit.analysis.gold import (
    GoldAlignment,
    GoldFormatChoice,
    parse_pharaoh,
    read_gold,
    read_pharaoh,
)
from relakit.analysis.links import (
    END_WEIGHTS,
    READINGS,
    EndWeight,
    Reading,
    best_source_words,
    links_of,
)
from relakit.analysis.long_pairs import ShortPairs
from relakit.analysis.null_by_class import query_classes
from relakit.analysis.own_translations import add_translations
from relakit.analysis.pair_links import PairLinks
from relakit.analysis.pair_scores import PairScores
from relakit.analysis.pairs import (
    AnalysisPair,
    PairFiles,
    generated_gold_pair,
    read_analysis_pairs,
    tag_pair,
)
from relakit.analysis.ranking import ChosenHead, QualityRanking, RankingAreas, rank_quality
from relakit.analysis.results import (
    AlignmentResult,
    AlignmentSettings,
    AnalysisSettings,
    AnalyzedModel,
    ModelAnalysis,
    SentenceView,
)
from relakit.analysis.roc import auc, auc_estimate
from relakit.analysis.scoring_pass import score_pairs
from relakit.analysis.sentence_links import SentenceLinks
from relakit.analysis.sparsity import layer_null_rate, null_rate, sparsity_rate
from relakit.analysis.tags import read_tags, tag_words, token_class
from relakit.analysis.word_map import NO_WORD, split_words, word_weights, words_of_tokens

__all__ = [
    "END_WEIGHTS",
    "NO_WORD",
    "READINGS",
    "AlignmentEstimates",
    "AlignmentResult",
    "AlignmentScore",
    "AlignmentSettings",
    "AnalysisPair",
    "AnalysisSettings",
    "AnalyzedModel",
    "AttentionBatch",
    "AttentionScores",
    "BootstrapSettings",
    "ChosenHead",
    "CrossAttention",
    "EndWeight",
    "Estimate",
    "GoldAlignment",
    "GoldFormatChoice",
    "ModelAnalysis",
    "PairFiles",
    "PairLinks",
    "PairScores",
    "QualityRanking",
    "RankingAreas",
    "Reading",
    "ReadingEstimates",
    "SentenceLinks",
    "SentenceView",
    "ShortPairs",
    "add_translations",
    "alignment_error_rate",
    "analyze_model",
    "analyze_models",
    "attention_batches",
    "auc",
    "auc_estimate",
    "best_source_words",
    "bootstrap_alignment",
    "capture_cross_attention",
    "compare_alignments",
    "count_pair_links",
    "end_sink_rate",
    "evaluate_alignment",
    "first_sink_rate",
    "generated_gold_pair",
    "head_diversity",
    "layer_null_rate",
    "links_of",
    "name_models",
    "null_rate",
    "parse_pharaoh",
    "query_classes",
    "rank_quality",
    "read_analysis_pairs",
    "read_gold",
    "read_pharaoh",
    "read_tags",
    "rela_g_flops",
    "score_pairs",
    "softmax_flops",
    "sparsity_rate",
    "split_words",
    "tag_pair",
    "tag_words",
    "token_class",
    "word_weights",
    "words_of_tokens",
]
