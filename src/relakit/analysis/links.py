"""From attention to links between words. No torch here."""

from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from relakit.analysis.word_map import NO_WORD, Floats, Integers, word_weights
from relakit.broken_model import BrokenModelError

Link: TypeAlias = tuple[int, int]
"""Source word and target word, both from 0."""
Links: TypeAlias = frozenset[Link]
Reading: TypeAlias = Literal["normal", "shifted"]
"""When a target token's attention is read: ``normal`` in the step that predicts it, ``shifted``
in the next step, which has it as input."""
READINGS: Final[tuple[Reading, ...]] = get_args(Reading)
EndWeight: TypeAlias = Literal["ignored", "competes"]
"""How weight on the source's end-of-sentence token counts. The token is never linked; if its weight
competes, a target word that attends to it more than to any word has no link at all."""
END_WEIGHTS: Final[tuple[EndWeight, ...]] = get_args(EndWeight)


def best_source_words(weights: Floats, end_weights: Floats | None = None) -> npt.NDArray[np.int64]:
    """The source word that each target word attends to most (in a tie, the first), or `NO_WORD`.

    There is no such word if all weights are 0. The end-of-sentence token is not a word: its weight
    does not count, however large it is, unless ``end_weights`` is given. In that case there is also
    no such word if the token's weight is larger than every word's.

    Args:
        weights: between words, ``[..., target words, source words]``.
        end_weights: on the source's end-of-sentence token, ``[..., target words]``.

    Raises:
        ValueError: a weight is NaN.
    """
    if np.isnan(weights).any():
        raise BrokenModelError
    if weights.shape[-1] == 0:
        return np.full(weights.shape[:-1], NO_WORD, dtype=np.int64)
    most = weights.max(-1)
    has_link = most > 0 if end_weights is None else (most > 0) & (most >= end_weights)
    return np.where(has_link, weights.argmax(-1), NO_WORD)


def links_of(weights: Floats, end_weights: Floats | None = None) -> Links:
    """One link for each target word, to the source word of `best_source_words`, if there is one.

    Args:
        weights: between words, of one head or one layer, ``[target words, source words]``.
        end_weights: ``[target words]``, see `best_source_words`.
    """
    if weights.ndim != 2:
        raise ValueError(
            f"weights must have the shape [target words, source words], got {weights.shape}"
        )
    best = best_source_words(weights, end_weights)
    return frozenset(
        (int(source), target) for target, source in enumerate(best) if source != NO_WORD
    )


def weights_between_words(
    weights: Floats,
    source_token_words: Integers,
    target_token_words: Integers,
    *,
    shift: int,
    source_count: int,
    target_count: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Attention from each target word to source words, and to the end of the source.

    Args:
        weights: cross-attention ``[..., target tokens + 1, source tokens + 1]``, as in
            `CrossAttention`.
        source_token_words: the word of each source token, as `words_of_tokens` returns it.
        target_token_words: the word of each target token.
        shift: 0 to read a token's attention in the step that predicts it, 1 in the next.
        source_count: how many source words there are.
        target_count: how many target words there are.

    Returns:
        ``[..., target words, source words]`` and ``[..., target words]``.
    """
    between = word_weights(
        weights[..., shift : shift + len(target_token_words), :],
        target_token_words,
        np.append(source_token_words, source_count),  # the sentence's end counts as a word here
        target_count=target_count,
        source_count=source_count + 1,
    )
    return between[..., :-1], between[..., -1]


def links_of_heads(
    weights: Floats,
    source_token_words: Integers,
    target_token_words: Integers,
    *,
    source_count: int,
    target_count: int,
    end: EndWeight,
) -> npt.NDArray[np.int64]:
    """``[readings, layers, heads + 1, target words]``: source words, or `NO_WORD`.

    The last head is the mean of the layer's heads.

    Args:
        weights: cross-attention ``[layers, heads, target tokens + 1, source tokens + 1]``, as in
            `CrossAttention`.
        source_token_words: the word of each source token, as `words_of_tokens` returns it.
        target_token_words: the word of each target token.
        source_count: how many source words there are.
        target_count: how many target words there are.
        end: how weight on the source's end-of-sentence token counts.
    """
    found = []
    for shift, _ in enumerate(READINGS):  # shifted is read one step later
        both = weights_between_words(
            weights,
            source_token_words,
            target_token_words,
            shift=shift,
            source_count=source_count,
            target_count=target_count,
        )
        to_words, to_end = (
            np.concatenate([some, some.mean(1, keepdims=True)], axis=1) for some in both
        )
        found.append(best_source_words(to_words, to_end if end == "competes" else None))
    return np.stack(found)
