"""Draws clauses at random: a verb, a subject and objects that fit it, adverbs that fit both."""

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
    PRESENT,
    PRONOUN_RANK,
    SUBORDINATE,
    TIME_RANK,
    Clause,
    realise,
)
from relakit.data.generated.copula_sampling import CopulaSampler
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
    THE,
    Phrase,
    noun_phrase,
    prepositional_phrase,
)
from relakit.data.generated.sampling import FREQUENCIES, MANNERS, TIMES
from relakit.data.generated.words import (
    NOUNS,
    PLACES,
    VERBS,
    Noun,
    Verb,
    tokens,
)

# How often each frame is drawn, as the upper end of its share of 1.
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
_WITH_PERSON: Final = tuple(verb for verb in VERBS["accusative"] if "person" in verb.objects)
_WITH_THING: Final = tuple(verb for verb in VERBS["accusative"] if verb.objects != ("person",))
_MADE_FOR_OTHERS: Final = frozenset({"buy", "cook", "bake", "paint", "draw", "carry", "order"})
_FOR: Final = (tokens("for", "ADP"), ("für", "ADP"))
_WITH: Final = (tokens("with", "ADP"), ("mit", "ADP"))
_STATES: Final = frozenset(
    {"love", "like", "have", "know", "need", "understand", "trust", "believe"}
)
"""Verbs that take no adverbs: nobody likes something on Monday."""
_WITH_MANNER: Final = frozenset(
    {"open", "close", "eat", "drink", "write", "carry", "repair", "wash", "cook", "clean", "draw"}
    | {"paint", "tidy", "feed", "prepare", "build", "take", "hide", "sell", "sing", "work", "dance"}
)
_AND: Final = ("and", "CCONJ")
_ANIMALS: Final = frozenset(
    forms[-1] for noun in NOUNS["animal"] for forms in (noun.singular, noun.plural or ()) if forms
)
_WITH_COMPANY: Final = frozenset({"work", "sing", "laugh", "dance", "swim"})


class ClauseSampler(CopulaSampler):
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
        self,
        tense: int,
        subject: Phrase | None = None,
        *,
        depth: int = 0,
        is_last: bool = True,
        can_be_negated: bool = True,
        with_adverbs: bool = True,
    ) -> Clause:
        """A clause with its complements and adverbs.

        At depth 0 its noun phrases may contain relative clauses. If it is not the last clause of
        its sentence, or is inside another clause, its object has none and no time comes first.
        """
        frame = self.frame()
        if frame == "copula":
            return self.copula_clause(tense, subject, can_be_negated)
        verb = self.pick(VERBS[frame])
        if subject is None:
            subject = self.subject(verb, depth)
        clause = Clause(subject, verb, tense, self.pick(MODALS))
        if tense != MODAL or clause.modal.can_be_negated:
            clause.is_negated = can_be_negated and self.draw() < 0.13
        is_open = self.add_complements(clause, depth, is_last)
        if is_open and with_adverbs and verb.base[0][0] not in _STATES:
            self.add_adverbs(clause, is_last)
        return clause

    def voluntary_clause(
        self, subject: Phrase, tense: int = PRESENT, can_be_negated: bool = False
    ) -> Clause:
        """A clause about something that one can try, decide or be told to do."""
        frame = self.frame()
        if frame == "copula":
            frame = "accusative"
        clause = Clause(subject, self.pick(_VOLUNTARY[frame]), tense)
        clause.is_negated = can_be_negated and self.draw() < 0.15
        self.add_complements(clause, depth=1, is_last=True)
        return clause

    def subject(self, verb: Verb, depth: int) -> Phrase:
        subject = self.person_subject(verb.by_animals)
        if depth == 0 and not subject.is_pronoun and len(subject.source) > 1:
            return self.extended(subject)
        return subject

    def extended(self, phrase: Phrase) -> Phrase:
        """Give some definite noun phrases a genitive or a relative clause."""
        chance = self.draw()
        if chance > 0.14 or phrase.source[-1][1] != "NOUN" or _AND in phrase.source:
            return phrase
        if chance > 0.08:
            return self.with_genitive(phrase) if phrase.source[0][0] == "the" else phrase
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
        is_animal = phrase.source[-1] in _ANIMALS
        if self.draw() < 0.65:
            pronoun = RELATIVE_PRONOUNS[phrase.agreement][NOMINATIVE]
            opener = _opener("which" if is_animal else "who", pronoun)
            subject = Phrase((), (), (), phrase.person, phrase.agreement)
            clause = self.clause(tense, subject, depth=1, is_last=False)
        else:
            clause = self.clause_without_object(self._clear_subject(), tense, is_person=True)
            pronoun = RELATIVE_PRONOUNS[phrase.agreement][ACCUSATIVE]
            opener = _opener("which" if is_animal else "whom", pronoun)
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

    def _clear_subject(self) -> Phrase:
        """A subject whose nominative is visible: "die Frau, die die Katze sieht" would have two
        English sources."""
        while True:
            subject = self.person_subject()
            if subject.agreement == MASCULINE and subject.target[0][1] == "DET":
                return subject
            if subject.is_pronoun and subject.source[0][0] not in ("she", "they"):
                return subject

    def clause_without_object(self, subject: Phrase, tense: int, is_person: bool) -> Clause:
        """A clause for questions and relative clauses whose pronoun is the object."""
        verbs = _WITH_PERSON if is_person else _WITH_THING
        return Clause(subject, self.pick(verbs), tense, self.pick(MODALS))

    def add_complements(self, clause: Clause, depth: int, is_last: bool) -> bool:
        """Add what the verb's frame requires; returns whether adverbs may follow."""
        frame = clause.verb.frame
        if frame == "accusative":
            return self._add_object(clause, depth, is_last)
        if frame == "dative":
            self._add_person(clause)
        elif frame == "ditransitive":
            self._add_person(clause)
            noun = self._fitting_noun(clause.verb)
            self._add_noun_phrase(clause, noun, ACCUSATIVE, OBJECT_RANK)
        elif clause.verb.german_preposition:
            self._add_prepositional_object(clause)
        elif frame == "motion":
            if not clause.verb.particle:
                is_arrival = clause.verb.base[0][0] == "come"
                clause.items.append((self.direction(is_arrival), ADJUNCT_RANK))
        elif clause.verb.objects:
            clause.items.append((self.location(), ADJUNCT_RANK))
        return True

    def _add_noun_phrase(self, clause: Clause, noun: Noun, case: int, rank: int) -> None:
        """Add a noun phrase; under negation an indefinite one has "kein", others take "nicht"."""
        if not clause.is_negated:
            phrase = self.noun_phrase(noun, case)
        elif self.draw() < 0.5:
            phrase = self.negated_noun_phrase(noun, case)
            clause.negated_item = len(clause.items)
        else:
            phrase = self.noun_phrase(noun, case, can_be_any=False)
        clause.items.append((phrase, rank))

    def _add_person(self, clause: Clause) -> None:
        person = self.person_object(clause.subject, DATIVE, not clause.is_negated)
        clause.items.append((person, PRONOUN_RANK if person.is_pronoun else DATIVE_RANK))

    def _fitting_noun(self, verb: Verb) -> Noun:
        kind = self.pick_evenly(verb.objects)
        return self.pick(PLACES if kind == "place" else NOUNS[kind])

    def _add_object(self, clause: Clause, depth: int, is_last: bool) -> bool:
        """Add an object; returns whether adverbs may follow: a relative clause would claim them."""
        verb = clause.verb
        kind = self.pick_evenly(verb.objects)
        if kind == "person":
            phrase = self.person_object(clause.subject, ACCUSATIVE, not clause.is_negated)
            if depth == 0 and is_last and not clause.is_negated:
                phrase = self.extended(phrase)
            clause.items.append((phrase, PRONOUN_RANK if phrase.is_pronoun else OBJECT_RANK))
            return phrase.target[-1] is not CLOSING
        noun = self.pick(PLACES if kind == "place" else NOUNS[kind])
        self._add_noun_phrase(clause, noun, ACCUSATIVE, OBJECT_RANK)
        if verb.base[0][0] in _MADE_FOR_OTHERS and not clause.is_negated and self.draw() < 0.25:
            person = self.person_object(clause.subject, ACCUSATIVE)
            clause.items.append((prepositional_phrase(*_FOR, person), ADJUNCT_RANK))
        return True

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
        """Add manner, company, place and time, in this English order."""
        draw, items = self.draw, clause.items
        if not clause.is_negated:
            chance = draw()
            if chance < 0.10 and clause.tense != FUTURE:
                clause.frequency = self.pick(FREQUENCIES[: 5 if clause.tense == MODAL else 6])
            elif chance < 0.25 and clause.verb.base[0][0] in _WITH_MANNER:
                self._add_manner(clause)
            self._add_company_and_place(clause)
        letter = _TENSE_LETTERS.get(clause.tense)
        if letter is None or clause.frequency is not None:
            return
        chance = draw()
        if chance < 0.14:
            clause.initial = self.pick(TIMES[letter]) if is_last else None
        elif chance < 0.32:
            items.append((self.pick(TIMES[letter]), TIME_RANK))

    def _add_manner(self, clause: Clause) -> None:
        """Add manner: in German before an indefinite object, but after a definite one."""
        items = clause.items
        if items and items[-1][1] == ADJUNCT_RANK:
            return
        is_before = bool(items) and not items[-1][0].is_definite
        items.append((self.pick(MANNERS), EARLY_MANNER_RANK if is_before else MANNER_RANK))

    def _add_company_and_place(self, clause: Clause) -> None:
        verb, items = clause.verb, clause.items
        if verb.base[0][0] in _WITH_COMPANY and not verb.preposition and self.draw() < 0.2:
            company = self.person_object(clause.subject, DATIVE)
            items.append((prepositional_phrase(*_WITH, company), ADJUNCT_RANK))
        if verb.frame == "accusative":
            share = 0.14
        elif verb.frame == "intransitive" and not verb.objects:
            share = 0.35
        else:
            return
        if self.draw() < share:
            items.append((self.location(), ADJUNCT_RANK))


def _opener(english: str, german: str) -> Phrase:
    return Phrase(((english, "PRON"),), ((german, "PRON"),), ((0, 0),))
