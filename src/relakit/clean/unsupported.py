"""How probable it is that nothing in the source supports a word of the target. No torch here.

No sign of such a word is reliable: many words without a link are only grammar, and a model may not
expect a word that is right. But what was inserted into a text is a phrase. So a hidden Markov model
looks at all words together: each word's links and its margin give odds that nothing supports it,
and unsupported phrases are rare and last for several words.
"""

import math
from collections.abc import Sequence
from typing import Final

BEGINS: Final = 0.015
"""How likely an unsupported phrase is to begin at a word."""
GOES_ON: Final = 0.7
"""How likely the next word is to belong to it, too."""
USUAL_MARGIN: Final = {1: (2.0, 6.5), 2: (1.0, 4.5, 8.0)}
"""Up to which margin a word speaks for support: by how many models were asked whether it has a
link, and how many of them said so. The more did, the less it matters what the model expected."""
NAT: Final = 0.3
"""Log-odds for each nat more or less. This and the numbers above follow from a logistic regression
on phrases inserted into debates; nearby values find nearly as many."""
_MOST: Final = 100.0
"""The highest log-odds of a single word: more could not be computed with."""


def unsupported_chances(margins: Sequence[float], links: Sequence[Sequence[bool]]) -> list[float]:
    """For each word of a target, the probability that nothing supports it.

    Losses would say how hard a text is for the model, too. Margins say that of the word alone, so
    the same numbers serve good models and weak ones.

    Args:
        margins: for each word, how many nats likelier the model found its own first choice than the
            word's token that it expected least.
        links: for each word, the answers of one model or two: whether it has a link.
    """
    # By the words up to each ...
    seen: list[float] = []
    chance = 0.0
    for margin, answers in zip(margins, links, strict=True):
        log_odds = NAT * (margin - USUAL_MARGIN[len(answers)][sum(answers)])
        weight = _next(chance) * math.exp(min(log_odds, _MOST))
        chance = weight / (weight + 1 - _next(chance))
        seen.append(chance)
    # ... and then by all words: a phrase that goes on afterwards has probably begun before.
    found: list[float] = []
    following = 0.0  # what comes after the text is supported
    for chance in reversed(seen):
        expected = _next(chance)
        chance *= following * GOES_ON / expected + (1 - following) * (1 - GOES_ON) / (1 - expected)
        found.append(chance)
        following = chance
    return found[::-1]


def _next(chance: float) -> float:
    """The probability that the next word has no support, given that of this one."""
    return (1 - chance) * BEGINS + chance * GOES_ON
