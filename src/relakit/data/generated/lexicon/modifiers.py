"""Adjectives, adverbs, names and fixed phrases of the generated corpus."""

from __future__ import annotations

# English, its comparative ("-" where it is not used), German, stem before endings, German
# comparative, and the noun classes it goes with.
ADJECTIVE_TABLE = """
    old older alt alt älter | person animal thing text clothing vehicle place opening plant
    young younger jung jung jünger | person animal
    small smaller klein klein kleiner | person animal thing vehicle place opening plant food
    big bigger groß groß größer | animal thing vehicle place opening plant food
    new newer neu neu neuer | thing text clothing vehicle place opening
    beautiful more_beautiful schön schön schöner | person thing clothing place plant event
    red - rot rot - | thing clothing vehicle opening
    friendly friendlier freundlich freundlich freundlicher | person animal
    good better gut gut besser | person text food staple drink event
    blue - blau blau - | thing clothing vehicle opening
    long longer lang lang länger | text clothing event
    tired - müde müd - | person animal
    expensive more_expensive teuer teur teurer | thing clothing vehicle food drink staple
    cold colder kalt kalt kälter | drink place food
    clever cleverer klug klug klüger | person animal
    black - schwarz schwarz - | animal thing clothing vehicle
    white - weiß weiß - | animal thing clothing vehicle opening
    short shorter kurz kurz kürzer | text event
    famous more_famous berühmt berühmt berühmter | person text
    heavy heavier schwer schwer schwerer | thing
    fresh fresher frisch frisch frischer | food staple drink
    green - grün grün - | thing clothing vehicle opening plant
    sad sadder traurig traurig trauriger | person animal text
    happy happier glücklich glücklich glücklicher | person
    warm warmer warm warm wärmer | clothing food drink place
    interesting more_interesting interessant interessant interessanter | person text place event
    cheap cheaper billig billig billiger | thing clothing vehicle food drink staple
    dark darker dunkel dunkl dunkler | clothing place
    strong stronger stark stark stärker | person animal
    sweet sweeter süß süß süßer | food drink
    poor poorer arm arm ärmer | person
    rich richer reich reich reicher | person
    lazy lazier faul faul fauler | person animal
    hungry hungrier hungrig hungrig hungriger | person animal
    brave braver mutig mutig mutiger | person animal
    important more_important wichtig wichtig wichtiger | person text event
    boring more_boring langweilig langweilig langweiliger | text event
    brown - braun braun - | animal thing clothing
    quiet quieter ruhig ruhig ruhiger | person animal place
    strict stricter streng streng strenger | person
    modern more_modern modern modern moderner | vehicle place
    dirty dirtier schmutzig schmutzig schmutziger | clothing vehicle thing opening
    empty - leer leer - | place
    broken - kaputt kaputt - | vehicle opening
    strange stranger seltsam seltsam seltsamer | person text thing
    yellow - gelb gelb - | thing clothing vehicle
    polite more_polite höflich höflich höflicher | person
    dangerous more_dangerous gefährlich gefährlich gefährlicher | animal place
    curious more_curious neugierig neugierig neugieriger | person animal
    wonderful more_wonderful wunderbar wunderbar wunderbarer | place text event
"""

# None ends in a sibilant, so the German genitive is the name plus -s.
NAMES = (
    *("Anna", "Peter", "Maria", "Paul", "Laura", "Martin", "Julia", "Jan", "Sarah", "Daniel"),
    *("Eva", "Robert", "Lena", "David", "Clara", "Simon", "Nina", "Oliver", "Helena", "Karl"),
    *("Sofia", "Anton", "Emma", "Felicia"),
)
FEMININE_NAMES = frozenset(
    {"Anna", "Maria", "Laura", "Julia", "Sarah", "Eva", "Lena", "Clara", "Nina", "Helena"}
    | {"Sofia", "Emma", "Felicia"}
)
# The same in both languages, after "to" ("nach"), "in" and "from" ("aus").
CITIES = ("Berlin", "London", "Hamburg", "Paris", "Dresden", "Madrid", "Bremen", "Oslo", "Boston")

NUMERALS = (
    *(("two", "zwei"), ("three", "drei"), ("four", "vier"), ("five", "fünf"), ("six", "sechs")),
    *(("seven", "sieben"), ("eight", "acht"), ("nine", "neun"), ("ten", "zehn")),
    *(("eleven", "elf"), ("twelve", "zwölf")),
)

# The tenses that a phrase suits, English words, German words, tags of both, links.
# Tenses: p present, t past (preterite), f future, m modal.
TIME_TABLE = """
    ptfm | today | heute | ADV | ADV | 0-0
    t | yesterday | gestern | ADV | ADV | 0-0
    pfm | tomorrow | morgen | ADV | ADV | 0-0
    p | now | jetzt | ADV | ADV | 0-0
    pt | every day | jeden Tag | DET NOUN | DET NOUN | 0-0 1-1
    ptfm | in the evening | am Abend | ADP DET NOUN | ADP NOUN | 0-0 1-0 2-1
    ptfm | on Monday | am Montag | ADP PROPN | ADP NOUN | 0-0 1-1
    t | last week | letzte Woche | ADJ NOUN | ADJ NOUN | 0-0 1-1
    fm | next week | nächste Woche | ADJ NOUN | ADJ NOUN | 0-0 1-1
    ptfm | in the morning | am Morgen | ADP DET NOUN | ADP NOUN | 0-0 1-0 2-1
    fm | soon | bald | ADV | ADV | 0-0
    ptfm | on Sunday | am Sonntag | ADP PROPN | ADP NOUN | 0-0 1-1
    t | last year | letztes Jahr | ADJ NOUN | ADJ NOUN | 0-0 1-1
    fm | next year | nächstes Jahr | ADJ NOUN | ADJ NOUN | 0-0 1-1
    tfm | later | später | ADV | ADV | 0-0
    ptfm | on Friday | am Freitag | ADP PROPN | ADP NOUN | 0-0 1-1
    ptfm | on Saturday | am Samstag | ADP PROPN | ADP NOUN | 0-0 1-1
    ptfm | at night | in der Nacht | ADP NOUN | ADP DET NOUN | 0-0 1-2
    pt | every morning | jeden Morgen | DET NOUN | DET NOUN | 0-0 1-1
    ptfm | in summer | im Sommer | ADP NOUN | ADP NOUN | 0-0 1-1
    ptfm | in winter | im Winter | ADP NOUN | ADP NOUN | 0-0 1-1
    t | two days ago | vor zwei Tagen | NUM NOUN ADV | ADP NUM NOUN | 0-1 1-2 2-0
"""

FREQUENCY_ADVERBS = (
    *(("often", "oft"), ("always", "immer"), ("never", "nie"), ("sometimes", "manchmal")),
    *(("rarely", "selten"), ("already", "schon")),
)

MANNER_ADVERBS = (
    *(("quickly", "schnell"), ("slowly", "langsam"), ("carefully", "vorsichtig")),
    *(("quietly", "leise"), ("happily", "fröhlich"), ("secretly", "heimlich")),
)
