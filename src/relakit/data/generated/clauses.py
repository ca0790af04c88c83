"""Clauses: the same parts in English order and in German order.

English: opener, subject, auxiliary, "not", adverb, verb, complements. German: the finite verb is
second in main clauses, first in questions and commands, last in subordinate clauses; infinitives,
participles and separable prefixes close the clause; in between, the parts are ordered by rank.
"""

from __future__ import annotations

from typing import Final

from relakit.data.generated.inflection import SECOND
from relakit.data.generated.phrases import (
    REFLEXIVES,
    Phrase,
    SourceItem,
    TargetItem,
    assemble,
)
from relakit.data.generated.words import Links, Tokens, Verb

PRESENT, PAST, PERFECT, FUTURE, MODAL = range(5)
MAIN, AFTER_FRONTED, QUESTION, SUBORDINATE, WITHOUT_SUBJECT, INFINITIVE, COMMAND = range(7)
"""Kinds of clause; AFTER_FRONTED follows a subordinate clause, which comes first."""

# Order in the German middle field.
(
    PRONOUN_RANK,
    TIME_RANK,
    FREQUENCY_RANK,
    DATIVE_RANK,
    EARLY_MANNER_RANK,
    OBJECT_RANK,
    NEGATION_RANK,
    MANNER_RANK,
    ADJUNCT_RANK,
    PREDICATE_RANK,
) = range(10)

_SUBJECT, _AUXILIARY, _NOT, _MODAL, _VERB, _FREQUENCY, _OPENER, _INITIAL, _TO, _ITEMS = range(10)
_ONE: Final[Links] = ((0, 0),)
_NICHT: Final[Tokens] = (("nicht", "PART"),)
_ENGLISH_NOT: Final[Tokens] = (("not", "PART"),)
_TO_TOKENS: Final[Tokens] = (("to", "PART"),)
NOTHING: Final = Phrase((), (), ())


def _by_person(*words: str) -> tuple[Tokens, ...]:
    return tuple(tuple((word, "AUX") for word in form.split()) for form in words)


_DO: Final = (
    _by_person("do", "do", "does", "do", "do"),
    _by_person("did", "did", "did", "did", "did"),
)
_HAVE: Final = _by_person("have", "have", "has", "have", "have")
_WILL: Final[Tokens] = (("will", "AUX"),)
_HABEN: Final = _by_person("habe", "hast", "hat", "haben", "haben")
_SEIN: Final = _by_person("bin", "bist", "ist", "sind", "sind")
_WERDEN: Final = _by_person("werde", "wirst", "wird", "werden", "werden")


class Modal:
    """A modal verb. "Want to" takes "do" like other verbs and keeps a "to" with no counterpart."""

    def __init__(self, english: str, german: tuple[str, ...], negated: str = "") -> None:
        self.english = _by_person(*([english] * 5))
        self.german = _by_person(*german)
        self.negated: Tokens = ((negated, "AUX"),) if negated else ()
        self.needs_do = False
        self.can_be_negated = True


CAN: Final = Modal("can", ("kann", "kannst", "kann", "können", "können"), negated="cannot")
MUST: Final = Modal("must", ("muss", "musst", "muss", "müssen", "müssen"))
MUST.can_be_negated = False
MAY: Final = Modal("may", ("darf", "darfst", "darf", "dürfen", "dürfen"))
SHOULD: Final = Modal("should", ("sollte", "solltest", "sollte", "sollten", "sollten"))
COULD: Final = Modal("could", ("konnte", "konntest", "konnte", "konnten", "konnten"))
WANT: Final = Modal("want to", ("will", "willst", "will", "wollen", "wollen"))
WANT.english = tuple(
    ((word, "VERB"), ("to", "PART")) for word in ("want", "want", "wants", "want", "want")
)
WANT.needs_do = True
MODALS: Final = (CAN, WANT, MUST, SHOULD, MAY, COULD)


class Clause:
    """The content of a clause, before any word order."""

    __slots__ = (
        "frequency",
        "initial",
        "is_negated",
        "items",
        "modal",
        "negated_item",
        "subject",
        "tense",
        "verb",
    )

    def __init__(self, subject: Phrase, verb: Verb, tense: int, modal: Modal = CAN) -> None:
        self.subject = subject
        self.verb = verb
        self.tense = tense
        self.modal = modal
        self.is_negated = False
        self.items: list[tuple[Phrase, int]] = []
        """Complements in English order, each with its rank in the German middle field."""
        self.negated_item = -1
        """Number of the item whose German determiner is "kein", or -1 if "nicht" is used."""
        self.initial: Phrase | None = None
        """Time phrase before the subject."""
        self.frequency: Phrase | None = None


def realise(clause: Clause, kind: int, opener: Phrase = NOTHING) -> Phrase:
    """The clause in both languages. The opener is a conjunction, a question word or a pronoun."""
    if kind >= INFINITIVE:
        return _realise_subjectless(clause, kind, opener)
    group = _verb_group(clause, clause.subject.person, kind == QUESTION)
    source = _english_order(clause, kind, opener, group[0])
    middle = _middle_field(clause, clause.subject.person, group[3])
    if kind == SUBORDINATE:
        target = _verb_last(clause, opener, middle, group[1], group[2])
    else:
        target = _verb_second(clause, kind, opener, middle, group[1], group[2])
    return assemble(source, target)


def _english_order(
    clause: Clause, kind: int, opener: Phrase, verb_group: list[SourceItem]
) -> list[SourceItem]:
    subject: SourceItem = (_SUBJECT, clause.subject.source)
    source: list[SourceItem] = [(_OPENER, opener.source)]
    if clause.initial is not None:
        source.append((_INITIAL, clause.initial.source))
    if kind == WITHOUT_SUBJECT:
        source += verb_group
    elif kind == QUESTION:
        source += (verb_group[0], subject, *verb_group[1:])
    else:
        source += (subject, *verb_group)
    return source + _english_items(clause)


def _english_items(clause: Clause) -> list[SourceItem]:
    return [(_ITEMS + number, item.source) for number, (item, _) in enumerate(clause.items)]


def _verb_last(
    clause: Clause,
    opener: Phrase,
    middle: list[TargetItem],
    finite: TargetItem,
    closing: TargetItem | None,
) -> list[TargetItem]:
    verb, subject = clause.verb, clause.subject
    target = [(_OPENER, opener.target, opener.links), (_SUBJECT, subject.target, subject.links)]
    target += middle
    if closing is not None:
        target.append(closing)
    elif verb.particle:
        joined = verb.joined_past if clause.tense == PAST else verb.joined_present
        finite = (finite[0], joined[subject.person], finite[2])
    target.append(finite)
    return target


def _verb_second(
    clause: Clause,
    kind: int,
    opener: Phrase,
    middle: list[TargetItem],
    finite: TargetItem,
    closing: TargetItem | None,
) -> list[TargetItem]:
    """Put the finite verb after the first part, or first if that part is outside the clause."""
    verb = clause.verb
    subject: TargetItem = (_SUBJECT, clause.subject.target, clause.subject.links)
    target: list[TargetItem] = [(_OPENER, opener.target, opener.links)]
    if kind == WITHOUT_SUBJECT:
        target.append(finite)
    elif kind == MAIN and clause.initial is None:
        target += (subject, finite)
    else:
        if clause.initial is not None:
            target.append((_INITIAL, clause.initial.target, clause.initial.links))
        target.append(finite)
        # "Heute beeilt sich der Mann", but "heute beeilt er sich".
        if verb.frame == "reflexive" and not clause.subject.is_pronoun:
            target.append(middle.pop(0))
        target.append(subject)
    target += middle
    if closing is not None:
        target.append(closing)
    elif verb.particle:
        target.append((_VERB, verb.particle, verb.links))
    return target


def _verb_group(
    clause: Clause, person: int, asks: bool
) -> tuple[list[SourceItem], TargetItem, TargetItem | None, int]:
    """The English items from the auxiliary to the verb; the German finite verb and what closes the
    clause, if anything does; and the slot of the English negation."""
    verb, tense = clause.verb, clause.tense
    source: list[SourceItem] = []
    closing: TargetItem | None = None
    negation: SourceItem | None = (_NOT, _ENGLISH_NOT) if clause.is_negated else None
    not_slot = _NOT
    modal_tokens: Tokens = ()
    english = verb.base
    finite: TargetItem
    if tense == PERFECT:
        source.append((_AUXILIARY, _HAVE[person]))
        english = verb.english_participle
        finite = (_AUXILIARY, (_SEIN if verb.with_sein else _HABEN)[person], _ONE)
        closing = (_VERB, verb.participle, verb.links)
    elif tense == FUTURE:
        source.append((_AUXILIARY, _WILL))
        finite = (_AUXILIARY, _WERDEN[person], _ONE)
        closing = (_VERB, verb.infinitive, verb.links)
    elif tense == MODAL:
        modal = clause.modal
        closing = (_VERB, verb.infinitive, verb.links)
        if modal.needs_do:
            if asks or clause.is_negated:
                source.append((_AUXILIARY, _DO[0][person]))
                modal_tokens = modal.english[0]
            else:
                modal_tokens = modal.english[person]
            finite = (_MODAL, modal.german[person], _ONE)
        else:
            finite = (_AUXILIARY, modal.german[person], _ONE)
            if clause.is_negated and modal.negated:
                source.append((_AUXILIARY, modal.negated))
                negation, not_slot = None, _AUXILIARY
            else:
                source.append((_AUXILIARY, modal.english[person]))
    else:
        german = (verb.past if tense == PAST else verb.present)[person]
        finite = (_VERB, german, verb.links)
        forms = verb.english_past if tense == PAST else verb.english_present
        if verb.is_copula:
            source.append((_AUXILIARY, forms[person]))
            english = ()
            finite = (_AUXILIARY, german, _ONE)
        elif asks or clause.is_negated:
            source.append((_AUXILIARY, _DO[tense][person]))
        else:
            english = forms[person]
    if negation is not None:
        source.append(negation)
    if clause.frequency is not None:
        source.append((_FREQUENCY, clause.frequency.source))
    if modal_tokens:
        source.append((_MODAL, modal_tokens))
    if english:
        source.append((_VERB, english))
    return source, finite, closing, not_slot


def _middle_field(clause: Clause, person: int, not_slot: int) -> list[TargetItem]:
    """The German complements and adverbs in order of rank."""
    ranked: list[tuple[int, TargetItem]] = []
    if clause.verb.frame == "reflexive":
        ranked.append((PRONOUN_RANK, (_SUBJECT, REFLEXIVES[person], ())))
    slot = _ITEMS
    for number, (item, rank) in enumerate(clause.items):
        if number == clause.negated_item:
            # No word of its own: the negation is linked to "kein", the next word.
            ranked.append((rank, (not_slot, (), _ONE)))
        ranked.append((rank, (slot, item.target, item.links)))
        slot += 1
    if clause.frequency is not None:
        ranked.append(
            (FREQUENCY_RANK, (_FREQUENCY, clause.frequency.target, clause.frequency.links))
        )
    if clause.is_negated and clause.negated_item < 0:
        ranked.append((NEGATION_RANK, (not_slot, _NICHT, _ONE)))
    if len(ranked) > 1:
        ranked.sort(key=_rank)
    return [item for _, item in ranked]


def _rank(entry: tuple[int, TargetItem]) -> int:
    return entry[0]


def _realise_subjectless(clause: Clause, kind: int, opener: Phrase) -> Phrase:
    """An infinitive with "to", or a command."""
    verb = clause.verb
    source: list[SourceItem] = [(_OPENER, opener.source)]
    target: list[TargetItem] = [(_OPENER, opener.target, opener.links)]
    if kind == INFINITIVE:
        source += ((_TO, _TO_TOKENS), (_VERB, verb.base))
        target += _middle_field(clause, clause.subject.person, _NOT)
        if verb.particle:
            target += ((_TO, (), _ONE), (_VERB, verb.zu_infinitive, verb.links))
        else:
            target += (
                (_TO, verb.zu_infinitive[:1], _ONE),
                (_VERB, verb.zu_infinitive[1:], verb.links),
            )
    else:
        if clause.is_negated:
            source += ((_AUXILIARY, _DO[0][SECOND]), (_NOT, _ENGLISH_NOT))
        source.append((_VERB, verb.base))
        target.append((_VERB, verb.imperative, verb.links))
        target += _middle_field(clause, SECOND, _NOT)
        if verb.particle:
            target.append((_VERB, verb.particle, verb.links))
    return assemble(source + _english_items(clause), target)
