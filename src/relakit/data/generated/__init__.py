"""A generated English-German corpus with gold word alignments and part-of-speech tags.

The German is a function of the English, so a perfect translation is possible.
"""

from relakit.data.generated.pairs import (
    SPLITS,
    GeneratedPair,
    Noise,
    Split,
    generate_pairs,
    join_words,
    split_words,
    word_spans,
)

__all__ = [
    "SPLITS",
    "GeneratedPair",
    "Noise",
    "Split",
    "generate_pairs",
    "join_words",
    "split_words",
    "word_spans",
]
