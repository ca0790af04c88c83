"""Sentences: single clauses, clauses side by side, and clauses inside each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from relakit.data.generated.clause_sampling import ClauseSampler
from relakit.data.generated.clauses import (
    AFTER_FRONTED,
    COMMAND,
    INFINITIVE,
    MAIN,
    NOTHING,
    PAST,
    PRESENT,
    QUESTION,
    SUBORDINATE,
    WITHOUT_SUBJECT,
    Clause,
    realise,
)
from relakit.data.generated.inflection import SECOND, THIRD
from relakit.data.generated.phrases import (
    CLOSING,
    COMMA,
    Phrase,
    SourceItem,
    TargetItem,
    assemble,
)
from relakit.data.generated.sampling import Draw
from relakit.data.generated.words import VERBS, Tokens

_PERIOD: Final[Tokens] = ((".", "PUNCT"),)
_QUESTION_MARK: Final[Tokens] = (("?", "PUNCT"),)
_EXCLAMATION_MARK: Final[Tokens] = (("!", "PUNCT"),)
_COMMA: Final[Tokens] = (COMMA,)
_ONE: Final = ((0, 0),)


def _word(english: str, german: str, tags: str) -> Phrase:
    """English words and the one German word for them, which has the last of the tags."""
    source = tuple(zip(english.split(), tags.split(), strict=False))
    target = ((german, tags.split()[-1]),)
    return Phrase(source, target, tuple((word, 0) for word in range(len(source))))


def _adverbs(*words: str) -> Tokens:
    return tuple((word, "ADV") for word in words)


_CONJUNCTIONS: Final = (
    _word("because", "weil", "SCONJ"),
    _word("although", "obwohl", "SCONJ"),
    _word("while", "während", "SCONJ"),
    _word("if", "wenn", "SCONJ"),
    _word("before", "bevor", "SCONJ"),
    _word("as soon as", "sobald", "ADV ADV SCONJ"),
    _word("until", "bis", "SCONJ"),
)
_FRONTED_CONJUNCTIONS: Final = _CONJUNCTIONS[:6]
_THAT: Final = _word("that", "dass", "SCONJ")
_WHETHER: Final = _word("whether", "ob", "SCONJ")
_AND: Final = _word("and", "und", "CCONJ")
_BUT: Final = _word("but", "aber", "CCONJ")
_OR: Final = _word("or", "oder", "CCONJ")
_IN_ORDER: Final = _word("in order", "um", "ADP NOUN SCONJ")
_PLEASE: Final = _word("please", "bitte", "INTJ")
_WHO: Final = Phrase((("who", "PRON"),), (("wer", "PRON"),), _ONE, THIRD, is_pronoun=True)
_WHOM: Final = _word("whom", "wen", "PRON")
_WHAT: Final = _word("what", "was", "PRON")
_QUESTION_WORDS: Final = (
    _word("why", "warum", "ADV"),
    _word("where", "wo", "ADV"),
    _word("when", "wann", "ADV"),
    Phrase(_adverbs("how", "often"), _adverbs("wie", "oft"), ((0, 0), (1, 1))),
)


_WITH_PLACE: Final = frozenset({"motion", "intransitive", "copula"})
"""Frames that already say where: only "why" can be asked."""


class SentenceSampler(ClauseSampler):
    """Draws sentences, as phrases that end in punctuation."""

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        # How often each kind of sentence is drawn, as the upper end of its share of 1.
        self._kinds: tuple[tuple[float, Callable[[], Phrase]], ...] = (
            (0.42, self._statement),
            (0.44, self._existence),
            (0.51, self._question),
            (0.58, self._question_with_word),
            (0.63, self._command),
            (0.69, self._two_clauses),
            (0.76, self._two_predicates),
            (0.86, self._with_subordinate_clause),
            (0.93, self._with_reported_clause),
            (0.97, self._with_infinitive),
            (1.00, self._with_purpose),
        )

    def sentence(self) -> Phrase:
        chance = self.draw()
        for end, kind in self._kinds:
            if chance < end:
                return kind()
        return self._statement()

    def _statement(self) -> Phrase:
        return _finish(realise(self.clause(self.tense()), MAIN))

    def _existence(self) -> Phrase:
        return _finish(realise(self.existential_clause(int(self.draw() < 0.4)), MAIN))

    def _question(self) -> Phrase:
        clause = self.clause(self.tense(), can_be_negated=False)
        clause.initial = None
        return _finish(realise(clause, QUESTION), _QUESTION_MARK)

    def _question_with_word(self) -> Phrase:
        tense = self.tense()
        chance = self.draw()
        if chance < 0.2:
            return self._question_for_object(tense)
        if chance < 0.4:
            clause = self.clause(tense, _WHO, can_be_negated=False)
            clause.initial = None
            return _finish(realise(clause, MAIN), _QUESTION_MARK)
        clause = self.clause(tense, is_last=False, can_be_negated=False, with_adverbs=False)
        words = _QUESTION_WORDS[: 1 if clause.verb.frame in _WITH_PLACE else None]
        return _finish(realise(clause, QUESTION, self.pick(words)), _QUESTION_MARK)

    def _question_for_object(self, tense: int) -> Phrase:
        is_person = self.draw() < 0.4
        clause = self.clause_without_object(self.person_subject(), tense, is_person)
        opener = _WHOM if is_person else _WHAT
        return _finish(realise(clause, QUESTION, opener), _QUESTION_MARK)

    def _command(self) -> Phrase:
        clause = self.voluntary_clause(_YOU, can_be_negated=True)
        is_polite = self.draw() < 0.4 or not clause.items
        opener = _PLEASE if is_polite else NOTHING
        return _finish(realise(clause, COMMAND, opener), _EXCLAMATION_MARK)

    def _two_clauses(self) -> Phrase:
        """Two clauses side by side; English and German both have the comma."""
        tense = PAST if self.draw() < 0.5 else PRESENT
        first = realise(self.clause(tense), MAIN)
        second = realise(self.clause(tense), MAIN)
        joint = self.pick((_AND, _BUT, _OR))
        return _join((first, _comma_pair(), joint, second, _END))

    def _two_predicates(self) -> Phrase:
        tense = PAST if self.draw() < 0.5 else PRESENT
        # A person, who can do whatever the second verb says.
        person = self.person_subject()
        clause = self.clause(tense, person, is_last=False, can_be_negated=False)
        subject = Phrase((), (), (), clause.subject.person)
        other = self.clause(tense, subject, depth=1)
        other.initial = None
        first, second = realise(clause, MAIN), realise(other, WITHOUT_SUBJECT)
        return _join((first, _AND, second, _END))

    def _with_subordinate_clause(self) -> Phrase:
        tense = PAST if self.draw() < 0.45 else PRESENT
        if self.draw() < 0.35:
            conjunction = self.pick(_FRONTED_CONJUNCTIONS)
            first = realise(self.clause(tense, depth=1, is_last=False), SUBORDINATE, conjunction)
            second = self.clause(tense, depth=1)
            second.initial = None
            return _join((first, _comma_pair(), realise(second, AFTER_FRONTED), _END))
        main = realise(self.clause(tense, depth=1), MAIN)
        clause = self.clause(tense, depth=1, is_last=False)
        sub = realise(clause, SUBORDINATE, self.pick(_CONJUNCTIONS))
        return _join((main, _GERMAN_COMMA, sub, _END))

    def _with_reported_clause(self) -> Phrase:
        tense = PAST if self.draw() < 0.45 else PRESENT
        if self.draw() < 0.7:
            frame, opener = "that", _THAT
        else:
            frame, opener = "whether", _WHETHER if self.draw() < 0.6 else _QUESTION_WORDS[0]
        subject = self.person_subject()
        main = Clause(subject, self.pick(VERBS[frame]), tense)
        main.is_negated = self.draw() < 0.12
        clause = self.clause(tense, depth=1, is_last=False)
        parts = (realise(main, MAIN), _GERMAN_COMMA, realise(clause, SUBORDINATE, opener), _END)
        return _join(parts)

    def _with_infinitive(self) -> Phrase:
        tense = PAST if self.draw() < 0.45 else PRESENT
        subject = self.person_subject()
        main = Clause(subject, self.pick(VERBS["infinitive"]), tense)
        clause = self.voluntary_clause(subject)
        parts = (realise(main, MAIN), _GERMAN_COMMA, realise(clause, INFINITIVE), _END)
        return _join(parts)

    def _with_purpose(self) -> Phrase:
        tense = PAST if self.draw() < 0.45 else PRESENT
        main = self.voluntary_clause(self.person_subject(), tense)
        clause = self.voluntary_clause(main.subject)
        purpose = realise(clause, INFINITIVE, _IN_ORDER)
        return _join((realise(main, MAIN), _GERMAN_COMMA, purpose, _END))


_YOU: Final = Phrase((), (), (), SECOND, is_pronoun=True)
_END: Final = Phrase(_PERIOD, _PERIOD, _ONE)
_GERMAN_COMMA: Final = Phrase((), _COMMA, ())


def _comma_pair() -> Phrase:
    return Phrase(_COMMA, _COMMA, _ONE)


def _join(parts: tuple[Phrase, ...]) -> Phrase:
    source: list[SourceItem] = []
    target: list[TargetItem] = []
    for slot, part in enumerate(parts):
        source.append((slot, part.source))
        target.append((slot, part.target, part.links))
    return assemble(source, target)


def _finish(phrase: Phrase, mark: Tokens = _PERIOD) -> Phrase:
    """The phrase with its final punctuation mark."""
    target = list(phrase.target)
    if target[-1] is CLOSING:
        target.pop()
    links = [*phrase.links, (len(phrase.source), len(target))]
    return Phrase([*phrase.source, *mark], [*target, *mark], links)
