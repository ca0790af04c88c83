"""The lexicon as tokens: every form that a sentence may need is made once, here.

A token is a word and its universal part-of-speech tag.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from relakit.data.generated.inflection import (
    ADJECTIVE_ENDINGS,
    GENDERS,
    GermanVerbForms,
    english_plural,
    english_verb_forms,
    noun_forms,
)
from relakit.data.generated.lexicon.modifiers import ADJECTIVE_TABLE
from relakit.data.generated.lexicon.nouns import NOUN_TABLES
from relakit.data.generated.lexicon.verbs import VERB_TABLES

Token: TypeAlias = tuple[str, str]
Tokens: TypeAlias = tuple[Token, ...]
Links: TypeAlias = tuple[tuple[int, int], ...]

_ADVERBS_OF_VERBS: Final = frozenset({"along", "away", "back", "asleep"})


def rows(table: str) -> list[str]:
    return [line.strip() for line in table.strip().splitlines()]


def tokens(words: str, tag: str) -> Tokens:
    """The words of a lexicon entry, where "_" joins them, as tokens with one tag."""
    return tuple((word, tag) for word in words.split("_"))


class Noun:
    """A noun: English tokens and German tokens by number and case."""

    __slots__ = ("gender", "german", "kind", "plural", "singular")

    def __init__(self, kind: str, row: str) -> None:
        english, gender, *german = row.split()
        singular, _, plural = english.partition("/")
        self.kind = kind.partition("_")[0]
        self.singular = tokens(singular, "NOUN")
        has_plural = plural != "-" and german[2] != "-"
        self.plural = tokens(plural or english_plural(singular), "NOUN") if has_plural else None
        self.gender = GENDERS[gender]
        self.german: tuple[Tokens, ...] = tuple(
            tuple((word, "NOUN") for word in forms) for forms in noun_forms(self.gender, *german)
        )


class Adjective:
    """An adjective: German tokens by declension, agreement class and case."""

    __slots__ = (
        "comes_second",
        "comparative",
        "english",
        "german",
        "german_comparative",
        "kinds",
        "predicate",
    )

    def __init__(self, row: str) -> None:
        forms, _, kinds = row.partition(" | ")
        english, comparative, predicate, stem, german_comparative = forms.split()
        self.english: Token = (english, "ADJ")
        # "more beautiful": the first word is an adverb.
        self.comparative = tuple(
            (word, "ADV" if word == "more" else "ADJ") for word in comparative.split("_")
        )
        self.predicate: Token = (predicate, "ADJ")
        self.german_comparative: Token | None = (
            None if german_comparative == "-" else (german_comparative, "ADJ")
        )
        self.german = tuple(
            tuple(tuple((stem + ending, "ADJ") for ending in row) for row in declension)
            for declension in ADJECTIVE_ENDINGS
        )
        self.kinds = frozenset(kinds.split())
        # "a tired old man", "the new red car": age and colour come right before the noun.
        self.comes_second = english in ("old", "young") or comparative == "-"


class Verb:
    """A verb: English tokens by form, German tokens by tense and person."""

    def __init__(self, frame: str, row: str) -> None:
        # " | " separates the columns; a bare bar marks a separable prefix.
        english, german, subjects, *objects = (f"{row} ").split(" | ")
        if frame == "prepositional":
            english, _, preposition = english.rpartition(" ")
            self.preposition: Tokens = ((preposition, "ADP"),)
        else:
            self.preposition = ()
        self.german_preposition = ""
        self.preposition_case = ""
        if german.endswith(("accusative", "dative")):
            german, self.german_preposition, self.preposition_case = german.rsplit(" ", 2)
        self.frame = frame
        self.objects = tuple(objects[0].split()) if objects else ()
        self.by_animals = "a" in subjects
        self.is_voluntary = "!" in subjects
        self.is_copula = False
        self._set_english(*english_verb_forms(english))
        self._set_german(GermanVerbForms(german))

    def _set_english(self, base: str, third: str, past: str, participle: str) -> None:
        self.base = _verb_tokens(base)
        third_tokens = _verb_tokens(third)
        self.english_present: tuple[Tokens, ...] = (
            self.base,
            self.base,
            third_tokens,
            self.base,
            self.base,
        )
        self.english_past: tuple[Tokens, ...] = (_verb_tokens(past),) * 5
        self.english_participle = _verb_tokens(participle)
        # One German token is linked to all English words of the verb.
        self.links: Links = tuple((word, 0) for word in range(len(self.base)))

    def _set_german(self, forms: GermanVerbForms, tag: str = "VERB") -> None:
        particle = forms.particle
        self.present = _each(forms.present, tag)
        self.past = _each(forms.past, tag)
        self.joined_present = _each(tuple(particle + form for form in forms.present), tag)
        self.joined_past = _each(tuple(particle + form for form in forms.past), tag)
        self.particle: Tokens = ((particle, "ADP"),) if particle else ()
        self.participle: Tokens = ((forms.participle, tag),)
        self.infinitive: Tokens = ((forms.infinitive, tag),)
        self.imperative: Tokens = ((forms.imperative, tag),)
        self.with_sein = forms.perfect_with_sein
        self.zu_infinitive: Tokens = (
            (("zu", "PART"), (forms.zu_infinitive[1], tag))
            if len(forms.zu_infinitive) == 2
            else ((forms.zu_infinitive[0], tag),)
        )


def _verb_tokens(words: str) -> Tokens:
    verb, *rest = words.split("_")
    return (verb, "VERB"), *((word, "ADV" if word in _ADVERBS_OF_VERBS else "ADP") for word in rest)


def _each(words: tuple[str, ...], tag: str) -> tuple[Tokens, ...]:
    return tuple(((word, tag),) for word in words)


NOUNS: Final[dict[str, tuple[Noun, ...]]] = {
    kind: tuple(Noun(kind, row) for row in rows(table)) for kind, table in NOUN_TABLES.items()
}
PLACES: Final = NOUNS["place_in"] + NOUNS["place_at"]
ADJECTIVES: Final = tuple(Adjective(row) for row in rows(ADJECTIVE_TABLE))
ADJECTIVES_FOR: Final = {
    kind: tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)
    for kind in ("place", *(kind for kind in NOUN_TABLES if not kind.startswith("place")))
}
VERBS: Final = {
    frame: tuple(Verb(frame, row) for row in rows(table)) for frame, table in VERB_TABLES.items()
}


def _make_copula() -> Verb:
    copula = Verb("copula", "be was been | sein ist/bist war gewesen sein | pa")
    copula.is_copula = True
    copula.english_present = _each(("am", "are", "is", "are", "are"), "AUX")
    copula.english_past = _each(("was", "were", "was", "were", "were"), "AUX")
    copula.base = (("be", "AUX"),)
    copula.english_participle = (("been", "AUX"),)
    copula.present = copula.joined_present = _each(("bin", "bist", "ist", "sind", "sind"), "AUX")
    copula.past = copula.joined_past = _each(("war", "warst", "war", "waren", "waren"), "AUX")
    copula.participle = (("gewesen", "AUX"),)
    copula.infinitive = (("sein", "AUX"),)
    copula.with_sein = True
    return copula


def _make_existential() -> Verb:
    """ "There is", "there are": German "es gibt", always in the singular."""
    verb = _make_copula()
    verb.present = verb.joined_present = _each(("gibt",) * 5, "VERB")
    verb.past = verb.joined_past = _each(("gab",) * 5, "VERB")
    return verb


COPULA: Final = _make_copula()
EXISTENTIAL: Final = _make_existential()
