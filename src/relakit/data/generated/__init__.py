"""A generated English-German corpus with gold word alignments and part-of-speech tags.

The German is a function of the English, so a perfect translation is possible.
"""

from relakit.data.generated.corpus_files import LANGUAGES, GeneratedCounts, write_corpus
from relakit.data.generated.noise import plant_noise
from relakit.data.generated.pairs import (
    GeneratedPair,
    PlantedNoise,
    generate_pairs,
    join_words,
    word_spans,
)
from relakit.data.generator_settings import SPLITS, Split
from relakit.data.noise_draw import NOISE_KINDS, NoiseKind

__all__ = [
    "LANGUAGES",
    "NOISE_KINDS",
    "SPLITS",
    "GeneratedCounts",
    "GeneratedPair",
    "NoiseKind",
    "PlantedNoise",
    "Split",
    "generate_pairs",
    "join_words",
    "plant_noise",
    "word_spans",
    "write_corpus",
]
