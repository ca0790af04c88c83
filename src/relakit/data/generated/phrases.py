"""Phrases: words of both languages with the links between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from relakit.data.generated.inflection import (
    ACCUSATIVE,
    CONTRACTIONS,
    DATIVE,
    FIRST,
    FIRST_PLURAL,
    MIXED,
    PLURAL,
    SECOND,
    STRONG,
    THIRD,
    THIRD_PLURAL,
    WEAK,
    determiner_forms,
)
from relakit.data.generated.words import Adjective, Links, Noun, Token, Tokens

COMMA: Final[Token] = (",", "PUNCT")
CLOSING: Final[Token] = (",", "CLOSING")
"""The comma after a subordinate clause, which is dropped before other punctuation."""

SourceItem: TypeAlias = tuple[int, Sequence[Token]]
"""Slot and English tokens."""
TargetItem: TypeAlias = tuple[int, Sequence[Token], Sequence[tuple[int, int]]]
"""Slot on the English side, German tokens, and links between the two, both counted from 0."""

SLOTS: Final = 24


class Phrase:
    """Tokens of both sides and their links, contiguous on both sides."""

    __slots__ = ("agreement", "is_definite", "is_pronoun", "links", "person", "source", "target")

    def __init__(
        self,
        source: Sequence[Token],
        target: Sequence[Token],
        links: Sequence[tuple[int, int]],
        person: int = THIRD,
        agreement: int = PLURAL,
        is_definite: bool = True,
        is_pronoun: bool = False,
    ) -> None:
        self.source = source
        self.target = target
        self.links = links
        self.person = person
        self.agreement = agreement
        self.is_definite = is_definite
        self.is_pronoun = is_pronoun


def assemble(source: Iterable[SourceItem], target: Iterable[TargetItem]) -> Phrase:
    """Make one phrase from the items in English order and in German order."""
    starts = [0] * SLOTS
    english: list[Token] = []
    for slot, tokens in source:
        starts[slot] = len(english)
        english += tokens
    german: list[Token] = []
    links: list[tuple[int, int]] = []
    for slot, tokens, item_links in target:
        if german and german[-1] is CLOSING and tokens:
            if tokens[0][1] == "PUNCT":
                german.pop()
            else:
                german[-1] = COMMA
        start, base = starts[slot], len(german)
        links += [(start + left, base + right) for left, right in item_links]
        german += tokens
    return Phrase(english, german, links)


class Determiner:
    """A determiner: English tokens, German tokens by agreement class and case."""

    __slots__ = ("declension", "german", "is_definite", "plural", "singular")

    def __init__(
        self,
        singular: str,
        plural: str,
        stem: str,
        declension: int,
        is_definite: bool = True,
        tag: str = "DET",
    ) -> None:
        self.singular: Tokens = ((singular, tag),) if singular else ()
        self.plural: Tokens = ((plural, tag),) if plural else ()
        self.german: tuple[tuple[Tokens, ...], ...] = tuple(
            tuple(((form, tag),) for form in row) for row in determiner_forms(stem)
        )
        self.declension = declension
        self.is_definite = is_definite


def _invariable(english: str, german: str, tag: str) -> Determiner:
    determiner = Determiner("", english, "", STRONG, is_definite=False, tag=tag)
    determiner.german = ((((german, tag),),) * 4,) * 4
    return determiner


def _many(english: str, stem: str) -> Determiner:
    """Plural words with the endings of a strong adjective: "viele", "einige"."""
    determiner = Determiner("", english, "", STRONG, is_definite=False, tag="DET")
    forms: tuple[Tokens, ...] = tuple(((stem + end, "DET"),) for end in ("e", "e", "en", "er"))
    determiner.german = (forms,) * 4
    return determiner


def _no_determiner() -> Determiner:
    determiner = Determiner("", "", "", STRONG, is_definite=False)
    determiner.german = (((),) * 4,) * 4
    return determiner


THE: Final = Determiner("the", "the", "der", WEAK)
A: Final = Determiner("a", "", "ein", MIXED, is_definite=False)
AN: Final = Determiner("an", "", "ein", MIXED, is_definite=False)
NOT_A: Final = Determiner("a", "", "kein", MIXED, is_definite=False)
NOT_AN: Final = Determiner("an", "", "kein", MIXED, is_definite=False)
NOT_ANY: Final = Determiner("", "", "kein", MIXED, is_definite=False)
"""German "kein" for a bare English noun: "does not see dogs", "sieht keine Hunde"."""
THIS: Final = Determiner("this", "these", "dies", WEAK)
EVERY: Final = Determiner("every", "", "jed", WEAK)
BARE: Final = _no_determiner()
# "Their" is left out: it would also be "ihr", and two English texts would share one German text.
POSSESSIVES: Final = tuple(
    Determiner(english, english, german, MIXED)
    for english, german in (
        *(("my", "mein"), ("his", "sein"), ("her", "ihr"), ("your", "dein"), ("our", "unser")),
    )
)
MANY: Final = (_many("many", "viel"), _many("some", "einig"))


def numeral(english: str, german: str) -> Determiner:
    return _invariable(english, german, "NUM")


def takes_an(word: str) -> bool:
    return word[0] in "aeiou" and word != "university"


def _np_links(before: int, noun_words: int, before_german: int) -> Links:
    shift = before - before_german
    modifiers = tuple((word + shift, word) for word in range(before_german)) if shift >= 0 else ()
    if shift < 0:  # "kein" without an English word
        modifiers = tuple((word, word - shift) for word in range(before))
    return modifiers + tuple((before + word, before_german) for word in range(noun_words))


_NP_LINKS: Final = {
    (before, noun_words, german): _np_links(before, noun_words, german)
    for before in range(5)
    for noun_words in range(1, 4)
    for german in range(5)
}


def noun_phrase(
    noun: Noun,
    case: int,
    determiner: Determiner,
    is_plural: bool,
    adjectives: Sequence[Adjective] = (),
) -> Phrase:
    """Determiner, adjectives and noun, in agreement."""
    if is_plural and noun.plural is not None:
        agreement, english_noun = PLURAL, noun.plural
        english_determiner = determiner.plural
        person = THIRD_PLURAL
    else:
        is_plural, agreement, english_noun = False, noun.gender, noun.singular
        english_determiner = determiner.singular
        person = THIRD
    source = list(english_determiner)
    target = list(determiner.german[agreement][case])
    if adjectives:
        declension = determiner.declension
        for adjective in adjectives:
            source.append(adjective.english)
            target.append(adjective.german[declension][agreement][case])
    links = _NP_LINKS[len(source), len(english_noun), len(target)]
    source += english_noun
    target.append(noun.german[is_plural][case])
    return Phrase(source, target, links, person, agreement, determiner.is_definite)


def name_phrase(name: str, agreement: int) -> Phrase:
    token = ((name, "PROPN"),)
    return Phrase(token, token, ((0, 0),), THIRD, agreement)


def prepositional_phrase(
    preposition: Tokens, german: Token, inner: Phrase, may_contract: bool = True
) -> Phrase:
    """Preposition and noun phrase; "zu dem" and the like become one word, linked to both."""
    words = len(preposition)
    first = inner.target[0]
    contraction = CONTRACTIONS.get((german[0], first[0])) if first[1] == "DET" else None
    links = [(word, 0) for word in range(words)]
    if contraction is not None and may_contract:
        links += [(left + words, right) for left, right in inner.links]
        target = [(contraction, "ADP"), *inner.target[1:]]
    else:
        links += [(left + words, right + 1) for left, right in inner.links]
        target = [german, *inner.target]
    return Phrase([*preposition, *inner.source], target, links)


def _pronoun(english: str, german: str, person: int) -> Phrase:
    return Phrase(
        ((english, "PRON"),), ((german, "PRON"),), ((0, 0),), person, PLURAL, is_pronoun=True
    )


SUBJECT_PRONOUNS: Final = (
    _pronoun("he", "er", THIRD),
    _pronoun("she", "sie", THIRD),
    _pronoun("I", "ich", FIRST),
    _pronoun("we", "wir", FIRST_PLURAL),
    _pronoun("they", "sie", THIRD_PLURAL),
    _pronoun("you", "du", SECOND),
)
# By case. "Them" is left out: like "her" it would be "sie", one German text for two English ones.
OBJECT_PRONOUNS: Final = {
    ACCUSATIVE: (
        _pronoun("him", "ihn", THIRD),
        _pronoun("her", "sie", THIRD),
        _pronoun("me", "mich", FIRST),
        _pronoun("us", "uns", FIRST_PLURAL),
        _pronoun("you", "dich", SECOND),
    ),
    DATIVE: (
        _pronoun("him", "ihm", THIRD),
        _pronoun("her", "ihr", THIRD),
        _pronoun("me", "mir", FIRST),
        _pronoun("us", "uns", FIRST_PLURAL),
        _pronoun("you", "dir", SECOND),
    ),
}
REFLEXIVES: Final[tuple[Tokens, ...]] = tuple(
    ((word, "PRON"),) for word in ("mich", "dich", "sich", "uns", "sich")
)
