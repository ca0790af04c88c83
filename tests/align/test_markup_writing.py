"""Markup in translations: well-formed, each piece once or lost, the text unchanged."""

import re
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limited_time import run_in_time

from relakit.align.markup import find_markup
from relakit.align.markup_placing import Sentence
from relakit.align.markup_writing import MarkedTranslation, put_back
from relakit.analysis.links import Link


def put(line: str, target: str, links: str) -> MarkedTranslation:
    marked = find_markup(line)
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    return put_back(marked, Sentence.split(marked.text), Sentence.split(target), pairs)


@pytest.mark.parametrize(
    ("line", "target", "links", "expected"),
    [
        ("The <b>old dog</b> sleeps.", "Der alte Hund schläft.", "0-0 1-1 2-2 3-3 4-4",
         "Der <b>alte Hund</b> schläft."),
        # What is between linked words is enclosed, too; nothing else is.
        ("He <b>woke up</b> late.", "Er wachte spät auf.", "0-0 1-1 2-3 3-2 4-4",
         "Er <b>wachte spät auf</b>."),
        ("He slept <b>well</b>.", "Er schlief gut.", "0-0 1-1 2-2 3-3", "Er schlief <b>gut</b>."),
        ("<p>One.</p>", "Eins.", "", "<p>Eins.</p>"),
        ("<p>A <b>b <i>c</i></b></p>", "z y x", "0-2 1-1 2-0", "<p><b><i>z</i> y</b> x</p>"),
        ("un<b>believ</b>able story", "unglaubliche Geschichte", "0-0 1-1",
         "<b>unglaubliche</b> Geschichte"),
        # A mark is no translation of a word.
        ("He <b>knows</b> that.", "Er weiß, das.", "0-0 1-1 1-2 2-3 3-4", "Er <b>weiß</b>, das."),
        # Crossing: the pair is widened that takes in fewer words by that.
        ("<b>a b</b> <i>c d e</i>", "v w x y z", "0-0 1-2 2-1 3-3 4-4",
         "<i><b>v w x</b> y z</i>"),
        # Singles.
        ("Open {0}.", "Öffnen Sie.", "0-0 1-2", "Öffnen Sie {0}."),
        ("Open <b>{0}</b>, please.", "Bitte öffnen.", "0-1 2-0 3-2", "Bitte öffnen <b>{0}</b>."),
        ("The {0} file", "Die Datei", "0-0 1-1", "Die {0} Datei"),
        ("{0} files", "Dateien", "", "{0} Dateien"),
        ("In {0}", "In", "0-0", "In {0}"),
        ("10&nbsp;km far", "10 km weit", "0-0 1-1 2-2", "10&nbsp;km weit"),
        ("one<br/>two", "eins zwei", "0-0 1-1", "eins<br/>zwei"),
        ("one<br/>two", "eins, zwei", "0-0 1-2", "eins,<br/>zwei"),
        ('the file "{0}"', 'die Datei ""', "0-0 1-1 2-2", 'die Datei "{0}"'),
        ("a {0}b c", "x y z", "0-0 1-2 2-1", "x y {0}z"),
        ("a{0} b c", "x y z", "0-2 1-1 2-0", "x y z{0}"),
        # The nearest word with a link, if the neighbours have none.
        ("a b {0} c d", "x y", "0-0 3-1", "x {0} y"),
        ("a b {0} c d", "x y", "3-0", "{0} x y"),
        ("%d%% old dogs", "alte Hunde", "0-0 1-1", "%d%% alte Hunde"),
        ("the {{{place}}} dog", "der Hund", "0-0 1-1", "der {{{place}}} Hund"),
        ("{{#if x}}old{{/if}} dog", "alter Hund", "0-0 1-1", "{{#if x}}alter{{/if}} Hund"),
        # Within the pair that it was in, and at the right side of its tags.
        ("a <b>{0} b</b> c", "x y z", "0-0 1-1 2-2", "x <b>{0} y</b> z"),
        ("a <b>b {0}</b> c", "x y z", "0-0 1-1 2-2", "x <b>y {0}</b> z"),
        ("a {0} <b>b</b> c", "x y z", "0-0 1-1 2-2", "x {0} <b>y</b> z"),
        ("a <b>b</b> {0} c", "x y z", "0-0 1-1 2-2", "x <b>y</b> {0} z"),
        ("a <b>b{0}</b>, c", "x y, z", "0-0 1-1 2-2 3-3", "x <b>y{0}</b>, z"),
        # Broken tags are carried one by one.
        ("a <b>b c", "x y z", "0-0 1-1 2-2", "x <b>y z"),
        ("a b</i> c", "x y z", "0-0 1-1 2-2", "x y</i> z"),
        # Nothing was translated.
        ("<br/> {0}", "", "", "<br/> {0}"),
        ("<b>a</b>{0}", "", "", "<b></b>{0}"),
    ],
)  # fmt: skip
def test_places(line: str, target: str, links: str, expected: str) -> None:
    assert put(line, target, links) == MarkedTranslation(expected, ())


@pytest.mark.parametrize(
    ("line", "target", "links", "expected"),
    [
        # The mark that was between is gone.
        ("{name}'s dog sleeps.", "Evas Hund schläft.", "1-0 2-1 3-2 4-3",
         "{name} Evas Hund schläft."),
        ("<b>%s</b>'s dog", "Evas Hund", "1-0 2-1", "<b>%s</b> Evas Hund"),
        ("{0}, the dog", "Sie Hund", "1-0 2-1", "{0} Sie Hund"),
        ("(%s) The dog", "Hund schläft", "2-0 3-0", "%s Hund schläft"),
        ('the dog: "{0}"', "der Hund", "0-0 1-1", "der Hund {0}"),
        ('see "{0}" now', "sieh jetzt", "0-0 2-1", "sieh {0} jetzt"),
        ('a <b>"{0}" b</b>', "x y", "0-0 2-1", "x <b>{0} y</b>"),
        # It is still there, or a word was.
        ("{name}'s dog", "'s Hund", "0-0 1-1", "{name}'s Hund"),
        ("({0}) b", "(x) y", "0-0 1-2 2-3", "({0} x) y"),
        ("pre{0}. b", "vor. y", "0-0 1-1 2-2", "vor{0}. y"),
        # What is no placeholder belongs to what it touches.
        ("&quot;One.&quot;", "Eins", "0-0", "&quot;Eins&quot;"),
        ("One.<img/>", "Eins", "0-0", "Eins<img/>"),
    ],
)  # fmt: skip
def test_a_placeholder_that_touched_no_word_touches_none(
    line: str, target: str, links: str, expected: str
) -> None:
    assert put(line, target, links).text == expected


@pytest.mark.parametrize(
    ("line", "target", "links", "expected"),
    [
        ("It <b>isn&#39;t</b> so", "Das ist's nicht", "0-0 1-1", "Das <b>ist's</b> nicht"),
        ("<b>AT&amp;T</b> pays", "AT&T <zahlt> f&uuml;r &", "0-0 1-1",
         "<b>AT&amp;T</b> &lt;zahlt&gt; f&uuml;r &amp;"),
        ("a&lt;b<br/> is", "a<b ist", "0-0 1-1", "a&lt;b<br/> ist"),
        # As in a source that has no entity for it.
        ("<b>AT&T</b> pays", "AT&T zahlt", "0-0 1-1", "<b>AT&T</b> zahlt"),
    ],
)  # fmt: skip
def test_what_was_an_entity_is_one_again(line: str, target: str, links: str, expected: str) -> None:
    assert put(line, target, links).text == expected


def test_what_has_no_links_is_lost() -> None:
    assert put("a <b>b {0}</b> c", "x y", "0-0 2-1") == MarkedTranslation(
        "x {0} y", ("<b>", "</b>")
    )
    assert put("a <b>b</b> {0}<br> c {1}", "x y", "") == MarkedTranslation(
        "x y {1}", ("<b>", "</b>", "{0}", "<br>")
    )


WORDS = st.sampled_from(["a", "bc", "def", "x1", "one", "."])
SPACES = st.sampled_from(["", " ", " ", "  "])
SINGLE = st.sampled_from(["<s{}/>", "{{{}}}", "${{s{}}}", "<s{} a='>'/>"])


@dataclass
class Source:
    """A line, and the names of its tags and placeholders."""

    line: str = ""
    pieces: int = 0

    def piece(self, form: str) -> str:
        self.pieces += 1
        return form.format(self.pieces)


@st.composite
def sources(draw: st.DrawFn, *, is_broken: bool) -> str:
    """Words, single pieces and tags, every one with a name of its own; broken: not all closed."""
    source, opened = Source(), []
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["word", "word", "single", "open", "close"]))
        if kind == "word":
            part = draw(WORDS)
        elif kind == "single":
            part = source.piece(draw(SINGLE))
        elif kind == "open":
            opened.append(source.piece("t{}"))
            part = f"<{opened[-1]}>"
        elif is_broken and draw(st.booleans()):
            part = f"</{source.piece('u{}')}>"
        elif opened:
            last = draw(st.integers(0, len(opened) - 1)) if is_broken else -1
            part = f"</{opened.pop(last)}>"
        else:
            part = ""
        source.line += part + draw(SPACES)
    if not is_broken:
        source.line += "".join(f"</{name}>" for name in reversed(opened))
    return source.line


@dataclass
class Case:
    line: str
    target: str
    links: list[Link]
    result: MarkedTranslation


@st.composite
def cases(draw: st.DrawFn, *, is_broken: bool) -> Case:
    line = draw(sources(is_broken=is_broken))
    marked = find_markup(line)
    words = draw(st.lists(st.tuples(WORDS, SPACES), max_size=8))
    target = " ".join("".join(word + space for word, space in words).split())
    source, translation = Sentence.split(marked.text), Sentence.split(target)
    pairs = [(s, t) for s in range(len(source.words)) for t in range(len(translation.words))]
    links = draw(st.lists(st.sampled_from(pairs), max_size=10)) if pairs else []
    return Case(line, target, links, put_back(marked, source, translation, links))


ANY = st.booleans().flatmap(lambda is_broken: cases(is_broken=is_broken))


@given(ANY)
def test_each_piece_is_there_once_or_lost(case: Case) -> None:
    lost = Counter(case.result.lost)
    for piece in (pieces := find_markup(case.line).pieces):
        assert case.result.text.count(piece) + lost[piece] == 1
    assert lost.keys() <= set(pieces)


PAIRED = re.compile(r"<(/?)(t\d+)>")
ANY_PIECE = re.compile(r"<[^>']*('>')?[^>]*>|\$?\{[^}]*\}")


@given(cases(is_broken=False))
def test_tags_are_well_formed(case: Case) -> None:
    opened: list[str] = []
    for is_closing, name in PAIRED.findall(case.result.text):
        if is_closing:
            assert opened.pop() == name
        else:
            opened.append(name)
    assert opened == []


def around(line: str) -> dict[str, set[str]]:
    """For each piece the tags that it is in."""
    found: dict[str, set[str]] = {}
    opened: list[str] = []
    for match in ANY_PIECE.finditer(line):
        tag = PAIRED.fullmatch(match[0])
        if tag is None or not tag[1]:
            found[match[0]] = set(opened)
        if tag is not None:
            opened.pop() if tag[1] else opened.append(tag[2])
    return found


@given(cases(is_broken=False))
def test_what_was_within_tags_is_within_them(case: Case) -> None:
    lost = {name for piece in case.result.lost for name in re.findall(r"t\d+", piece)}
    before, after = around(case.line), around(case.result.text)
    for piece, tags in after.items():
        assert before[piece] - lost <= tags


@given(ANY)
def test_the_text_is_the_translation(case: Case) -> None:
    text = ANY_PIECE.sub("", case.result.text)
    assert "".join(text.split()) == "".join(case.target.split())


@given(cases(is_broken=False))
def test_words_stay_apart(case: Case) -> None:
    """Where the translation has a space, there is one, or a piece that stood between words."""

    def letters_before_spaces(text: str) -> set[int]:
        ends = [match.start() for match in re.finditer(r"\s+", text.strip())]
        return {len("".join(text.strip()[:end].split())) for end in ends}

    text = ANY_PIECE.sub(" ", PAIRED.sub("", case.result.text))
    if case.target:
        assert letters_before_spaces(case.target) <= letters_before_spaces(text)


def is_mark(word: str) -> bool:
    return set(word) == {"."}


@given(cases(is_broken=False))
def test_linked_words_are_enclosed(case: Case) -> None:
    marked = find_markup(case.line)
    source, target = Sentence.split(marked.text), Sentence.split(case.target)
    for pair in marked.pairs:
        if pair.open in case.result.lost:
            continue
        inside = case.result.text.partition(pair.open)[2].partition(pair.close)[0]
        letters = "".join(ANY_PIECE.sub("", inside).split())
        linked = {
            target.word(t)
            for s, t in case.links
            if is_mark(source.word(s)) == is_mark(target.word(t))
            and source.words[s][0] < pair.last
            and pair.first < source.words[s][1]
        }
        assert all(word in letters for word in linked)


PUT_HOSTILE = """
from relakit.align.markup import find_markup
from relakit.align.markup_placing import Sentence
from relakit.align.markup_writing import put_back
depth = 5_000
for line in (
    "<a>" * depth + "x" + "</a>" * depth + " y",
    "<a>{0}" * depth + "x" + "</a>" * depth + " y",
    "y " + "{0}<a>" * depth + "x" + "</a>" * depth,
):
    for links in ([(0, 0), (1, 1)], []):
        print(line[:9], links, flush=True)
        marked = find_markup(line)
        done = put_back(marked, Sentence.split(marked.text), Sentence.split("x y"), links)
        if links:
            assert done.text.count("</a>") == depth
        else:
            assert len(done.lost) >= depth
"""


def test_hostile_nesting_takes_time_in_proportion() -> None:
    run_in_time(PUT_HOSTILE)


def test_conversions_in_another_order_are_named() -> None:
    turned = put("%s saw %d", "sah", "")
    assert (turned.text, turned.reordered) == ("%s sah %d", ())
    line, target, links = "dog %s and cat %d today", "Katze und Hund heute", "0-2 1-1 2-0 3-3"
    turned = put(line, target, links)
    assert turned.text == "Katze %d und Hund %s heute"
    assert (turned.lost, turned.reordered) == ((), ("%d", "%s"))
    again = put(line.replace("%d", "%s"), target, links)
    assert again.reordered == ("%s", "%s"), "they are still others"
    for named in ("%1$s %2$d", "%(a)s %(b)d", "{0} {1}"):
        first, second = named.split()
        numbered = line.replace("%s", first).replace("%d", second)
        assert put(numbered, target, links).reordered == ()


def test_conversions_in_tags_count_for_the_order() -> None:
    links = "0-1 1-0"
    both = put('<b id="%d">one</b> <a href="%s">two</a>', "zwei eins", links)
    assert both.text == '<a href="%s">zwei</a> <b id="%d">eins</b>'
    assert both.reordered == ("%s", "%d")
    assert put("%d <b>one</b> <a href='%s'>two</a>", "zwei eins", links).reordered == ()
    mixed = put('one %d <a href="%s">two</a>', "zwei eins", links)
    assert (mixed.text, mixed.reordered) == ('<a href="%s">zwei</a> eins %d', ("%s", "%d"))
    single = put('one %d two <img alt="%s"/>three', "drei zwei eins", "0-2 1-1 2-0")
    assert single.reordered == ("%s", "%d")


def test_blocks_of_text_come_back() -> None:
    line = "<p>The dog sleeps.</p><p>The cat sees.</p>"
    links = "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7"
    found = put(line, "Der Hund schläft. Die Katze sieht.", links)
    assert found.text == "<p>Der Hund schläft.</p> <p>Die Katze sieht.</p>"
    found = put("It sleeps.<br/>It sees.", "Er schläft. Sie sieht.", "0-0 1-1 2-2 3-3 4-4 5-5")
    assert found.text == "Er schläft.<br/>Sie sieht."
