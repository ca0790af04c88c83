"""Sentences written down by hand in both languages, with their links."""

from collections.abc import Sequence

import pytest

from relakit.data.generated.clauses import (
    ADJUNCT_RANK,
    AFTER_FRONTED,
    CAN,
    COMMAND,
    DATIVE_RANK,
    FUTURE,
    INFINITIVE,
    MAIN,
    MODAL,
    OBJECT_RANK,
    PAST,
    PERFECT,
    PRESENT,
    PRONOUN_RANK,
    QUESTION,
    SUBORDINATE,
    TIME_RANK,
    WANT,
    Clause,
    realise,
)
from relakit.data.generated.inflection import ACCUSATIVE, DATIVE, NOMINATIVE
from relakit.data.generated.phrases import (
    AN,
    NOT_A,
    NOT_ANY,
    OBJECT_PRONOUNS,
    POSSESSIVES,
    SUBJECT_PRONOUNS,
    THE,
    THIS,
    A,
    Determiner,
    Phrase,
    noun_phrase,
    prepositional_phrase,
)
from relakit.data.generated.words import ADJECTIVES, NOUNS, VERBS, Adjective, Noun, Verb, tokens


def noun(english: str) -> Noun:
    return next(
        noun
        for nouns in NOUNS.values()
        for noun in nouns
        if " ".join(word for word, _ in noun.singular) == english
    )


def verb(frame: str, english: str) -> Verb:
    return next(verb for verb in VERBS[frame] if verb.base[0][0] == english)


def adjective(english: str) -> Adjective:
    return next(word for word in ADJECTIVES if word.english[0] == english)


def phrase(
    determiner: Determiner, words: str, case: int = NOMINATIVE, is_plural: bool = False
) -> Phrase:
    """Adjectives and noun in English; compounds are joined by "_"."""
    *adjectives, name = words.split()
    return noun_phrase(
        noun(name.replace("_", " ")),
        case,
        determiner,
        is_plural,
        [adjective(word) for word in adjectives],
    )


def pronoun(english: str) -> Phrase:
    return next(word for word in SUBJECT_PRONOUNS if word.source[0][0] == english)


YESTERDAY = Phrase((("yesterday", "ADV"),), (("gestern", "ADV"),), ((0, 0),))
BECAUSE = Phrase((("because", "SCONJ"),), (("weil", "SCONJ"),), ((0, 0),))
MAN, WOMAN = phrase(THE, "man"), phrase(THE, "woman")


def make(
    subject: Phrase,
    verb: Verb,
    tense: int,
    items: Sequence[tuple[Phrase, int]] = (),
    *,
    modal: object = CAN,
    is_negated: bool = False,
    negated_item: int = -1,
    initial: Phrase | None = None,
) -> Clause:
    clause = Clause(subject, verb, tense, WANT if modal is WANT else CAN)
    clause.items = list(items)
    clause.is_negated = is_negated
    clause.negated_item = negated_item
    clause.initial = initial
    return clause


DOG = (phrase(THE, "old dog", ACCUSATIVE), OBJECT_RANK)
HIM = (OBJECT_PRONOUNS[ACCUSATIVE][0], PRONOUN_RANK)
SEE, CALL, HELP = verb("accusative", "see"), verb("accusative", "call"), verb("dative", "help")
GO, HURRY, REST = verb("motion", "go"), verb("reflexive", "hurry"), verb("reflexive", "rest")
TO_THE_SCHOOL = prepositional_phrase(
    tokens("to", "ADP"), ("zu", "ADP"), phrase(THE, "school", DATIVE)
)
INTO_THE_HOUSE = prepositional_phrase(
    tokens("into", "ADP"), ("in", "ADP"), phrase(THE, "house", ACCUSATIVE)
)
UNDER_A_TREE = prepositional_phrase(
    tokens("under", "ADP"), ("unter", "ADP"), phrase(AN, "apple_tree", DATIVE)
)

CASES = [
    # verb second
    (make(MAN, SEE, PRESENT, [DOG]), MAIN, "the man sees the old dog",
     "der Mann sieht den alten Hund", "0-0 1-1 2-2 3-3 4-4 5-5"),
    (make(MAN, SEE, PAST, [DOG], initial=YESTERDAY), MAIN, "yesterday the man saw the old dog",
     "gestern sah der Mann den alten Hund", "0-0 1-2 2-3 3-1 4-4 5-5 6-6"),
    (make(MAN, SEE, PAST, [HIM, (YESTERDAY, TIME_RANK)]), MAIN, "the man saw him yesterday",
     "der Mann sah ihn gestern", "0-0 1-1 2-2 3-3 4-4"),
    # verb last
    (make(MAN, CALL, PRESENT, [HIM]), SUBORDINATE, "because the man calls him",
     "weil der Mann ihn anruft", "0-0 1-1 2-2 3-4 4-3"),
    (make(MAN, SEE, PERFECT, [DOG]), SUBORDINATE, "because the man has seen the old dog",
     "weil der Mann den alten Hund gesehen hat", "0-0 1-1 2-2 3-7 4-6 5-3 6-4 7-5"),
    # separable verb: the English verb goes with both parts
    (make(MAN, CALL, PRESENT, [HIM]), MAIN, "the man calls him", "der Mann ruft ihn an",
     "0-0 1-1 2-2 2-4 3-3"),
    (make(MAN, CALL, PERFECT, [HIM]), MAIN, "the man has called him",
     "der Mann hat ihn angerufen", "0-0 1-1 2-2 3-4 4-3"),
    (make(MAN, CALL, PRESENT, [HIM]), INFINITIVE, "to call him", "ihn anzurufen", "0-1 1-1 2-0"),
    (make(MAN, SEE, PRESENT, [HIM]), INFINITIVE, "to see him", "ihn zu sehen", "0-1 1-2 2-0"),
    # negation: "nicht", and "kein" linked to both "not" and the article
    (make(MAN, SEE, PRESENT, [DOG], is_negated=True), MAIN, "the man does not see the old dog",
     "der Mann sieht den alten Hund nicht", "0-0 1-1 3-6 4-2 5-3 6-4 7-5"),
    (make(MAN, SEE, PRESENT, [(phrase(NOT_A, "dog", ACCUSATIVE), OBJECT_RANK)], is_negated=True,
          negated_item=0), MAIN, "the man does not see a dog", "der Mann sieht keinen Hund",
     "0-0 1-1 3-3 4-2 5-3 6-4"),
    (make(MAN, SEE, PAST, [(phrase(NOT_ANY, "black cat", ACCUSATIVE, True), OBJECT_RANK)],
          is_negated=True, negated_item=0), MAIN, "the man did not see black cats",
     "der Mann sah keine schwarzen Katzen", "0-0 1-1 3-3 4-2 5-4 6-5"),
    (make(MAN, SEE, MODAL, [DOG], is_negated=True), MAIN, "the man cannot see the old dog",
     "der Mann kann den alten Hund nicht sehen", "0-0 1-1 2-2 2-6 3-7 4-3 5-4 6-5"),
    (make(MAN, SEE, MODAL, [DOG], modal=WANT, is_negated=True), MAIN,
     "the man does not want to see the old dog", "der Mann will den alten Hund nicht sehen",
     "0-0 1-1 3-6 4-2 6-7 7-3 8-4 9-5"),
    # questions: "does" has no counterpart
    (make(MAN, SEE, PRESENT, [DOG]), QUESTION, "does the man see the old dog",
     "sieht der Mann den alten Hund", "1-1 2-2 3-0 4-3 5-4 6-5"),
    (make(WOMAN, REST, PRESENT), QUESTION, "does the woman rest", "ruht sich die Frau aus",
     "1-2 2-3 3-0 3-4"),
    # cases and contractions
    (make(pronoun("I"), HELP, PRESENT, [(phrase(THIS, "small child", DATIVE, True), DATIVE_RANK)]),
     MAIN, "I help these small children", "ich helfe diesen kleinen Kindern",
     "0-0 1-1 2-2 3-3 4-4"),
    (make(pronoun("you"), GO, PERFECT, [(TO_THE_SCHOOL, ADJUNCT_RANK)]), MAIN,
     "you have gone to the school", "du bist zur Schule gegangen", "0-0 1-1 2-4 3-2 4-2 5-3"),
    (make(pronoun("they"), GO, FUTURE, [(INTO_THE_HOUSE, ADJUNCT_RANK)]), MAIN,
     "they will go into the house", "sie werden ins Haus gehen", "0-0 1-1 2-4 3-2 4-2 5-3"),
    (make(pronoun("we"), verb("intransitive", "sleep"), PAST, [(UNDER_A_TREE, ADJUNCT_RANK)]), MAIN,
     "we slept under an apple tree", "wir schliefen unter einem Apfelbaum",
     "0-0 1-1 2-2 3-3 4-4 5-4"),
    # weak noun, possessive, dative before accusative
    (make(pronoun("she"), verb("ditransitive", "give"), PRESENT,
          [(phrase(POSSESSIVES[0], "young boy", DATIVE), DATIVE_RANK),
           (phrase(A, "red hat", ACCUSATIVE), OBJECT_RANK)]), MAIN,
     "she gives my young boy a red hat", "sie gibt meinem jungen Jungen einen roten Hut",
     "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7"),
    # after a fronted clause; reflexive; command
    (make(MAN, HURRY, PAST), AFTER_FRONTED, "the man hurried",
     "beeilte sich der Mann", "0-2 1-3 2-0"),
    (make(pronoun("you"), CALL, PRESENT, [HIM], is_negated=True), COMMAND, "do not call him",
     "ruf ihn nicht an", "1-2 2-0 2-3 3-1"),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "kind", "english", "german", "links"), CASES)
def test_clause(clause: Clause, kind: int, english: str, german: str, links: str) -> None:
    made = realise(clause, kind, BECAUSE) if kind == SUBORDINATE else realise(clause, kind)
    assert " ".join(word for word, _ in made.source) == english
    assert " ".join(word for word, _ in made.target) == german
    assert " ".join(f"{left}-{right}" for left, right in sorted(made.links)) == links


def test_tags() -> None:
    clause = make(MAN, CALL, PERFECT, [HIM], is_negated=True)
    made = realise(clause, MAIN)
    assert [tag for _, tag in made.source] == ["DET", "NOUN", "AUX", "PART", "VERB", "PRON"]
    assert [tag for _, tag in made.target] == ["DET", "NOUN", "AUX", "PRON", "PART", "VERB"]
