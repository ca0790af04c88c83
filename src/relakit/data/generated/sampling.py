"""Draws noun phrases, places and times at random, as far as they make sense.

Only `random.Random.random` is called: its sequence is the same in all versions of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from relakit.data.generated.inflection import (
    ACCUSATIVE,
    DATIVE,
    FEMININE,
    FIRST,
    FIRST_PLURAL,
    GENITIVE,
    MASCULINE,
    NOMINATIVE,
    SECOND,
    STRONG,
    THIRD_PLURAL,
)
from relakit.data.generated.lexicon.modifiers import (
    CITIES,
    FEMININE_NAMES,
    FREQUENCY_ADVERBS,
    MANNER_ADVERBS,
    NAMES,
    NUMERALS,
    TIME_TABLE,
)
from relakit.data.generated.phrases import (
    AN,
    BARE,
    EVERY,
    MANY,
    NOT_A,
    NOT_AN,
    NOT_ANY,
    OBJECT_PRONOUNS,
    POSSESSIVES,
    SUBJECT_PRONOUNS,
    THE,
    THIS,
    A,
    Determiner,
    Phrase,
    name_phrase,
    noun_phrase,
    numeral,
    prepositional_phrase,
    takes_an,
)
from relakit.data.generated.words import (
    ADJECTIVES_FOR,
    NOUNS,
    Adjective,
    Noun,
    Tokens,
    rows,
    tokens,
)

Draw: TypeAlias = Callable[[], float]
Item = TypeVar("Item")

_NUMERALS: Final = tuple(numeral(english, german) for english, german in NUMERALS)
_NAMES: Final = tuple(
    name_phrase(name, FEMININE if name in FEMININE_NAMES else MASCULINE) for name in NAMES
)


def _owner(name: str) -> Determiner:
    """ "Anna's old dog", "Annas alter Hund": the adjective is declined as if without an article."""
    determiner = Determiner(f"{name}'s", f"{name}'s", "", STRONG, tag="PROPN")
    determiner.german = (((((f"{name}s", "PROPN"),),) * 4),) * 4
    return determiner


_OWNERS: Final = tuple(_owner(name) for name in NAMES)
_AND: Final = (("and", "CCONJ"),)
_UND: Final = (("und", "CCONJ"),)


def _and(first: Phrase, second: Phrase) -> Phrase:
    """Both phrases, as a plural subject."""
    left, right = len(first.source), len(first.target)
    links = [*first.links, (left, right)]
    links += [(left + 1 + source, right + 1 + target) for source, target in second.links]
    source = [*first.source, *_AND, *second.source]
    return Phrase(source, [*first.target, *_UND, *second.target], links, THIRD_PLURAL)


def _adverb(english: str, german: str) -> Phrase:
    return Phrase(((english, "ADV"),), ((german, "ADV"),), ((0, 0),))


FREQUENCIES: Final = tuple(_adverb(*pair) for pair in FREQUENCY_ADVERBS)
MANNERS: Final = tuple(_adverb(*pair) for pair in MANNER_ADVERBS)


def _time_phrases(tense: str) -> tuple[Phrase, ...]:
    phrases = []
    for row in rows(TIME_TABLE):
        tenses, english, german, english_tags, german_tags, links = row.split(" | ")
        if tense in tenses:
            source = tuple(zip(english.split(), english_tags.split(), strict=True))
            target = tuple(zip(german.split(), german_tags.split(), strict=True))
            pairs = (link.split("-") for link in links.split())
            phrases.append(
                Phrase(source, target, [(int(left), int(right)) for left, right in pairs])
            )
    for english, german, case in (
        ("after", "nach", DATIVE),
        ("before", "vor", DATIVE),
        ("during", "während", GENITIVE),
    ):
        for event in NOUNS["event"]:
            inner = noun_phrase(event, case, THE, is_plural=False)
            phrases.append(prepositional_phrase(tokens(english, "ADP"), (german, "ADP"), inner))
    return tuple(phrases)


TIMES: Final = {tense: _time_phrases(tense) for tense in "ptfm"}

_Relation: TypeAlias = tuple[Tokens, tuple[str, str], tuple[Noun, ...], int]


def _relation(english: str, german: str, kinds: str, case: int) -> _Relation:
    nouns = tuple(noun for kind in kinds.split() for noun in NOUNS[kind])
    return tokens(english, "ADP"), (german, "ADP"), nouns, case


LOCATIONS: Final = (
    _relation("in", "in", "place_in", DATIVE),
    _relation("in", "in", "place_in", DATIVE),
    _relation("in", "in", "place_in", DATIVE),
    _relation("at", "an", "place_at", DATIVE),
    _relation("on", "auf", "place_over place_on", DATIVE),
    _relation("in_front_of", "vor", "place_in opening vehicle", DATIVE),
    _relation("behind", "hinter", "place_in plant opening", DATIVE),
    _relation("next_to", "neben", "place_at plant vehicle", DATIVE),
    _relation("near", "bei", "place_at place_in", DATIVE),
    _relation("under", "unter", "plant", DATIVE),
)
DIRECTIONS: Final = (
    _relation("to", "zu", "place_in place_at", DATIVE),
    _relation("to", "zu", "place_at place_in", DATIVE),
    _relation("into", "in", "place_in", ACCUSATIVE),
    _relation("onto", "auf", "place_over place_on", ACCUSATIVE),
    _relation("through", "durch", "place_in", ACCUSATIVE),
    _relation("out_of", "aus", "place_in", DATIVE),
    _relation("over", "über", "place_over", ACCUSATIVE),
)
ORIGINS: Final = (
    _relation("from", "von", "place_at place_over", DATIVE),
    _relation("out_of", "aus", "place_in", DATIVE),
    _relation("to", "zu", "place_in place_at", DATIVE),
)


def _city(english: str, german: str) -> tuple[Phrase, ...]:
    return tuple(
        prepositional_phrase(tokens(english, "ADP"), (german, "ADP"), name_phrase(city, FEMININE))
        for city in CITIES
    )


CITY_LOCATIONS: Final = _city("in", "in")
CITY_DIRECTIONS: Final = _city("to", "nach")
CITY_ORIGINS: Final = _city("from", "aus")


class PhraseSampler:
    """Draws phrases that make sense."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def pick(self, choices: Sequence[Item]) -> Item:
        """Pick one of the choices, early ones more often: word frequencies are uneven."""
        share = self.draw()
        return choices[int(share * share * len(choices))]

    def pick_evenly(self, choices: Sequence[Item]) -> Item:
        return choices[int(self.draw() * len(choices))]

    def noun_phrase(self, noun: Noun, case: int, can_be_any: bool = True) -> Phrase:
        """The noun with a determiner, sometimes in the plural, sometimes with adjectives."""
        draw = self.draw
        is_plural = noun.plural is not None and draw() < 0.22
        adjectives = self._adjectives(noun, 0.36)
        determiner = self._determiner(noun, is_plural, can_be_any)
        if determiner is A:
            next_word = adjectives[0].english[0] if adjectives else noun.singular[0][0]
            if takes_an(next_word):
                determiner = AN
        return noun_phrase(noun, case, determiner, is_plural, adjectives)

    def _adjectives(self, noun: Noun, share: float) -> tuple[Adjective, ...]:
        fitting = ADJECTIVES_FOR[noun.kind]
        chance = self.draw()
        if chance > share:
            return ()
        first = self.pick(fitting)
        if chance > 0.04 or first.comes_second:
            return (first,)
        second = self.pick(fitting)
        return (first, second) if second.comes_second else (first,)

    def _determiner(self, noun: Noun, is_plural: bool, can_be_any: bool) -> Determiner:
        chance = self.draw()
        if chance < 0.45:
            return THE
        if chance < 0.62:
            return self.pick(POSSESSIVES)
        if chance < 0.68:
            return THIS
        if chance < 0.72:
            return self.pick(_OWNERS)
        if not can_be_any:
            return THE
        if noun.kind in ("staple", "drink"):
            return BARE
        if not is_plural:
            return EVERY if chance > 0.97 else A
        if chance < 0.84:
            return self.pick(_NUMERALS)
        return BARE if chance < 0.90 else self.pick(MANY)

    def negated_noun_phrase(self, noun: Noun, case: int) -> Phrase:
        """Indefinite, with "kein" in German; its first German word belongs to the negation."""
        adjectives = self._adjectives(noun, 0.2)
        is_plural = noun.plural is not None and self.draw() < 0.35
        if is_plural or noun.kind in ("staple", "drink"):
            return noun_phrase(noun, case, NOT_ANY, is_plural, adjectives)
        next_word = adjectives[0].english[0] if adjectives else noun.singular[0][0]
        determiner = NOT_AN if takes_an(next_word) else NOT_A
        return noun_phrase(noun, case, determiner, False, adjectives)

    def person_subject(self, by_animals: bool = False) -> Phrase:
        chance = self.draw()
        if chance < 0.28:
            return self.pick(SUBJECT_PRONOUNS)
        if chance < 0.42:
            return self.pick(_NAMES)
        if chance < 0.46:
            first, second = self.pick(_NAMES), self.pick(_NAMES)
            return first if first is second else _and(first, second)
        kind = "animal" if chance < 0.60 and by_animals else "person"
        phrase = self.noun_phrase(self.pick(NOUNS[kind]), NOMINATIVE)
        if chance < 0.97:
            return phrase
        return _and(phrase, self.noun_phrase(self.pick(NOUNS[kind]), NOMINATIVE))

    def object_pronoun(self, subject: Phrase, case: int) -> Phrase:
        """A pronoun that is not the subject itself."""
        pronoun = self.pick_evenly(OBJECT_PRONOUNS[case])
        first = (FIRST, FIRST_PLURAL)
        if (pronoun.person in first and subject.person in first) or (
            pronoun.person == SECOND == subject.person
        ):
            return OBJECT_PRONOUNS[case][0]
        return pronoun

    def person_object(self, subject: Phrase, case: int, can_be_any: bool = True) -> Phrase:
        chance = self.draw()
        if chance < 0.22:
            return self.object_pronoun(subject, case)
        if chance < 0.36:
            name = self.pick(_NAMES)
            if name is not subject:
                return name
        return self.noun_phrase(self.pick(NOUNS["person"]), case, can_be_any)

    def location(self) -> Phrase:
        if self.draw() < 0.1:
            return self.pick(CITY_LOCATIONS)
        return self._related(LOCATIONS)

    def direction(self, is_arrival: bool) -> Phrase:
        """Where to; or, for "come", mostly where from."""
        if self.draw() < 0.15:
            return self.pick(CITY_ORIGINS if is_arrival else CITY_DIRECTIONS)
        return self._related(ORIGINS if is_arrival else DIRECTIONS)

    def _related(self, relations: Sequence[_Relation]) -> Phrase:
        english, german, nouns, case = self.pick_evenly(relations)
        inner = self.place_phrase(self.pick(nouns), case)
        return prepositional_phrase(english, german, inner)

    def place_phrase(self, noun: Noun, case: int) -> Phrase:
        """A place, mostly with the plain article, as people usually speak of places."""
        if self.draw() < 0.6:
            return noun_phrase(noun, case, THE, is_plural=False)
        return self.noun_phrase(noun, case)
