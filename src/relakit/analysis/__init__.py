"""Numbers about attention: from a model and sentence pairs, or from weights, to results."""

from typing import TYPE_CHECKING

from relakit.lazy_names import lazy_names

if TYPE_CHECKING:
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
    from relakit.analysis.model_names import name_models
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
    from relakit.analysis.text_analysis import RecordedText, analyze_texts
    from relakit.analysis.text_results import TextAnalysis, TextTokens, TextView
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
    "RecordedText",
    "SentenceLinks",
    "SentenceView",
    "ShortPairs",
    "TextAnalysis",
    "TextTokens",
    "TextView",
    "add_translations",
    "alignment_error_rate",
    "analyze_model",
    "analyze_models",
    "analyze_texts",
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

__getattr__ = lazy_names(
    __name__,
    {
        "END_WEIGHTS": "links",
        "NO_WORD": "word_map",
        "READINGS": "links",
        "AlignmentEstimates": "alignment_bootstrap",
        "AlignmentResult": "results",
        "AlignmentScore": "aer",
        "AlignmentSettings": "results",
        "AnalysisPair": "pairs",
        "AnalysisSettings": "results",
        "AnalyzedModel": "results",
        "AttentionBatch": "attention_pass",
        "AttentionScores": "aer",
        "BootstrapSettings": "alignment_bootstrap",
        "ChosenHead": "ranking",
        "CrossAttention": "attention_pass",
        "EndWeight": "links",
        "Estimate": "estimate",
        "GoldAlignment": "gold",
        "GoldFormatChoice": "gold",
        "ModelAnalysis": "results",
        "PairFiles": "pairs",
        "PairLinks": "pair_links",
        "PairScores": "pair_scores",
        "QualityRanking": "ranking",
        "RankingAreas": "ranking",
        "Reading": "links",
        "ReadingEstimates": "alignment_bootstrap",
        "RecordedText": "text_analysis",
        "SentenceLinks": "sentence_links",
        "SentenceView": "results",
        "ShortPairs": "long_pairs",
        "TextAnalysis": "text_results",
        "TextTokens": "text_results",
        "TextView": "text_results",
        "add_translations": "own_translations",
        "alignment_error_rate": "aer",
        "analyze_model": "analyze",
        "analyze_models": "analyze",
        "analyze_texts": "text_analysis",
        "attention_batches": "attention_pass",
        "auc": "roc",
        "auc_estimate": "roc",
        "best_source_words": "links",
        "bootstrap_alignment": "alignment_bootstrap",
        "capture_cross_attention": "attention_pass",
        "compare_alignments": "alignment_bootstrap",
        "count_pair_links": "analyze",
        "end_sink_rate": "attention_sinks",
        "evaluate_alignment": "analyze",
        "first_sink_rate": "attention_sinks",
        "generated_gold_pair": "pairs",
        "head_diversity": "diversity",
        "layer_null_rate": "sparsity",
        "links_of": "links",
        "name_models": "model_names",
        "null_rate": "sparsity",
        "parse_pharaoh": "gold",
        "query_classes": "null_by_class",
        "rank_quality": "ranking",
        "read_analysis_pairs": "pairs",
        "read_gold": "gold",
        "read_pharaoh": "gold",
        "read_tags": "tags",
        "rela_g_flops": "flops",
        "score_pairs": "scoring_pass",
        "softmax_flops": "flops",
        "sparsity_rate": "sparsity",
        "split_words": "word_map",
        "tag_pair": "pairs",
        "tag_words": "tags",
        "token_class": "tags",
        "word_weights": "word_map",
        "words_of_tokens": "word_map",
    },
)
