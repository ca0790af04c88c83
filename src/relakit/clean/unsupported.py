"""Which words of a target nothing in the source supports. No torch here.

No sign of such a word is reliable: many words without a link are only grammar, and a model may not
expect a word that is right. But what was inserted into a text is a phrase. So each word has odds
that nothing supports it, and Viterbi's algorithm finds the likeliest sequence of supported and
unsupported words, in which unsupported phrases are rare and last for several words.
"""

import math
from collections.abc import Sequence
from typing import Final

BEGINS: Final = 0.03
"""How likely an unsupported phrase is to begin at a word."""
GOES_ON: Final = 0.7
"""How likely the next word is to belong to it, too."""
USUAL_MARGIN: Final = {1: (2.0, 6.5), 2: (1.0, 4.5, 8.0)}
"""Up to which margin a word speaks for support: by how many models were asked whether it has a
link, and how many of them said so. The more did, the less it matters what the model expected."""
NAT: Final = 0.3
"""Log-odds for each nat more or less. This and the numbers above follow from a logistic regression
on phrases inserted into debates; nearby values find nearly as many."""


def unsupported_words(margins: Sequence[float], links: Sequence[Sequence[bool]]) -> list[int]:
    """The numbers of the words of a target that nothing supports.

    Losses would say how hard a text is for the model, too. Margins say that of the word alone, so
    the same numbers serve good models and weak ones.

    Args:
        margins: for each word, how many nats likelier the model found its own first choice than the
            word's token that it expected least.
        links: for each word, the answers of one model or two: whether it has a link.
    """
    begins, stays_out = math.log(BEGINS), math.log(1 - BEGINS)
    goes_on, ends = math.log(GOES_ON), math.log(1 - GOES_ON)
    # Scores of the likeliest sequence up to here, if it ends with support, and without.
    supported, unsupported = 0.0, -math.inf
    was_unsupported: list[tuple[bool, bool]] = []  # the word before, in either case
    for margin, answers in zip(margins, links, strict=True):
        usual = USUAL_MARGIN[len(answers)][sum(answers)]
        stays = supported + stays_out, unsupported + ends
        enters = supported + begins, unsupported + goes_on
        was_unsupported.append((stays[1] > stays[0], enters[1] > enters[0]))
        supported, unsupported = max(stays), max(enters) + NAT * (margin - usual)
    found = []
    is_unsupported = unsupported + ends > supported + stays_out  # the last word is like any other
    for word in reversed(range(len(was_unsupported))):
        if is_unsupported:
            found.append(word)
        is_unsupported = was_unsupported[word][is_unsupported]
    return found[::-1]
