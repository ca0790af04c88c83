"""Clauses with "be": what something is like, where it is, and that it exists."""

from __future__ import annotations

from typing import Final

from relakit.data.generated.clauses import (
    ADJUNCT_RANK,
    MODAL,
    OBJECT_RANK,
    PREDICATE_RANK,
    PRESENT,
    Clause,
)
from relakit.data.generated.inflection import ACCUSATIVE, NOMINATIVE
from relakit.data.generated.phrases import Phrase, prepositional_phrase
from relakit.data.generated.sampling import PhraseSampler
from relakit.data.generated.words import ADJECTIVES_FOR, COPULA, EXISTENTIAL, NOUNS, tokens

_THAN: Final = (tokens("than", "ADP"), ("als", "ADP"))
_THERE: Final = (("there", "PRON"),)
_ES: Final = (("es", "PRON"),)
_THINGS_THERE: Final = ("thing", "animal", "person", "vehicle", "plant", "clothing", "text")
_PREDICATE_KINDS: Final = ("person", "animal", "thing", "clothing", "vehicle", "text", "place_in")


class CopulaSampler(PhraseSampler):
    """Draws clauses with "be"."""

    def existential_clause(self, tense: int) -> Clause:
        """ "there is a cat in the garden", "es gibt eine Katze im Garten"."""
        phrase = self.noun_phrase(self.pick(NOUNS[self.pick(_THINGS_THERE)]), ACCUSATIVE)
        while phrase.is_definite:
            phrase = self.noun_phrase(self.pick(NOUNS[self.pick(_THINGS_THERE)]), ACCUSATIVE)
        subject = Phrase(_THERE, _ES, ((0, 0),), phrase.person, is_pronoun=True)
        clause = Clause(subject, EXISTENTIAL, tense)
        clause.items = [(phrase, OBJECT_RANK), (self.location(), ADJUNCT_RANK)]
        return clause

    def copula_clause(
        self, tense: int, subject: Phrase | None, can_be_negated: bool = True
    ) -> Clause:
        """ "is old", "is older than my house", "is in the garden"."""
        if tense == MODAL:
            tense = PRESENT
        kind = "person"
        if subject is None:
            kind = self.pick(_PREDICATE_KINDS)
            if kind == "person":
                subject = self.person_subject()
            else:
                subject = self.noun_phrase(self.pick(NOUNS[kind]), NOMINATIVE, can_be_any=False)
        clause = Clause(subject, COPULA, tense)
        clause.is_negated = can_be_negated and self.draw() < 0.15
        adjective_kind = kind.partition("_")[0]
        chance = self.draw()
        if chance < 0.3 and adjective_kind != "place":
            clause.items.append((self.location(), PREDICATE_RANK))
            return clause
        adjective = self.pick(ADJECTIVES_FOR[adjective_kind])
        if chance > 0.7 and adjective.german_comparative is not None:
            other = self.noun_phrase(self.pick(NOUNS[kind]), NOMINATIVE, can_be_any=False)
            than = prepositional_phrase(*_THAN, other)
            words = len(adjective.comparative)
            links = [(word, 0) for word in range(words)]
            links += [(left + words, right + 1) for left, right in than.links]
            phrase = Phrase(
                [*adjective.comparative, *than.source],
                [adjective.german_comparative, *than.target],
                links,
            )
        else:
            phrase = Phrase((adjective.english,), (adjective.predicate,), ((0, 0),))
        clause.items.append((phrase, PREDICATE_RANK))
        return clause
