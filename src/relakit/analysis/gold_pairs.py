"""Sentence pairs from files or from the generated corpus, with gold links or tags."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias, TypeVar

from relakit.analysis.alignment import GoldAlignment
from relakit.analysis.analysis_pairs import AnalysisPair, check_links, check_tags
from relakit.analysis.gold_formats import GoldFormatChoice, read_gold, resolve_format
from relakit.analysis.pharaoh import FirstWord
from relakit.analysis.tags import read_tags
from relakit.analysis.words import split_words
from relakit.data.generated import GeneratedPair
from relakit.data.parallel_files import ParallelFiles, read_pairs

TextPair: TypeAlias = tuple[str, str]
Row = TypeVar("Row")
Line = TypeVar("Line")


@dataclass(frozen=True)
class GoldPair(AnalysisPair):
    """A pair that has gold links for certain."""

    gold: GoldAlignment


def generated_gold_pair(pair: GeneratedPair) -> GoldPair:
    """A pair of the generated corpus; all its links are sure."""
    return GoldPair(
        pair.source_text,
        pair.target_text,
        pair.source_spans,
        pair.target_spans,
        GoldAlignment(frozenset(pair.links)),
        pair.target_tags,
    )


def read_gold_pairs(
    files: ParallelFiles,
    gold: Path,
    *,
    format: GoldFormatChoice = "auto",
    first: FirstWord | None = None,
    reverse: bool = False,
    tokenized: bool = False,
) -> Iterator[GoldPair]:
    """`read_analysis_pairs` of pairs with gold links."""
    pairs = read_analysis_pairs(
        files, gold=gold, format=format, first=first, reverse=reverse, tokenized=tokenized
    )
    for pair in pairs:
        assert pair.gold is not None
        yield GoldPair(pair.source, pair.target, pair.source_words, pair.target_words, pair.gold)


def read_analysis_pairs(
    files: ParallelFiles,
    *,
    gold: Path | None = None,
    format: GoldFormatChoice = "auto",
    first: FirstWord | None = None,
    reverse: bool = False,
    tags: Path | None = None,
    tokenized: bool = False,
) -> Iterator[AnalysisPair]:
    """The pairs of a parallel corpus, with links and tags if there are files of them.

    Args:
        files: the sentences.
        gold: the links of the pairs.
        format: of ``gold``, see `read_gold`.
        first: the number of a sentence's first word in ``gold``, see `read_gold`.
        reverse: the links name the target word first.
        tags: line n has a tag for each word of the target of pair n, with spaces between them.
        tokenized: see `split_words`.

    Raises:
        ValueError: the file, and the line or both numbers of lines, where something is wrong.
    """
    pairs = read_pairs(files)
    links: Iterator[tuple[TextPair, GoldAlignment | None]] = ((pair, None) for pair in pairs)
    unit = "line"
    if gold is not None:
        known = resolve_format(gold, format)
        alignments = read_gold(gold, format=known, first=first)
        if known == "naacl":
            links, unit = _with_naacl(pairs, files.source, alignments, gold), "sentence"
        else:
            links = _with_lines(pairs, files.source, alignments, gold, "links")
    rows: Iterator[tuple[tuple[TextPair, GoldAlignment | None], tuple[str, ...] | None]]
    rows = ((row, None) for row in links)
    if tags is not None:
        rows = _with_lines(links, files.source, read_tags(tags), tags, "tags")
    for number, ((texts, alignment), words_tags) in enumerate(rows, start=1):
        source, target = texts
        source_words = split_words(source, tokenized=tokenized)
        target_words = split_words(target, tokenized=tokenized)
        if alignment is not None:
            alignment = alignment.reversed() if reverse else alignment
            with _named(f"{gold}, {unit} {number:,}"):
                check_links(alignment, len(source_words), len(target_words))
        if words_tags is not None:
            with _named(f"{tags}, line {number:,}"):
                check_tags(words_tags, len(target_words))
        yield AnalysisPair(source, target, source_words, target_words, alignment, words_tags)


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Say where it was, if something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _with_lines(
    rows: Iterator[Row], source: Path, lines: Iterator[Line], path: Path, what: str
) -> Iterator[tuple[Row, Line]]:
    """Each row with the line of a file that belongs to it."""
    for number, (row, line) in enumerate(zip_longest(rows, lines), start=1):
        if row is None or line is None:
            sentences = number - (row is None) + sum(1 for _ in rows)
            count = number - (line is None) + sum(1 for _ in lines)
            raise ValueError(
                f"{source} has {sentences:,} lines, {path} has {count:,}: line n of the {what} "
                "has to belong to sentence pair n"
            )
        yield row, line


def _with_naacl(
    pairs: Iterator[TextPair], source: Path, alignments: Iterator[GoldAlignment], gold: Path
) -> Iterator[tuple[TextPair, GoldAlignment]]:
    """Each pair with its alignment; the last pairs may have none."""
    count = 0
    for pair in pairs:
        count += 1
        yield pair, next(alignments, GoldAlignment(frozenset()))
    sentences = count + sum(1 for _ in alignments)
    if sentences > count:
        raise ValueError(
            f"{source} has {count:,} lines, {gold} has links of sentence {sentences:,} (from 1)"
        )
