"""Clauses drawn at random: a verb, a subject and objects that fit it, adverbs that fit the tense."""

from __future__ import annotations

from typing import Final

from relakit.data.generated.clauses import (
    ADJUNCT_RANK,
    DATIVE_RANK,
    EARLY_MANNER_RANK,
    FUTURE,
    MANNER_RANK,
    MODAL,
    MODALS,
    OBJECT_RANK,
    PAST,
    PERFECT,
    PREDICATE_RANK,
    PRESENT,
    PRONOUN_RANK,
    SUBORDINATE,
    TIME_RANK,
    Clause,
    realise,
)
from relakit.data.generated.inflection import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    MASCULINE,
    NOMINATIVE,
    RELATIVE_PRONOUNS,
)
from relakit.data.generated.phrases import (
    CLOSING,
    COMMA,
    POSSESSIVES,
    SUBJECT_PRONOUNS,
    THE,
    Phrase,
    noun_phrase,
    prepositional_phrase,
)
from relakit.data.generated.sampling import FREQUENCIES, MANNERS, TIMES, PhraseSampler
from relakit.data.generated.words import (
    ADJECTIVES_FOR,
    COPULA,
    NOUNS,
    PLACES,
    VERBS,
    Noun,
    Verb,
    tokens,
)

# How often each frame is drawn, as upper ends of a share of 1.
_FRAMES: Final = (
    (0.44, "accusative"),
    (0.51, "dative"),
    (0.59, "ditransitive"),
    (0.67, "prepositional"),
    (0.71, "reflexive"),
    (0.82, "intransitive"),
    (0.90, "motion"),
    (1.00, "copula"),
)
_TENSES: Final = ((0.38, PRESENT), (0.62, PAST), (0.75, PERFECT), (0.85, FUTURE), (1.0, MODAL))
_TENSE_LETTERS: Final = {PRESENT: "p", PAST: "t", FUTURE: "f", MODAL: "m"}
_CASES: Final = {"accusative": ACCUSATIVE, "dative": DATIVE}
_VOLUNTARY: Final = {
    frame: tuple(verb for verb in verbs if verb.is_voluntary) for frame, verbs in VERBS.items()
}
_MADE_FOR_OTHERS: Final = frozenset({"buy", "cook", "bake", "paint", "draw", "carry", "order"})
_FOR: Final = (tokens("for", "ADP"), ("für", "ADP"))
_WITH: Final = (tokens("with", "ADP"), ("mit", "ADP"))
_THAN: Final = (tokens("than", "ADP"), ("als", "ADP"))
_PREDICATE_KINDS: Final = ("person", "animal", "thing", "clothing", "vehicle", "text", "place_in")


class ClauseSampler(PhraseSampler):
    """Draws clauses that make sense."""

    def tense(self) -> int:
        chance = self.draw()
        for end, tense in _TENSES:
            if chance < end:
                return tense
        return PRESENT

    def frame(self) -> str:
        chance = self.draw()
        for end, frame in _FRAMES:
            if chance < end:
                return frame
        return "accusative"

    def clause(
        self, tense: int, subject: Phrase | None = None, depth: int = 0, is_last: bool = True
    ) -> Clause:
        """A clause with its complements. Where it is not last, nothing follows the complements
        that could be taken for a part of the next clause; depth counts relative clauses."""
        frame = self.frame()
        if frame == "copula":
            return self.copula_clause(tense, subject)
        verb = self.pick(VERBS[frame])
        if subject is None:
            subject = self.subject(verb, depth)
        clause = Clause(subject, verb, tense, self.pick(MODALS))
        if (tense != MODAL or clause.modal.can_be_negated) and self.draw() < 0.13:
            clause.is_negated = True
        is_open = self.add_complements(clause, depth, is_last)
        if is_open:
            self.add_adverbs(clause, is_last)
        return clause

    def voluntary_clause(self, subject: Phrase) -> Clause:
        """What one can try, decide or be told to do; for infinitives and commands."""
        frame = self.frame()
        if frame == "copula":
            frame = "accusative"
        clause = Clause(subject, self.pick(_VOLUNTARY[frame]), PRESENT)
        self.add_complements(clause, depth=1, is_last=True)
        return clause

    def subject(self, verb: Verb, depth: int) -> Phrase:
        subject = self.person_subject(verb.by_animals)
        if depth == 0 and not subject.is_pronoun and len(subject.source) > 1:
            return self.extended(subject, NOMINATIVE)
        return subject

    def extended(self, phrase: Phrase, case: int) -> Phrase:
        """Some definite noun phrases get a genitive or a relative clause."""
        chance = self.draw()
        if chance > 0.14 or phrase.source[-1][1] != "NOUN":
            return phrase
        if chance > 0.08:
            return self.with_genitive(phrase) if phrase.is_definite else phrase
        return self.with_relative_clause(phrase)

    def with_genitive(self, phrase: Phrase) -> Phrase:
        """ "the dog of my friend", "der Hund meines Freundes": "of" goes with the determiner."""
        determiner = THE if self.draw() < 0.6 else self.pick(POSSESSIVES)
        owner = noun_phrase(self.pick(NOUNS["person"]), GENITIVE, determiner, self.draw() < 0.2)
        left, right = len(phrase.source), len(phrase.target)
        links = [*phrase.links, (left, right)]
        links += [(left + 1 + source, right + target) for source, target in owner.links]
        return Phrase(
            [*phrase.source, ("of", "ADP"), *owner.source],
            [*phrase.target, *owner.target],
            links,
            phrase.person,
            phrase.agreement,
            phrase.is_definite,
        )

    def with_relative_clause(self, phrase: Phrase) -> Phrase:
        """German relative clauses stand between commas, which have no English counterpart."""
        tense = PAST if self.draw() < 0.4 else PRESENT
        if self.draw() < 0.65:
            pronoun = RELATIVE_PRONOUNS[phrase.agreement][NOMINATIVE]
            opener = _opener("who", pronoun)
            subject = Phrase((), (), (), phrase.person, phrase.agreement)
            clause = self.clause(tense, subject, depth=1, is_last=False)
        else:
            clause = self._clause_without_object(tense)
            pronoun = RELATIVE_PRONOUNS[phrase.agreement][ACCUSATIVE]
            opener = _opener("whom", pronoun)
        relative = realise(clause, SUBORDINATE, opener)
        left, right = len(phrase.source), len(phrase.target) + 1
        links = [*phrase.links]
        links += [(left + source, right + target) for source, target in relative.links]
        return Phrase(
            [*phrase.source, *relative.source],
            [*phrase.target, COMMA, *relative.target, CLOSING],
            links,
            phrase.person,
            phrase.agreement,
            phrase.is_definite,
        )

    def _clause_without_object(self, tense: int) -> Clause:
        """Its subject is one whose nominative shows: otherwise "die Frau, die die Katze sieht"
        would have two English sources."""
        while True:
            subject = self.person_subject()
            if subject.agreement == MASCULINE and subject.target[0][1] == "DET":
                break
            if subject.is_pronoun and subject.source[0][0] not in ("she", "they"):
                break
        verbs = VERBS["accusative"]
        verb = self.pick(verbs)
        while "person" not in verb.objects:
            verb = self.pick(verbs)
        return Clause(subject, verb, tense)

    def add_complements(self, clause: Clause, depth: int, is_last: bool) -> bool:
        """Adds what the verb's frame asks for; returns whether adverbs may follow."""
        frame = clause.verb.frame
        if frame == "accusative":
            return self._add_object(clause, depth, is_last)
        if frame == "dative":
            self._add_person(clause, DATIVE)
        elif frame == "ditransitive":
            self._add_person(clause, DATIVE)
            noun = self._fitting_noun(clause.verb)
            clause.items.append((self.noun_phrase(noun, ACCUSATIVE), OBJECT_RANK))
            self._negate_indefinite(clause, noun)
        elif clause.verb.german_preposition:
            self._add_prepositional_object(clause)
        elif frame == "motion":
            if not clause.verb.particle:
                clause.items.append((self.direction(), ADJUNCT_RANK))
        elif clause.verb.objects:
            clause.items.append((self.location(), ADJUNCT_RANK))
        return True

    def _add_person(self, clause: Clause, case: int) -> None:
        person = self.person_object(clause.subject, case)
        clause.items.append((person, PRONOUN_RANK if person.is_pronoun else DATIVE_RANK))

    def _fitting_noun(self, verb: Verb) -> Noun:
        kind = self.pick_evenly(verb.objects)
        return self.pick(PLACES if kind == "place" else NOUNS[kind])

    def _add_object(self, clause: Clause, depth: int, is_last: bool) -> bool:
        verb = clause.verb
        kind = self.pick_evenly(verb.objects)
        if kind == "person":
            phrase = self.person_object(clause.subject, ACCUSATIVE)
            noun = None
        else:
            noun = self.pick(PLACES if kind == "place" else NOUNS[kind])
            phrase = self.noun_phrase(noun, ACCUSATIVE)
        is_open = True
        if kind == "person" and depth == 0 and is_last and not clause.is_negated:
            extended = self.extended(phrase, ACCUSATIVE)
            is_open = extended.target[-1] is not CLOSING
            phrase = extended
        clause.items.append((phrase, PRONOUN_RANK if phrase.is_pronoun else OBJECT_RANK))
        if clause.is_negated:
            if noun is not None:
                self._negate_indefinite(clause, noun)
        elif verb.base[0][0] in _MADE_FOR_OTHERS and kind != "person" and self.draw() < 0.25:
            person = self.person_object(clause.subject, ACCUSATIVE)
            clause.items.append((prepositional_phrase(*_FOR, person), ADJUNCT_RANK))
        return is_open

    def _negate_indefinite(self, clause: Clause, noun: Noun) -> None:
        """The last item gets "kein" where it is indefinite; else "nicht" stands for itself."""
        if clause.is_negated and not clause.items[-1][0].is_definite:
            clause.items[-1] = (self.negated_noun_phrase(noun, ACCUSATIVE), OBJECT_RANK)
            clause.negated_item = len(clause.items) - 1

    def _add_prepositional_object(self, clause: Clause) -> None:
        verb = clause.verb
        case = _CASES[verb.preposition_case]
        kind = self.pick_evenly(verb.objects)
        if kind == "person":
            inner = self.person_object(clause.subject, case)
        else:
            noun = self.pick(PLACES if kind == "place" else NOUNS[kind])
            inner = self.noun_phrase(noun, case)
        german = (verb.german_preposition, "ADP")
        phrase = prepositional_phrase(verb.preposition, german, inner)
        clause.items.append((phrase, ADJUNCT_RANK))

    def add_adverbs(self, clause: Clause, is_last: bool) -> None:
        """Manner, company, place and time, in this English order."""
        draw, verb, items = self.draw, clause.verb, clause.items
        frame = verb.frame
        chance = draw()
        if not clause.is_negated:
            if chance < 0.10 and clause.tense != FUTURE:
                clause.frequency = self.pick(FREQUENCIES[: 5 if clause.tense == MODAL else 6])
            elif chance < 0.17 and verb.is_voluntary and frame in ("accusative", "intransitive"):
                if not (items and items[-1][1] == ADJUNCT_RANK):
                    is_before = bool(items) and not items[-1][0].is_definite
                    items.append(
                        (self.pick(MANNERS), EARLY_MANNER_RANK if is_before else MANNER_RANK)
                    )
            if frame == "intransitive" and not verb.objects and draw() < 0.12:
                company = self.person_object(clause.subject, DATIVE)
                items.append((prepositional_phrase(*_WITH, company), ADJUNCT_RANK))
            wants_place = 0.35 if frame == "intransitive" and not verb.objects else 0.14
            if frame in ("accusative", "intransitive", "prepositional") and draw() < wants_place:
                if not verb.objects or frame != "intransitive":
                    items.append((self.location(), ADJUNCT_RANK))
        letter = _TENSE_LETTERS.get(clause.tense)
        if letter is None or clause.frequency is not None:
            return
        chance = draw()
        if chance < 0.14:
            clause.initial = self.pick(TIMES[letter]) if is_last else None
        elif chance < 0.32:
            items.append((self.pick(TIMES[letter]), TIME_RANK))

    def copula_clause(self, tense: int, subject: Phrase | None) -> Clause:
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
        clause.is_negated = self.draw() < 0.15
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


def _opener(english: str, german: str) -> Phrase:
    return Phrase(((english, "PRON"),), ((german, "PRON"),), ((0, 0),))


__all__ = ["SUBJECT_PRONOUNS", "ClauseSampler"]
