"""Plants noise in generated pairs, and labels each with what was done to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Final, TypeAlias

from relakit.data.generated.pairs import PUNCTUATION, GeneratedPair, PlantedNoise
from relakit.data.noise_draw import (
    Donor,
    NoiseKind,
    Planter,
    draw_below,
    draw_kept_words,
    draw_noise,
)

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


_Donors: TypeAlias = Sequence[Donor[GeneratedPair]]


def plant_noise(
    pairs: Iterable[GeneratedPair], *, shares: Mapping[NoiseKind, float], seed: int
) -> Iterator[GeneratedPair]:
    """The pairs in order, labelled, with about the given share of them made noisy in each way.

    Links that still hold are kept: none if the target translates nothing of the source. Memory does
    not grow with the corpus. A shuffled pair takes the target of an earlier clean pair; while there
    is none, one of the other kinds is planted instead, or nothing if there is no other kind.
    """
    return draw_noise(pairs, _PLANTERS, shares=shares, seed=seed)


def _shuffled(pair: GeneratedPair, random: Random, donors: _Donors) -> GeneratedPair | None:
    others = [donor for donor in donors if donor.pair.target != pair.target]
    if not others:
        return None
    donor = others[draw_below(len(others), random)]
    label = PlantedNoise("shuffled", f"target of line {donor.line}")
    return _with_target(pair, label, donor.pair.target, donor.pair.target_tags)


def _copied(pair: GeneratedPair, random: Random, donors: _Donors) -> GeneratedPair:
    label = PlantedNoise("copied", "target is the source")
    return _with_target(pair, label, pair.source, pair.source_tags)


def _with_target(
    pair: GeneratedPair, label: PlantedNoise, target: tuple[str, ...], tags: tuple[str, ...]
) -> GeneratedPair:
    return replace(pair, target=target, target_tags=tags, links=(), noise=label)


def _truncated(pair: GeneratedPair, random: Random, donors: _Donors) -> GeneratedPair:
    kept = draw_kept_words(len(pair.target), random)
    return replace(
        pair,
        target=pair.target[:kept],
        target_tags=pair.target_tags[:kept],
        links=tuple(link for link in pair.links if link[1] < kept),
        noise=PlantedNoise("truncated", f"kept {kept} of {len(pair.target)} words"),
    )


def _inserted(pair: GeneratedPair, random: Random, donors: _Donors) -> GeneratedPair:
    """Insert a phrase after any word but the last, which is the final punctuation mark."""
    words, tags = _INSERTIONS[draw_below(len(_INSERTIONS), random)]
    place = 1 + draw_below(len(pair.target) - 1, random)
    size = len(words)
    return replace(
        pair,
        target=(*pair.target[:place], *words, *pair.target[place:]),
        target_tags=(*pair.target_tags[:place], *tags, *pair.target_tags[place:]),
        links=tuple((left, right if right < place else right + size) for left, right in pair.links),
        noise=PlantedNoise("inserted", f"words {place}-{place + size - 1}: {' '.join(words)}"),
    )


def _in_french(pair: GeneratedPair, random: Random, donors: _Donors) -> GeneratedPair:
    parts = (_FRENCH_SUBJECTS, _FRENCH_PREDICATES, _FRENCH_ENDINGS)
    text = " ".join((*(part[draw_below(len(part), random)] for part in parts), "."))
    words = tuple(text.split())
    # X is the universal tag for foreign words.
    tags = tuple("PUNCT" if word in PUNCTUATION else "X" for word in words)
    return _with_target(pair, PlantedNoise("language", "target is French"), words, tags)


_PLANTERS: Final[Mapping[NoiseKind, Planter[GeneratedPair]]] = MappingProxyType(
    {
        "shuffled": _shuffled,
        "inserted": _inserted,
        "truncated": _truncated,
        "language": _in_french,
        "copied": _copied,
    }
)
