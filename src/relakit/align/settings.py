"""Names and defaults of an aligner's options; light enough to import for help texts."""

from typing import Final, Literal, TypeAlias, get_args

CHOICE_FILE: Final = "alignment.json"
"""In a model directory: says where links are read."""
LAYER_FILE: Final = "aligner.json"
"""In a model directory: describes its alignment layer."""
LAYER_WEIGHTS: Final = "aligner.safetensors"
NEXT_LAYER_WEIGHTS: Final = "aligner-2.safetensors"
"""The second name, for a layer that replaces one with the first: `LAYER_FILE` says which of the two
is in use, so writing it puts the new layer in place."""
PAIRS_TO_CHOOSE_ON: Final = 500
PAIRS_TO_KEEP_A_CHOICE: Final = 100
"""Heads that nobody asked to choose are kept with the model if at least this many pairs decided."""
HELD_OUT: Final = 500
"""Pairs that alignment layers are not trained on, to see how good the layers are."""
ENOUGH_PAIRS: Final = 100_000
"""How many pairs a layer sees in its training, each as often as it takes."""
MOST_EPOCHS: Final = 10
ROUNDS: Final = 3
"""How often layers are trained where links come from models: first on those of the heads, then on
those of the layers before."""
PAIRS_TO_TEACH: Final = 20_000
"""The most pairs in all rounds but the last, whose layers only teach."""
LAYER_SEED: Final = 1
ALONE: Final = "alone"
"""Counts pairs that were computed one by one, as this processor rounds differently in a batch."""
COMPUTED_ALONE: Final = (
    "this processor rounds differently in batches, so pairs were computed one by one: slower, but "
    "a pair's result still does not depend on the others"
)

Level: TypeAlias = Literal["word", "token"]
"""What is linked: words, or the model's tokens."""
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

WordRule: TypeAlias = Literal["spaces", "punctuation", "tokenized"]
"""What a word is. ``spaces``: whatever stands between spaces. ``punctuation``: marks at the edges
of these are words of their own, as `relakit analyze` counts them. ``tokenized``: marks already have
spaces around them in the text."""
WORD_RULES: Final[tuple[WordRule, ...]] = get_args(WordRule)

AlignmentFormat: TypeAlias = Literal["pharaoh", "json", "text"]
"""``pharaoh``: ``0-0 1-2``, source first, from 0. ``json``: an object with the links and their
scores, the words without a link, and the null rate. ``text``: the words themselves, for people to
read."""
ALIGNMENT_FORMATS: Final[tuple[AlignmentFormat, ...]] = get_args(AlignmentFormat)

Symmetrization: TypeAlias = Literal[
    "intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"
]
"""``intersection``: links of both directions. ``union``: links of either. ``grow-diag``: the
intersection, plus links of the union next to a link, also diagonally, that reach a word without
one. ``-final``: then also links of either that reach a word without a link; ``-final-and``: that
reach two such words."""
SYMMETRIZATIONS: Final[tuple[Symmetrization, ...]] = get_args(Symmetrization)
SYMMETRIZATION: Final[Symmetrization] = "grow-diag-final"
