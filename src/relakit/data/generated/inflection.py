"""Inflection: derives German and English forms from the entries of the lexicon."""

from __future__ import annotations

from typing import Final

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
"""German agreement classes: three genders, and the plural, which has none."""
FIRST, SECOND, THIRD, FIRST_PLURAL, THIRD_PLURAL = range(5)
"""Persons of a verb. "You" is always the German "du", so there is no second person plural."""

GENDERS: Final = {"m": MASCULINE, "f": FEMININE, "n": NEUTER}

# Endings, by agreement class and then case.
_DEFINITE: Final = (
    ("er", "en", "em", "es"),
    ("e", "e", "er", "er"),
    ("es", "es", "em", "es"),
    ("e", "e", "en", "er"),
)
_INDEFINITE: Final = (
    ("", "en", "em", "es"),
    ("e", "e", "er", "er"),
    ("", "", "em", "es"),
    ("e", "e", "en", "er"),
)
ARTICLES: Final = (
    ("der", "den", "dem", "des"),
    ("die", "die", "der", "der"),
    ("das", "das", "dem", "des"),
    ("die", "die", "den", "der"),
)
RELATIVE_PRONOUNS: Final = (
    ("der", "den", "dem", "dessen"),
    ("die", "die", "der", "deren"),
    ("das", "das", "dem", "dessen"),
    ("die", "die", "denen", "deren"),
)
WEAK, MIXED, STRONG = range(3)
"""Declensions of the adjective: after "der", after "ein", and after nothing or a numeral."""
ADJECTIVE_ENDINGS: Final = (
    (
        ("e", "en", "en", "en"),
        ("e", "e", "en", "en"),
        ("e", "e", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    (
        ("er", "en", "en", "en"),
        ("e", "e", "en", "en"),
        ("es", "es", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    (
        ("er", "en", "em", "en"),
        ("e", "e", "er", "er"),
        ("es", "es", "em", "en"),
        ("e", "e", "en", "er"),
    ),
)
CONTRACTIONS: Final = {
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}


def determiner_forms(stem: str) -> tuple[tuple[str, ...], ...]:
    """Forms by agreement class and case of "der", "dies-" and "jed-", or of "ein", "mein", ..."""
    if stem == "der":
        return ARTICLES
    endings = _DEFINITE if stem in ("dies", "jed") else _INDEFINITE
    # "unser" and the like take the endings unchanged.
    return tuple(tuple(stem + ending for ending in row) for row in endings)


def noun_forms(
    gender: int, singular: str, genitive: str, plural: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Singular and plural forms by case."""
    weak = gender == MASCULINE and genitive.endswith("n")
    oblique = genitive if weak else singular
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    return (singular, oblique, oblique, genitive), (plural, plural, dative_plural, plural)


def english_plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def english_verb_forms(entry: str) -> tuple[str, str, str, str]:
    """Base, third person, past and participle; words that belong to the verb stay joined by "_"."""
    forms = entry.split()
    verb, _, rest = forms[0].partition("_")
    tail = f"_{rest}" if rest else ""
    third = {"have": "has", "go": "goes"}.get(verb) or english_plural(verb)
    if len(forms) == 3:
        return forms[0], third + tail, forms[1], forms[2]
    if verb.endswith("e"):
        past = verb + "d"
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        past = verb[:-1] + "ied"
    else:
        past = verb + "ed"
    return forms[0], third + tail, past + tail, past + tail


class GermanVerbForms:
    """All forms of one German verb that the grammar uses."""

    def __init__(self, entry: str) -> None:
        prefix, bar, rest = entry.rpartition("|")
        parts = rest.split()
        self.particle = prefix
        self.perfect_with_sein = parts[-1] == "sein"
        if self.perfect_with_sein:
            parts.pop()
        base = parts[0]
        self.infinitive = prefix + base
        self.zu_infinitive = (f"{prefix}zu{base}",) if bar else ("zu", base)
        stem = base[:-2] if base.endswith("en") else base[:-1]
        link = "e" if _needs_linking_e(stem) else ""
        if len(parts) == 1:
            third, preterite = f"{stem}{link}t", f"{stem}{link}te"
            participle = f"{'' if _has_no_ge(base) else 'ge'}{stem}{link}t"
        else:
            third, preterite, participle = parts[1:]
        third, _, second = third.partition("/")
        second = second or _second_person(third)
        self.participle = prefix + participle
        self.present = (_first_person(base, stem, third), second, third, base, base)
        plural = preterite + ("n" if preterite.endswith("e") else "en")
        self.past = (preterite, _second_person_past(preterite), preterite, plural, plural)
        # A stem with i for e keeps it in the imperative: "gib", "nimm"; other vowels change back.
        if "i" in third and "i" not in base:
            self.imperative = third[:-1]
        elif len(parts) == 1 or link:
            self.imperative = self.present[0]
        else:
            self.imperative = stem


def _first_person(base: str, stem: str, third: str) -> str:
    if not third.endswith("t"):  # "weiß", "mag"
        return third
    if base.endswith("eln"):
        return f"{stem[:-2]}le"
    return stem + "e"


def _needs_linking_e(stem: str) -> bool:
    return stem.endswith(("t", "d", "ffn", "chn"))


def _has_no_ge(infinitive: str) -> bool:
    return infinitive.endswith("ieren") or infinitive.startswith(
        ("be", "ver", "er", "ent", "zer", "ge")
    )


def _second_person(third: str) -> str:
    stem = third[:-1]
    return third if stem.endswith(("s", "ß", "z")) else stem + "st"


def _second_person_past(preterite: str) -> str:
    if preterite.endswith(("t", "d", "s", "ß")):
        return preterite + "est"
    return preterite + "st"
