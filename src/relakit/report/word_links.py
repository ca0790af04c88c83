"""The link of each target word, from exact weights: what the alignment error rate is counted of."""

import numpy as np
import numpy.typing as npt

from relakit.analysis.alignment import READINGS, best_source_words
from relakit.analysis.alignment_report import EndWeight
from relakit.analysis.views import SentenceView
from relakit.analysis.words import word_weights


def word_links(view: SentenceView, end: EndWeight) -> npt.NDArray[np.int64]:
    """``[readings, layers, heads + 1, target words]``: source words, or `NO_WORD`.

    The last head is the mean of the layer's.

    Args:
        view: a pair with all cross-attention.
        end: what weight on the source's end-of-sentence token does.
    """
    sources, targets = len(view.source_words), len(view.target_words)
    tokens = len(view.target_token_words)
    found = []
    for first, _ in enumerate(READINGS):  # shifted is read one step later
        weights = word_weights(
            view.weights["cross"][:, :, first : first + tokens],
            np.array(view.target_token_words, dtype=np.int64),
            np.array([*view.source_token_words, sources], dtype=np.int64),
            target_count=targets,
            source_count=sources + 1,
        )
        weights = np.concatenate([weights, weights.mean(1, keepdims=True)], axis=1)
        end_weights = weights[..., -1] if end == "competes" else None
        found.append(best_source_words(weights[..., :-1], end_weights))
    return np.stack(found)
