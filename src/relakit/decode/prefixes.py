"""Translations that must begin with a given text, which may end within a word.

The tokens of "Der klei" are not the first tokens of "Der kleine Hund": the tokenizer has a token
for " kleine", and a model that has always seen that one would be at a loss after " kle" and "i".
So the tokens of the last word are not fixed. A translation begins with the tokens of the prefix up
to some character, followed by any token that continues with the rest of the prefix and beyond; or
with the tokens of the whole prefix, followed by anything. Nothing else can begin a text that the
tokenizer has split: its tokens up to the end of any one of them are the tokens of the text up to
there.

A prefix that ends in a space ends with a whole word: only a new word, or the end, may follow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relakit.data.tokenizer import END, Tokenizer


@dataclass(frozen=True)
class Beginning:
    """One way to begin."""

    tokens: tuple[int, ...]
    following: frozenset[int] | None
    """What may come after these tokens; None for anything."""

    @property
    def needed(self) -> int:
        """Tokens in the shortest text that begins this way."""
        may_end = self.following is None or END in self.following
        return len(self.tokens) + (not may_end)

    def allowed(self, written: tuple[int, ...]) -> Iterable[int] | None:
        """What may follow the tokens written so far; None for anything."""
        length = len(self.tokens)
        if written[:length] != self.tokens[: len(written)]:
            return ()
        if len(written) < length:
            return (self.tokens[len(written)],)
        if self.following is None or len(written) == length:
            return self.following
        return None if written[length] in self.following else ()


@dataclass(frozen=True)
class Prefix:
    """What a translation must begin with."""

    beginnings: tuple[Beginning, ...]

    @property
    def longest(self) -> int:
        """The number of tokens after which any translation is past the prefix."""
        return max(len(way.tokens) + (way.following is not None) for way in self.beginnings)

    @property
    def shortest(self) -> int:
        """Fewest tokens that a translation with the prefix can have."""
        return min(way.needed for way in self.beginnings)

    def within(self, limit: int) -> "Prefix":
        """The prefix without the beginnings that ``limit`` tokens have no room for."""
        return Prefix(tuple(way for way in self.beginnings if way.needed <= limit))

    def allowed(self, written: Sequence[int]) -> list[int] | None:
        """The tokens that may follow those written so far; None for any.

        Any token may follow if those written do not begin with the prefix, as in a hypothesis
        without a chance.
        """
        found: set[int] = set()
        for beginning in self.beginnings:
            tokens = beginning.allowed(tuple(written))
            if tokens is None:
                return None
            found.update(tokens)
        return sorted(found) or None


def make_prefix(text: str, tokenizer: Tokenizer) -> Prefix | None:
    """The prefix for a text; None if the text is empty, apart from spaces."""
    # The tokenizer puts a space before every text, so that its first word looks like any other.
    normal = tokenizer.normalize(text)
    if not normal:
        return None
    [whole] = tokenizer.encode_batch([normal])
    if text != text.rstrip():
        following = frozenset([*tokenizer.starting_with(" "), END])
        return Prefix((Beginning(tuple(whole), following),))
    spaced = f" {normal}"
    cuts: dict[str, frozenset[int]] = {}
    for place in range(max(0, len(spaced) - tokenizer.longest_token), len(spaced)):
        before, rest = spaced[:place], spaced[place:]
        # The tokenizer leaves out a space at the end.
        if not before.endswith(" ") and (longer := tokenizer.starting_with(rest, longer=True)):
            cuts[before] = frozenset(longer)
    encoded = tokenizer.encode_batch(list(cuts))
    unfinished = (
        Beginning(tuple(tokens), following)
        for tokens, following in zip(encoded, cuts.values(), strict=True)
    )
    return Prefix((Beginning(tuple(whole), None), *unfinished))
