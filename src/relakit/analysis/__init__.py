"""Numbers about attention: from captured weights to results."""

from relakit.analysis.alignment import (
    AlignmentScore,
    GoldAlignment,
    alignment_error_rate,
    best_source_words,
    links_of,
)
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
    "AlignmentScore",
    "GoldAlignment",
    "alignment_error_rate",
    "best_source_words",
    "format_pharaoh",
    "links_of",
    "null_rate",
    "parse_pharaoh",
    "read_pharaoh",
    "sparsity_rate",
    "split_words",
    "word_weights",
    "words_of_tokens",
    "write_pharaoh",
]
