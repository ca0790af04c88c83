"""What is markup, and what is left of a line without it."""

import pytest
from limited_time import run_in_time

from relakit.align.markup import find_markup, values_by_order


@pytest.mark.parametrize(
    "piece",
    [
        "<b>", "</b>", "<br/>", "<br />", "<a href='x'>", '<a title="1 > 0" b>', "<x:g id=\"1\"/>",
        "<_a-b.c>", "{}", "{0}", "{name}", "{user.name:>8}", "{{name}}", "{{ name }}", "${name}",
        "{{{name}}}", "{{{ name }}}",
        "{{#if a.b}}", "{{/if}}", "{{^a}}", "{{> part a=b}}", "{{~#each list as |x|~}}",
        "%{name}", "#{name}", "%s", "%d", "%i", "%1$s", "%-5d", "%02d", "%.2f", "%5.1f", "%ld",
        "%@", "%(name)s", "%(n)03d", "&nbsp;", "&amp;", "&#160;", "&#xA0;", "&custom;",
    ],
)  # fmt: skip
def test_what_is_markup(piece: str) -> None:
    marked = find_markup(f"one {piece} two")
    assert marked.pieces == (piece,)
    assert marked.text == "one two"


@pytest.mark.parametrize(
    "line",
    [
        "a < b and c > d", "<3", "< b>", "<b", "<>", "</>", "<b title='>", "<b <i", "{see below}",
        "{a", "{ a }", "{{see below}}", "{{#if", "100%%", "100%% sure", "%%%", "100%",
        "100% sure", "100%d", "5 % of", "%%s", "https://x/a%20size%c3%a4",
        "AT&T", "&eacute;t&eacute;", "&#233;", "& ;", "&;", "<!-- comment -->", "<?xml ?>", "", " ",
        "  two  spaces ", "%", "$5", "#1", "%age", "5 %ige", "10 %-ige", "%dpi",
    ],
)  # fmt: skip
def test_what_is_not(line: str) -> None:
    marked = find_markup(line)
    assert (marked.text, marked.pieces) == (line, ())


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("The <b>old</b> dog", "The old dog"),
        ("The <b> old </b> dog", "The old dog"),
        ("un<b>believ</b>able", "unbelievable"),
        ("one<br/>two", "one two"),
        ("one</b><br/><b>two", "one two"),
        ("10&nbsp;km", "10 km"),
        ("Open {0}.", "Open."),
        ("Open <b>{0}</b>!", "Open!"),
        ("Open {0} (now)", "Open (now)"),
        ("see {0}(draft)", "see (draft)"),
        ("({0} files)", "(files)"),
        ("up to {0}% of it", "up to % of it"),
        ('File "{0}" is gone', 'File "" is gone'),
        ("Ouvrir {0} !", "Ouvrir !"),
        ("file{0}.txt", "file.txt"),
        ("{0} of {1}", "of"),
        ("  {0}  ", ""),
        ("<p>one</p> <p>two</p>", "one two"),
        ("<p>He sleeps.</p><p>The dog</p>", "He sleeps. The dog"),
        ("<P>He sleeps.</P><P class='x'>The dog</P>", "He sleeps. The dog"),
        ('<li>one</li><li>"two"</li>', 'one "two"'),
        ("<tr><td>1</td><td>2</td></tr>", "1 2"),
        ("He sleeps.<br>The dog", "He sleeps. The dog"),
        ("one<hr/>(two)", "one (two)"),
        ("<h1><b>one</b></h1>{0}<div>two</div>", "one two"),
        ("<div>one</div>, two", "one, two"),
        ("<b>un</b><i>seen</i>", "unseen"),
    ],
)
def test_the_text_is_as_one_would_write_it(line: str, text: str) -> None:
    assert find_markup(line).text == text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("He doesn&#39;t see it", "He doesn't see it"),
        ("l&rsquo;homme", "l\u2019homme"),
        ("l&#x27;&eacute;t&eacute;", "l'&eacute;t&eacute;"),
        ("l&#39;<b>homme</b> d&#39;or", "l'homme d'or"),
        ("<b>L</b>&#39;<i>homme</i>", "L'homme"),
        ("well&#45;known &mdash; pages 3&ndash;5", "well-known pages 3\u20135"),
        ("Donau&shy;dampf&#173;schiff", "Donaudampfschiff"),
        ("20&deg;C, 3&times;4", "20\u00b0C, 3\u00d74"),
        ("AT&amp;T, a&lt;b&gt;c", "AT&T, a<b>c"),
        # Spaces, what means nothing, and what would be another entity without the first "&".
        ("10&nbsp;km, 1&thinsp;000", "10 km, 1 000"),
        ("one&custom;two, one&#1;two", "one two, one two"),
        ("a&amp;lt;b", "a lt;b"),
        # Not within a word.
        ("the dogs&#39; house", "the dogs house"),
        ("<p>one</p>&#39;<p>two</p>", "one two"),
        ("%s&#39;s", "s"),
        ("one&#39;<br/>two", "one two"),
    ],
)
def test_entities_within_words_are_text(line: str, text: str) -> None:
    assert find_markup(line).text == text


def test_an_entity_that_is_text_is_no_piece() -> None:
    marked = find_markup("He doesn&#39;t see <b>it</b>&nbsp;now")
    assert marked.pieces == ("<b>", "</b>", "&nbsp;")
    assert find_markup("doesn&#39;t").pieces == ()


def pairs_of(line: str) -> list[tuple[str, str, str, int | None]]:
    marked = find_markup(line)
    return [
        (pair.open, pair.close, marked.text[pair.first : pair.last].strip(), pair.parent)
        for pair in marked.pairs
    ]


def runs_of(line: str) -> list[tuple[str, int | None]]:
    return [(run.text, run.parent) for run in find_markup(line).runs]


def test_nested_pairs() -> None:
    line = '<p>one <a href="x">two <B>three</b></a></p> <i>four</i>'
    assert pairs_of(line) == [
        ("<p>", "</p>", "one two three", None),
        ('<a href="x">', "</a>", "two three", 0),
        ("<B>", "</b>", "three", 1),
        ("<i>", "</i>", "four", None),
    ]
    assert runs_of(line) == []


def test_what_has_no_words_inside_is_one_run() -> None:
    line = "one <b>{0} <i></i></b> {1}<br> two <u>{2} three{3}</u>"
    assert pairs_of(line) == [("<u>", "</u>", "three", None)]
    assert runs_of(line) == [("<b>{0} <i></i></b> {1}<br>", None), ("{2}", 0), ("{3}", 0)]
    assert [find_markup(line).pieces[number] for number in find_markup(line).runs[0].numbers] == [
        "<b>", "{0}", "<i>", "</i>", "</b>", "{1}", "<br>",
    ]  # fmt: skip


def test_broken_tags_are_single_pieces() -> None:
    assert runs_of("one <b>two</i> three") == [("<b>", None), ("</i>", None)]
    assert pairs_of("one <b>two</i> three") == []
    crossing = "one <b>two <i>three</b> four</i>"
    assert pairs_of(crossing) == [("<b>", "</b>", "two three", None)]
    assert runs_of(crossing) == [("<i>", 0), ("</i>", None)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("one {0} two", (True, True, False)),
        ("one {0}, two", (True, False, False)),
        ("one{0} two", (False, True, False)),
        ("one{0}two", (False, False, True)),
        ('"{0}"', (False, False, False)),
        ("one <b>{0}two</b>", (True, False, False)),
        ("<b>one{0}</b> two", (False, True, False)),
        ("one{0} {1}two", (False, False, True)),
    ],
)
def test_spaces_around_a_run(line: str, expected: tuple[bool, bool, bool]) -> None:
    [run] = find_markup(line).runs
    assert (run.space_before, run.space_after, run.separates) == expected


FIND_HOSTILE = """
import sys
from relakit.align.markup import find_markup
for part in sys.argv[1:]:
    print(repr(part), flush=True)
    line = part * (60_000 // len(part))
    assert len(find_markup(line).text) <= len(line)
"""


def test_hostile_lines_take_time_in_proportion() -> None:
    """With the square of their length, they would take an hour together."""
    run_in_time(
        FIND_HOSTILE,
        "<a ", '<a "', "<a '>", "<a b=\"'\" ", "<", "{", "{{", "{{a", "{{#", "{{# ", "{{{", "{{{a",
        "%%s", "${", "%", "%0", "%0000",
        "%(a", "%1$", "&a", "&#1", "<a>", "</a>", "<a>x", "x</a>", "{0}", "{0} ", "{0}x", "<a>{0}",
        "<a></b>", "<a><b></a>x", "a&#39;", "&#39;<a>", "a&amp;lt", "&amp;&amp;",
    )  # fmt: skip


def test_deeply_nested_tags() -> None:
    depth = 15_000
    marked = find_markup("<a>" * depth + "x" * 50_000 + "</a>" * depth)
    assert [pair.parent for pair in marked.pairs] == [None, *range(depth - 1)]


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("%.2fs", ("%.2f",)), ("%1$sx", ("%1$s",)), ("%02dx", ("%02d",)), ("%(n)ds", ("%(n)d",)),
        ("%s_a", ("%s",)), ("%s%d", ("%s", "%d")), ("%d%%", ("%d", "%%")), ("%%%s", ("%%", "%s")),
        ("100%% of %(n)s", ("%%", "%(n)s")), ("%%s %s", ("%%", "%s")), ("%%{0}", ("{0}",)),
    ],
)  # fmt: skip
def test_what_may_follow_a_conversion(line: str, pieces: tuple[str, ...]) -> None:
    assert find_markup(line).pieces == pieces


def test_what_gets_its_value_by_order() -> None:
    for value in ["%s", "%-5d", "%.2f", "%@", "{}", "{:>8}", "{!r}"]:
        assert values_by_order(value) == [value]
    others = ["%1$s", "%(name)s", "%{name}", "{0}", "{name}", "{{}}", "${}", "<b>", "&nbsp;", "%%"]
    assert not any(map(values_by_order, others))


def test_values_within_tags() -> None:
    assert values_by_order("<a href=\"%s\" title='{} %1$s {0}' id=%d>") == ["%s", "{}", "%d"]
    assert values_by_order('<a href="a%20b%c3" style="width:100%">') == []
