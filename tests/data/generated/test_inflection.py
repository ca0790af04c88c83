"""Forms written down by hand, as a grammar book gives them."""

import pytest

from relakit.data.generated.inflection import (
    DATIVE,
    FEMININE,
    GENITIVE,
    MASCULINE,
    NEUTER,
    PLURAL,
    GermanVerbForms,
    determiner_forms,
    english_plural,
    english_verb_forms,
    noun_forms,
)


@pytest.mark.parametrize(
    ("entry", "present", "past", "participle", "imperative"),
    [
        ("kaufen", "kaufe kaufst kauft kaufen", "kaufte kauftest", "gekauft", "kaufe"),
        (
            "arbeiten",
            "arbeite arbeitest arbeitet",
            "arbeitete arbeitetest",
            "gearbeitet",
            "arbeite",
        ),
        ("öffnen", "öffne öffnest öffnet öffnen", "öffnete öffnetest", "geöffnet", "öffne"),
        ("tanzen", "tanze tanzt tanzt tanzen", "tanzte tanztest", "getanzt", "tanze"),
        ("lächeln", "lächle lächelst lächelt lächeln", "lächelte", "gelächelt", "lächle"),
        ("füttern", "füttere fütterst füttert füttern", "fütterte", "gefüttert", "füttere"),
        ("besuchen", "besuche besuchst besucht", "besuchte", "besucht", "besuche"),
        ("reparieren", "repariere reparierst repariert", "reparierte", "repariert", "repariere"),
        ("sehen sieht sah gesehen", "sehe siehst sieht sehen", "sah sahst", "gesehen", "sieh"),
        ("essen isst aß gegessen", "esse isst isst essen", "aß aßest", "gegessen", "iss"),
        ("geben gibt gab gegeben", "gebe gibst gibt geben", "gab gabst", "gegeben", "gib"),
        ("tragen trägt trug getragen", "trage trägst trägt", "trug trugst", "getragen", "trag"),
        (
            "finden findet fand gefunden",
            "finde findest findet",
            "fand fandest",
            "gefunden",
            "finde",
        ),
        ("halten hält/hältst hielt gehalten", "halte hältst hält", "hielt", "gehalten", "halte"),
        ("ein|laden lädt lud geladen", "lade lädst lädt", "lud ludest", "eingeladen", "lade"),
        ("an|rufen ruft rief gerufen", "rufe rufst ruft rufen", "rief", "angerufen", "ruf"),
        ("mögen mag/magst mochte gemocht", "mag magst mag mögen", "mochte", "gemocht", None),
        ("wissen weiß/weißt wusste gewusst", "weiß weißt weiß wissen", "wusste", "gewusst", None),
    ],
)
def test_german_verbs(
    entry: str, present: str, past: str, participle: str, imperative: str | None
) -> None:
    forms = GermanVerbForms(entry)
    assert list(forms.present)[: len(present.split())] == present.split()
    assert list(forms.past)[: len(past.split())] == past.split()
    assert forms.participle == participle
    if imperative is not None:
        assert forms.imperative == imperative


def test_separable_prefixes_take_zu_inside() -> None:
    assert GermanVerbForms("an|rufen ruft rief gerufen").zu_infinitive == ("anzurufen",)
    assert GermanVerbForms("suchen").zu_infinitive == ("zu", "suchen")
    assert GermanVerbForms("auf|wachen sein").perfect_with_sein


@pytest.mark.parametrize(
    ("arguments", "singular", "plural"),
    [
        (
            (MASCULINE, "Hund", "Hundes", "Hunde"),
            "Hund Hund Hund Hundes",
            "Hunde Hunde Hunden Hunde",
        ),
        (
            (MASCULINE, "Junge", "Jungen", "Jungen"),
            "Junge Jungen Jungen Jungen",
            "Jungen Jungen Jungen Jungen",
        ),
        (
            (FEMININE, "Frau", "Frau", "Frauen"),
            "Frau Frau Frau Frau",
            "Frauen Frauen Frauen Frauen",
        ),
        ((NEUTER, "Auto", "Autos", "Autos"), "Auto Auto Auto Autos", "Autos Autos Autos Autos"),
    ],
)
def test_german_nouns(arguments: tuple[int, str, str, str], singular: str, plural: str) -> None:
    assert noun_forms(*arguments) == (tuple(singular.split()), tuple(plural.split()))


def test_determiners() -> None:
    assert determiner_forms("kein")[MASCULINE] == ("kein", "keinen", "keinem", "keines")
    assert determiner_forms("dies")[NEUTER] == ("dieses", "dieses", "diesem", "dieses")
    assert determiner_forms("unser")[FEMININE][DATIVE] == "unserer"
    assert determiner_forms("der")[PLURAL][GENITIVE] == "der"


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        ("dog", "dogs"),
        ("bus", "buses"),
        ("party", "parties"),
        ("boy", "boys"),
        ("church", "churches"),
    ],
)
def test_english_plurals(noun: str, plural: str) -> None:
    assert english_plural(noun) == plural


@pytest.mark.parametrize(
    ("entry", "forms"),
    [
        ("love", ("love", "loves", "loved", "loved")),
        ("carry", ("carry", "carries", "carried", "carried")),
        ("pick_up", ("pick_up", "picks_up", "picked_up", "picked_up")),
        ("go went gone", ("go", "goes", "went", "gone")),
        ("have had had", ("have", "has", "had", "had")),
    ],
)
def test_english_verbs(entry: str, forms: tuple[str, ...]) -> None:
    assert english_verb_forms(entry) == forms
