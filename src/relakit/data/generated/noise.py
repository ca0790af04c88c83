"""Noise planted into generated pairs, with labels."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final, get_args

from relakit.data.generated.pairs import PUNCTUATION, GeneratedPair, Noise

NOISE_KINDS: Final[tuple[Noise, ...]] = get_args(Noise)

# Targets of the last clean pairs, which shuffled pairs take theirs from.
_DONORS: Final = 64

# German phrases and their tags; they have no counterpart in any source.
_INSERTIONS: Final = tuple(
    (tuple(words.split()), tuple(tags.split()))
    for words, tags in (
        ("wie bereits erwähnt", "SCONJ ADV VERB"),
        ("siehe Seite zwölf", "VERB NOUN NUM"),
        ("hier klicken", "ADV VERB"),
        ("ohne jede Gewähr", "ADP DET NOUN"),
        ("mit freundlichen Grüßen", "ADP ADJ NOUN"),
        ("alle Rechte vorbehalten", "DET NOUN VERB"),
        ("laut unseren Angaben", "ADP DET NOUN"),
        ("ehrlich gesagt", "ADV VERB"),
        ("mehr dazu unten", "ADV ADV ADV"),
        ("aus gegebenem Anlass", "ADP ADJ NOUN"),
        ("frei nach dem Original", "ADV ADP DET NOUN"),
        ("unter anderem", "ADP PRON"),
    )
)

_FRENCH_SUBJECTS: Final = (
    *("Le garçon", "La voisine", "Mon frère", "Une amie", "Le vieux médecin", "Ta petite sœur"),
    *("Notre professeur", "Le chien noir", "La reine", "Un touriste", "Le boulanger", "Ma tante"),
)
_FRENCH_PREDICATES: Final = (
    *("mange une pomme", "cherche sa clé", "ouvre la porte", "lit un livre", "chante une chanson"),
    *("achète du pain", "attend le train", "écrit une lettre", "regarde la mer", "boit du café"),
    *("ne trouve pas le chemin", "raconte une histoire", "ferme la fenêtre", "travaille encore"),
)
_FRENCH_ENDINGS: Final = (
    *("dans le jardin", "ce matin", "devant la maison", "avec son ami", "tous les jours"),
    *("à la gare", "pendant la nuit", "sous un arbre", "chez nous", "depuis hier"),
)


def plant_noise(
    pairs: Iterable[GeneratedPair],
    *,
    share: float,
    seed: int,
    kinds: Sequence[Noise] = NOISE_KINDS,
) -> Iterator[GeneratedPair]:
    """The pairs in their order, about `share` of them made noisy and labelled.

    Links are kept as far as they still hold: none in pairs whose target translates nothing of the
    source. Only a few targets are held in memory. A shuffled pair takes the target of an earlier
    clean pair; while there is none to take, another kind is planted, or none if `kinds` allows no
    other.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be from 0 to 1, got {share}")
    unknown = [kind for kind in kinds if kind not in NOISE_KINDS]
    if unknown or not kinds:
        given = repr(unknown[0]) if unknown else "none"
        raise ValueError(f"kinds must be among {', '.join(NOISE_KINDS)}, got {given}")
    return _plant(pairs, share, seed, tuple(kinds))


def _plant(
    pairs: Iterable[GeneratedPair], share: float, seed: int, kinds: tuple[Noise, ...]
) -> Iterator[GeneratedPair]:
    random = Random(f"relakit noise {seed}")
    donors: deque[GeneratedPair] = deque(maxlen=_DONORS)
    for pair in pairs:
        # The same number of draws for every pair, so that more noise keeps what less noise had.
        is_noisy, kind_draw, first, second = (random.random() for _ in range(4))
        if is_noisy >= share:
            donors.append(pair)
            yield pair
            continue
        kind = kinds[int(kind_draw * len(kinds))]
        if kind == "shuffled" and not any(donor.target != pair.target for donor in donors):
            others = [other for other in kinds if other != "shuffled"]
            if not others:
                donors.append(pair)
                yield pair
                continue
            kind = others[int(kind_draw * len(others))]
        yield _make_noisy(pair, kind, first, second, donors)


def _make_noisy(
    pair: GeneratedPair, kind: Noise, first: float, second: float, donors: deque[GeneratedPair]
) -> GeneratedPair:
    if kind == "shuffled":
        others = [donor for donor in donors if donor.target != pair.target]
        donor = others[int(first * len(others))]
        return _with_target(pair, kind, donor.target, donor.target_tags)
    if kind == "copied":
        return _with_target(pair, kind, pair.source, pair.source_tags)
    if kind == "language":
        return _in_french(pair, first, second)
    if kind == "truncated":
        return _truncated(pair, first)
    return _with_insertion(pair, first, second)


def _with_target(
    pair: GeneratedPair, kind: Noise, target: tuple[str, ...], tags: tuple[str, ...]
) -> GeneratedPair:
    return replace(pair, target=target, target_tags=tags, links=(), noise=kind)


def _truncated(pair: GeneratedPair, first: float) -> GeneratedPair:
    """Keeps between a fifth and seven tenths of the target, at least one word."""
    kept = max(1, int(len(pair.target) * (0.2 + 0.5 * first)))
    return replace(
        pair,
        target=pair.target[:kept],
        target_tags=pair.target_tags[:kept],
        links=tuple(link for link in pair.links if link[1] < kept),
        noise="truncated",
    )


def _with_insertion(pair: GeneratedPair, first: float, second: float) -> GeneratedPair:
    """A phrase after any word but the last, which is the final mark."""
    words, tags = _INSERTIONS[int(first * len(_INSERTIONS))]
    place = 1 + int(second * (len(pair.target) - 1))
    size = len(words)
    return replace(
        pair,
        target=(*pair.target[:place], *words, *pair.target[place:]),
        target_tags=(*pair.target_tags[:place], *tags, *pair.target_tags[place:]),
        links=tuple((left, right if right < place else right + size) for left, right in pair.links),
        noise="inserted",
    )


def _in_french(pair: GeneratedPair, first: float, second: float) -> GeneratedPair:
    subjects, predicates = len(_FRENCH_SUBJECTS), len(_FRENCH_PREDICATES)
    subject, predicate = divmod(int(first * subjects * predicates), predicates)
    text = " ".join(
        (
            _FRENCH_SUBJECTS[subject],
            _FRENCH_PREDICATES[predicate],
            _FRENCH_ENDINGS[int(second * len(_FRENCH_ENDINGS))],
            ".",
        )
    )
    words = tuple(text.split())
    # X is the universal tag of foreign words.
    tags = tuple("PUNCT" if word in PUNCTUATION else "X" for word in words)
    return _with_target(pair, "language", words, tags)
