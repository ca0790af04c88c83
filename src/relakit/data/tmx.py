"""Reads translation memories (TMX) as streams: only a few units are in memory at a time.

Whatever a file declares, nothing is expanded and no other file is opened: a document type may be
named, but one that defines entities is refused.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.parsers import expat

from relakit.data.compression import open_uncompressed
from relakit.files.reading import BUFFER_BYTES
from relakit.limits import MAX_LINE_BYTES

_CODE: Final = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Elements inside a segment that hold the markup of another format, not text."""
_MOST_DEEP: Final = 100
"""How deeply elements may be nested; segments have a few levels at most."""
_MOST_LISTED: Final = 20
"""How many languages an error names."""

_LAYOUT: Final = re.compile(r"[ \t\r\n]+")
_ENDS_EARLY: Final = tuple(
    expat.errors.codes[name]
    for name in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    )
)

Texts = tuple[str, str]


class _Refused(ValueError):
    """A refusal in our own words, raised inside the parser; its place is added later."""


def read_tmx(path: Path, languages: tuple[str, str] | None) -> Iterator[Texts]:
    """Source and target of each unit, on one line each; the file is plain, gzip or zstd.

    A side that a unit does not have is empty. Markup inside a segment is left out.

    Args:
        path: the file.
        languages: the languages of source and target. ``en`` also matches ``en-GB`` in the file; if
            a unit has several matching segments with text, the exact match counts, or else the
            first.

    Raises:
        OSError: the file cannot be read.
        ValueError: names the file and the line: it is not TMX, is damaged, defines entities, or has
            a segment that is too long; or it has no text in one of the languages.
    """
    if languages is None:
        raise ValueError(
            f"{path}: name the languages of source and target, such as en and de; "
            f"{_in_words(_languages_in(path))}"
        )
    if _plain(languages[0]) == _plain(languages[1]):
        raise ValueError(f"source and target language are both {languages[0]!r}")
    return _read(path, languages)


def _read(path: Path, languages: tuple[str, str]) -> Iterator[Texts]:
    units = _Units((_plain(languages[0]), _plain(languages[1])))
    yield from _parsed(path, units)
    for language, has_text in zip(languages, units.has_text, strict=True):
        if not has_text:
            raise ValueError(
                f"{path} has no text in the language {language!r}; {_in_words(units.languages)}"
            )


def _languages_in(path: Path) -> set[str]:
    units = _Units(("", ""))
    for _ in _parsed(path, units):
        pass
    return units.languages


def _in_words(languages: set[str]) -> str:
    if not languages:
        return "no segment in it names a language"
    named = sorted(languages)[:_MOST_LISTED]
    more = "" if len(languages) < _MOST_LISTED else " ..."
    return f"its languages are {', '.join(named)}{more}"


def _plain(language: str) -> str:
    return language.strip().lower().replace("_", "-")


def _parsed(path: Path, units: "_Units") -> Iterator[Texts]:
    """The units of a file, as they are read."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    units.listen(parser)
    fed = 0
    # A TMX in UTF-16 says so, and the parser can read it.
    with open_uncompressed(path, utf16=True) as stream:
        while True:
            chunk = stream.read(BUFFER_BYTES)
            fed += len(chunk)
            if not fed:
                raise ValueError(f"{path} is empty")
            _feed(parser, chunk, path)
            yield from units.take()
            # The parser buffers a tag that has not ended.
            if chunk and fed - parser.CurrentByteIndex > MAX_LINE_BYTES + BUFFER_BYTES:
                raise _refused(path, parser, "a tag or comment without an end: it is no TMX")
            if not chunk:
                break


def _feed(parser: expat.XMLParserType, chunk: bytes, path: Path) -> None:
    try:
        parser.Parse(chunk, not chunk)
    except _Refused as error:
        raise _refused(path, parser, str(error)) from None
    except expat.ExpatError as error:
        if not chunk and error.code in _ENDS_EARLY:
            raise ValueError(
                f"{path} is truncated: it ends at line {error.lineno:,} without </tmx>; get or "
                "make it again"
            ) from None
        problem = expat.ErrorString(error.code) or "something is wrong"
        raise ValueError(
            f"{path}, line {error.lineno:,}: it is no TMX, or is damaged: {problem}"
        ) from None
    except (LookupError, ValueError):
        raise _refused(path, parser, "its encoding is not known; save it as UTF-8") from None


def _refused(path: Path, parser: expat.XMLParserType, problem: str) -> ValueError:
    return ValueError(f"{path}, line {parser.CurrentLineNumber:,}: {problem}")


def _on_one_line(text: str) -> str:
    """The text without XML's layout whitespace; other spaces, such as no-break ones, are text."""
    text = _LAYOUT.sub(" ", text).strip(" ")
    return "" if text.isspace() else text


def _is_kind_of(language: str, wider: str) -> bool:
    """Whether this is the language ``wider`` of some region or script, as en-GB is en."""
    return language.startswith(f"{wider}-")


class _Units:
    """Listens to a parser, and collects both sides of each unit once it has ended."""

    def __init__(self, wanted: tuple[str, str]) -> None:
        self._wanted = wanted
        self.languages: set[str] = set()
        """Languages of the segments so far; no more than an error names."""
        self.has_text = [False, False]
        self._ended: list[Texts] = []
        self._path: list[str] = []
        """The elements that are open."""
        self._sides = ["", ""]
        self._is_exact = [False, False]
        self._language = ""
        self._text: list[str] = []
        self._size = 0

    def listen(self, parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_unknown

    def take(self) -> list[Texts]:
        ended, self._ended = self._ended, []
        return ended

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._path and name != "tmx":
            raise _Refused(f"it begins with <{name[:40]}> instead of <tmx>: it is no TMX")
        if len(self._path) == _MOST_DEEP:
            raise _Refused(f"more than {_MOST_DEEP} elements within each other: it is no TMX")
        self._path.append(name)
        if name == "tu":
            self._sides, self._is_exact = ["", ""], [False, False]
        elif name == "tuv":
            self._language = _plain(attributes.get("xml:lang") or attributes.get("lang") or "")
            if self._language and len(self.languages) < _MOST_LISTED:
                self.languages.add(self._language)
        elif name == "seg":
            self._text, self._size = [], 0

    def _end(self, name: str) -> None:
        self._path.pop()
        if name == "seg":
            self._keep(_on_one_line("".join(self._text)))
        elif name == "tu":
            self._ended.append((self._sides[0], self._sides[1]))

    def _keep(self, text: str) -> None:
        for side, wanted in enumerate(self._wanted):
            other = self._wanted[1 - side]
            is_exact = self._language == wanted
            if not is_exact and not _is_kind_of(self._language, wanted):
                continue
            if not is_exact and _is_kind_of(other, wanted) and self._is_of(other):
                continue  # pt-BR is no pt if the other side is pt-BR
            if not self._sides[side] or (text and is_exact and not self._is_exact[side]):
                self._sides[side], self._is_exact[side] = text, is_exact
                self.has_text[side] = self.has_text[side] or bool(text)

    def _is_of(self, wanted: str) -> bool:
        return self._language == wanted or _is_kind_of(self._language, wanted)

    def _characters(self, text: str) -> None:
        if "seg" not in self._path or not _CODE.isdisjoint(self._path):
            return
        self._size += len(text)
        if self._size > MAX_LINE_BYTES:
            raise _Refused(
                f"a segment of more than {MAX_LINE_BYTES:,} characters, the most there may be"
            )
        self._text.append(text)

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise _Refused(
            f"it defines the entity {name[:40]!r}, which is not expanded here; write out what it "
            "stands for"
        )

    def _refuse_unknown(self, name: str, is_parameter: bool) -> None:
        raise _Refused(f"&{name[:40]}; is not defined in the file; write out what it stands for")
