"""Noise in generated pairs, each labelled with what was done to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from relakit.data.generated.pairs import PUNCTUATION, GeneratedPair, PlantedNoise
from relakit.data.generator_settings import NoiseKind, check_shares

# How many of the last clean pairs are kept for shuffled pairs to take their targets from.
_DONORS: Final = 64

# German phrases with their tags; no source has a counterpart for them.
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


class _Donor(NamedTuple):
    line: int
    pair: GeneratedPair


def plant_noise(
    pairs: Iterable[GeneratedPair], *, shares: Mapping[NoiseKind, float], seed: int
) -> Iterator[GeneratedPair]:
    """The pairs in their order, about the given share of them made noisy in each way, and labelled.

    Links that still hold are kept: none if the target translates nothing of the source. Memory does
    not grow with the corpus. A shuffled pair takes the target of an earlier clean pair; as long as
    there is none, one of the other kinds is planted instead, or nothing if there is no other kind.
    """
    check_shares(shares)
    return _plant(pairs, {kind: share for kind, share in shares.items() if share}, seed)


def _plant(
    pairs: Iterable[GeneratedPair], shares: Mapping[NoiseKind, float], seed: int
) -> Iterator[GeneratedPair]:
    random = Random(f"relakit noise {seed}")
    donors: deque[_Donor] = deque(maxlen=_DONORS)
    total = sum(shares.values())
    others: dict[NoiseKind, float] = {
        kind: share for kind, share in shares.items() if kind != "shuffled"
    }
    for line, pair in enumerate(pairs, start=1):
        # Four draws for every pair, whatever is done to it: with larger shares, pairs that were
        # noisy before stay noisy.
        is_noisy, kind_draw, first, second = (random.random() for _ in range(4))
        kind = _choose(shares, kind_draw) if is_noisy < total else None
        if kind == "shuffled" and not any(donor.pair.target != pair.target for donor in donors):
            kind = _choose(others, kind_draw) if others else None
        if kind is None:
            donors.append(_Donor(line, pair))
            yield pair
        else:
            yield _make_noisy(pair, kind, first, second, donors)


def _choose(shares: Mapping[NoiseKind, float], draw: float) -> NoiseKind:
    """A kind with a probability in proportion to its share; ``draw`` is from 0 to 1."""
    kinds = list(shares)
    rest = draw * sum(shares.values())
    for kind in kinds:
        rest -= shares[kind]
        if rest < 0:
            return kind
    return kinds[-1]  # where rounding left a little of the rest


def _make_noisy(
    pair: GeneratedPair, kind: NoiseKind, first: float, second: float, donors: deque[_Donor]
) -> GeneratedPair:
    if kind == "shuffled":
        others = [donor for donor in donors if donor.pair.target != pair.target]
        line, donor = others[int(first * len(others))]
        label = PlantedNoise(kind, f"target of line {line}")
        return _with_target(pair, label, donor.target, donor.target_tags)
    if kind == "copied":
        label = PlantedNoise(kind, "target is the source")
        return _with_target(pair, label, pair.source, pair.source_tags)
    if kind == "language":
        return _in_french(pair, first, second)
    if kind == "truncated":
        return _truncated(pair, first)
    return _with_insertion(pair, first, second)


def _with_target(
    pair: GeneratedPair, label: PlantedNoise, target: tuple[str, ...], tags: tuple[str, ...]
) -> GeneratedPair:
    return replace(pair, target=target, target_tags=tags, links=(), noise=label)


def _truncated(pair: GeneratedPair, first: float) -> GeneratedPair:
    """Keeps between a fifth and seven tenths of the target, at least one word."""
    kept = max(1, int(len(pair.target) * (0.2 + 0.5 * first)))
    return replace(
        pair,
        target=pair.target[:kept],
        target_tags=pair.target_tags[:kept],
        links=tuple(link for link in pair.links if link[1] < kept),
        noise=PlantedNoise("truncated", f"kept {kept} of {len(pair.target)} words"),
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
        noise=PlantedNoise("inserted", f"words {place}-{place + size - 1}: {' '.join(words)}"),
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
    return _with_target(pair, PlantedNoise("language", "target is French"), words, tags)
