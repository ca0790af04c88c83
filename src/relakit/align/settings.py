"""The names of what an aligner can be told, and their defaults; light enough for help texts."""

from typing import Final, Literal, TypeAlias, get_args

CHOICE_FILE: Final = "alignment.json"
"""In a model directory: where links are read."""
LAYER_FILE: Final = "aligner.json"
"""In a model directory: what is known of its alignment layer."""
LAYER_WEIGHTS: Final = "aligner.safetensors"
NEXT_LAYER_WEIGHTS: Final = "aligner-2.safetensors"
"""For a layer that replaces one: the other one of both names, so that `LAYER_FILE`, which says
which of them it is about, puts it in place."""
PAIRS_TO_CHOOSE_ON: Final = 500
PAIRS_TO_KEEP_A_CHOICE: Final = 100
"""Heads that nobody asked to choose are kept with the model if so many pairs decided, at least."""
HELD_OUT: Final = 500
"""Pairs that alignment layers are not trained on, to see what they are worth."""
ENOUGH_PAIRS: Final = 100_000
"""That a layer sees in its training, each as often as it takes."""
MOST_EPOCHS: Final = 10
LAYER_SEED: Final = 1
ALONE: Final = "alone"
"""Counts pairs that were computed one by one, as this processor rounds otherwise in a batch."""
COMPUTED_ALONE: Final = (
    "this processor rounds otherwise in batches, so pairs were computed one by one, which is "
    "slower, and the same for all"
)

Level: TypeAlias = Literal["word", "token"]
"""What is linked: words, or the model's tokens."""
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

WordRule: TypeAlias = Literal["spaces", "punctuation", "tokenized"]
"""What a word is. ``spaces``: whatever stands between spaces. ``punctuation``: marks at the edges
of these are words of their own, as `relakit analyze` counts. ``tokenized``: marks have spaces
around them in the text already."""
WORD_RULES: Final[tuple[WordRule, ...]] = get_args(WordRule)

AlignmentFormat: TypeAlias = Literal["pharaoh", "json", "text"]
"""``pharaoh``: ``0-0 1-2``, source first, from 0. ``json``: an object with the links and their
scores, the words without a link, and the null rate. ``text``: the words themselves, to be read by
people."""
ALIGNMENT_FORMATS: Final[tuple[AlignmentFormat, ...]] = get_args(AlignmentFormat)

Symmetrization: TypeAlias = Literal[
    "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"
]
"""``intersection``: links of both. ``union``: of either. ``grow-diag``: the intersection, and those
of the union beside a link, up, down or across, that reach a word without one. ``-final``: then
also those of either that reach a word without a link; ``-final-and``: two such words."""
SYMMETRIZATIONS: Final[tuple[Symmetrization, ...]] = get_args(Symmetrization)
SYMMETRIZATION: Final[Symmetrization] = "grow-diag-final"
