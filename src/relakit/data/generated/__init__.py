"""A generated English-German corpus with gold word alignments and part-of-speech tags.

The German is a function of the English, so a perfect translation is possible.
"""

from relakit.data.generated.corpus_files import write_corpus
from relakit.data.generated.noise import NOISE_KINDS, plant_noise
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
    "NOISE_KINDS",
    "SPLITS",
    "GeneratedPair",
    "Noise",
    "Split",
    "generate_pairs",
    "join_words",
    "plant_noise",
    "split_words",
    "word_spans",
    "write_corpus",
]
