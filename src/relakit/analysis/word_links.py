"""The link of each target word, in all layers and heads. No torch here."""

import numpy as np
import numpy.typing as npt

from relakit.analysis.alignment import READINGS, best_source_words
from relakit.analysis.alignment_report import EndWeight
from relakit.analysis.words import Floats, Integers, word_weights


def word_links(
    weights: Floats,
    source_token_words: Integers,
    target_token_words: Integers,
    *,
    source_count: int,
    target_count: int,
    end: EndWeight,
) -> npt.NDArray[np.int64]:
    """``[readings, layers, heads + 1, target words]``: source words, or `NO_WORD`.

    The last head is the mean of the layer's.

    Args:
        weights: cross-attention ``[layers, heads, target tokens + 1, source tokens + 1]``, as in
            `CrossAttention`.
        source_token_words: the word of each source token, as `words_of_tokens` gives it.
        target_token_words: the word of each target token.
        source_count: how many source words there are.
        target_count: how many target words there are.
        end: what weight on the source's end-of-sentence token does.
    """
    found = []
    for first, _ in enumerate(READINGS):  # shifted is read one step later
        between_words = word_weights(
            weights[:, :, first : first + len(target_token_words)],
            target_token_words,
            np.append(source_token_words, source_count),  # the sentence's end, as a word here
            target_count=target_count,
            source_count=source_count + 1,
        )
        mean = between_words.mean(1, keepdims=True)
        between_words = np.concatenate([between_words, mean], axis=1)
        end_weights = between_words[..., -1] if end == "competes" else None
        found.append(best_source_words(between_words[..., :-1], end_weights))
    return np.stack(found)
