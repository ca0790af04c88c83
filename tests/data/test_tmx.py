"""Translation memories: what is read from them, and what is refused."""

import gzip
from pathlib import Path

import pytest

from relakit.data.tmx import read_tmx
from relakit.limits import MAX_LINE_BYTES

BOTH = ("en", "de")


def unit(**sides: str) -> str:
    segments = "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in sides.items()
    )
    return f"<tu>{segments}</tu>"


def document(*units: str, before: str = "") -> str:
    return f'<?xml version="1.0"?>{before}<tmx version="1.4"><body>{"".join(units)}</body></tmx>'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.tmx"


def test_units_in_their_order(path: Path) -> None:
    path.write_text(document(unit(en="a dog", de="ein Hund"), unit(de="Käse", en="cheese")))
    assert list(read_tmx(path, BOTH)) == [("a dog", "ein Hund"), ("cheese", "Käse")]
    assert list(read_tmx(path, ("DE", "en"))) == [("ein Hund", "a dog"), ("Käse", "cheese")]


def test_a_side_that_a_unit_lacks_is_empty(path: Path) -> None:
    path.write_text(document(unit(en="a"), unit(fr="b", de="B"), unit(en="c", de="C"), "<tu/>"))
    assert list(read_tmx(path, BOTH)) == [("a", ""), ("", "B"), ("c", "C"), ("", "")]


def test_regions_of_a_language(path: Path) -> None:
    several = unit(en_US="color", en="colour", en_GB="colour!", de_AT="Farbe", de_DE="Farben")
    path.write_text(document(several, unit(EN_us="gray", DE="grau", den="no")))
    assert list(read_tmx(path, BOTH)) == [("colour", "Farbe"), ("gray", "grau")]
    assert [source for source, _ in read_tmx(path, ("en_us", "de"))] == ["color", "gray"]


def test_a_language_and_one_of_its_regions(path: Path) -> None:
    """What belongs to the narrower side is not taken for the wider one, too."""
    path.write_text(document(unit(pt_BR="ônibus", pt_PT="autocarro"), unit(pt="a", pt_BR="b")))
    expected = [("autocarro", "ônibus"), ("a", "b")]
    assert list(read_tmx(path, ("pt", "pt-BR"))) == expected
    assert list(read_tmx(path, ("pt-BR", "pt"))) == [(two, one) for one, two in expected]


@pytest.mark.parametrize(
    "sides",
    [
        {"en": " ", "en_GB": "colour"},
        {"en": " \u00a0 \u3000", "en_GB": "colour"},
        {"en_GB": "", "en_US": "colour"},
        {"en_GB": "colour", "en": ""},
        {"en": "", "en_GB": "color", "EN": "colour"},
    ],
)
def test_an_empty_segment_hides_no_other(path: Path, sides: dict[str, str]) -> None:
    path.write_text(document(unit(**sides, de="Farbe")))
    assert list(read_tmx(path, BOTH)) == [("colour", "Farbe")]


def test_the_older_attribute(path: Path) -> None:
    path.write_text(document(unit(en="a", de="A").replace("xml:lang", "lang")))
    assert list(read_tmx(path, BOTH)) == [("a", "A")]


def test_segments_are_text_on_one_line(path: Path) -> None:
    marked = (
        'Press <bpt i="1">&lt;b&gt;</bpt>the <hi>red\n  key</hi><ept i="1">x</ept> &amp; <ph/>go'
    )
    path.write_text(document(unit(en=marked, de="<![CDATA[a < b]]>")))
    assert list(read_tmx(path, BOTH)) == [("Press the red key & go", "a < b")]


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u3000", "\u2009"])
def test_spaces_that_are_text_stay(path: Path, space: str) -> None:
    path.write_text(document(unit(en=f"\n  5{space}%\t of \r\n", de=f"Nr.{space}{space}5")))
    assert list(read_tmx(path, BOTH)) == [(f"5{space}% of", f"Nr.{space}{space}5")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings(path: Path, encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    text = document(unit(en="café", de="Müll")).replace("?>", f' encoding="{declared}"?>')
    path.write_bytes(text.encode(encoding))
    assert list(read_tmx(path, BOTH)) == [("café", "Müll")]


def test_compressed(path: Path) -> None:
    path.write_bytes(gzip.compress(document(unit(en="a", de="A")).encode()))
    assert list(read_tmx(path, BOTH)) == [("a", "A")]


def test_more_than_one_buffer(path: Path) -> None:
    units = [unit(en=f"number {n}", de=f"Zahl {n} {'x' * (n % 97)}") for n in range(9000)]
    path.write_text(document(*units))
    read = list(read_tmx(path, BOTH))
    assert read == [(f"number {n}", f"Zahl {n} {'x' * (n % 97)}".strip()) for n in range(9000)]


def test_a_document_type_is_not_opened(path: Path) -> None:
    named = '<!DOCTYPE tmx SYSTEM "no-such-file.dtd">'
    path.write_text(document(unit(en="a", de="A"), before=named))
    assert list(read_tmx(path, BOTH)) == [("a", "A")]


LAUGHS = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE tmx [<!ENTITY file SYSTEM "file:///etc/passwd">]>'
NAMED = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "{path} is empty"),
        ("one line\n", "{path}, line 1: it is no TMX, or is damaged: syntax error"),
        ("<html/>", "{path}, line 1: it begins with <html> instead of <tmx>: it is no TMX"),
        (document(unit(en="a", de="A"))[:-5], "{path} is truncated: it ends at line 1"),
        (document("<tu>\n</tuv>"), "{path}, line 2: it is no TMX, or is damaged: mismatched tag"),
        (document(unit(en="&b;"), before=LAUGHS), "{path}, line 1: it defines the entity 'a'"),
        (document(unit(en="&file;"), before=OUTSIDE), "{path}, line 1: it defines the entity"),
        (document(unit(en="&nbsp;"), before=NAMED), "{path}, line 1: &nbsp; is not defined"),
        (document(unit(en="&nbsp;")), "{path}, line 1: it is no TMX, or is damaged: undefined"),
        (document(unit(en="x" * (MAX_LINE_BYTES + 1))), "{path}, line 1: a segment of more than"),
        (document("<a>" * 200), "{path}, line 1: more than 100 elements within each other"),
        (f"<tmx>\n<!--{'x' * 3 * MAX_LINE_BYTES}", "{path}, line 2: a tag or comment without an"),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "{path}, line 1: "),
        (document(unit(en="a", fr="A")), "{path} has no text in the language 'de'; its languages "
         "are en, fr"),
        (document(), "{path} has no text in the language 'en'; no segment in it names a language"),
    ],
)  # fmt: skip
def test_refused(path: Path, content: str, problem: str) -> None:
    path.write_text(content)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        list(read_tmx(path, BOTH))
    assert str(caught.value).startswith(problem.format(path=path))


def test_languages_must_be_named_and_differ(path: Path) -> None:
    path.write_text(document(unit(en="a", fr="A")))
    with pytest.raises(ValueError, match=r"name the languages .* its languages are en, fr"):
        list(read_tmx(path, None))
    with pytest.raises(ValueError, match="both 'en'"):
        list(read_tmx(path, ("en", "EN")))
