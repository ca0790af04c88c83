"""Which words of a target nothing in the source supports. No torch here.

Neither sign of such a word is reliable: many words without a link are only grammar, and a model may
not expect a word that is right. But what was inserted into a text is a phrase. So each word has
odds that nothing supports it, and Viterbi's algorithm finds the likeliest sequence of supported and
unsupported words, in which unsupported phrases are rare and last for several words.
"""

import math
from collections.abc import Sequence
from typing import Final

BEGINS: Final = 0.05
"""How likely an unsupported phrase is to begin at a word."""
GOES_ON: Final = 0.7
"""How likely the next word is to belong to it, too."""
EXPECTED_LOSS: Final = 3.5
"""Nats up to which a word without a link speaks for support: grammar may require it."""
EXPECTED_LOSS_IF_LINKED: Final = 7.0
NAT: Final = 0.5
"""Log-odds for each nat more or less. This and the numbers above were chosen on phrases inserted
into captions and generated text; nearby values find nearly as many."""


def unsupported_words(losses: Sequence[float], is_linked: Sequence[bool]) -> list[int]:
    """The numbers of the words of a target that nothing supports.

    Args:
        losses: for each word, the loss in nats of its token that the model expected least.
        is_linked: whether each word is linked with a source word.
    """
    begins, stays_out = math.log(BEGINS), math.log(1 - BEGINS)
    goes_on, ends = math.log(GOES_ON), math.log(1 - GOES_ON)
    # Scores of the likeliest sequence up to here, if it ends with support, and without.
    supported, unsupported = 0.0, -math.inf
    was_unsupported: list[tuple[bool, bool]] = []  # the word before, in either case
    for loss, linked in zip(losses, is_linked, strict=True):
        expected = EXPECTED_LOSS_IF_LINKED if linked else EXPECTED_LOSS
        stays = supported + stays_out, unsupported + ends
        enters = supported + begins, unsupported + goes_on
        was_unsupported.append((stays[1] > stays[0], enters[1] > enters[0]))
        supported, unsupported = max(stays), max(enters) + NAT * (loss - expected)
    found = []
    is_unsupported = unsupported + ends > supported + stays_out  # the last word is like any other
    for word in reversed(range(len(was_unsupported))):
        if is_unsupported:
            found.append(word)
        is_unsupported = was_unsupported[word][is_unsupported]
    return found[::-1]
