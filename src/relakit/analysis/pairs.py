"""Sentence pairs to analyze: texts, their words, and what is known about them. No torch here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from relakit.amounts import number_with_noun
from relakit.analysis.gold import (
    FirstWord,
    GoldAlignment,
    GoldFormatChoice,
)
from relakit.analysis.link_file import LinkFile
from relakit.analysis.tags import read_tags, tag_words
from relakit.analysis.word_map import Span, split_words
from relakit.data.generated import GeneratedPair
from relakit.data.parallel_files import ParallelFiles, read_pairs
from relakit.data.tokenizer import Encoded

TextPair: TypeAlias = tuple[str, str]
Row = TypeVar("Row")
Line = TypeVar("Line")


@dataclass(frozen=True)
class AnalysisPair:
    """A sentence pair, where its words are, and, if known, gold links and tags.

    Raises:
        ValueError: there is a link to a word that does not exist, or too few or too many tags.
    """

    source: str
    target: str
    source_words: tuple[Span, ...]
    """Where each word is in `source`, in order"""
    target_words: tuple[Span, ...]
    gold: GoldAlignment | None = None
    target_tags: tuple[str, ...] | None = None
    """The tag of each target word"""
    tokenized: bool = False
    """How to split another translation of the source into words, see `split_words`"""
    target_tokens: Encoded | None = None
    """The target's tokens, if a search found them: a tokenizer may split the target differently"""

    def __post_init__(self) -> None:
        if self.gold is not None:
            check_links(self.gold, len(self.source_words), len(self.target_words))
        if self.target_tags is not None:
            check_tags(self.target_tags, len(self.target_words))

    @property
    def has_words(self) -> bool:
        """Whether both sides have words."""
        return bool(self.source_words and self.target_words)

    def reversed(self) -> "AnalysisPair":
        """The pair with source and target swapped, in its gold links too, and without its tags."""
        return AnalysisPair(
            self.target,
            self.source,
            self.target_words,
            self.source_words,
            None if self.gold is None else self.gold.reversed(),
            tokenized=self.tokenized,
        )

    @classmethod
    def from_texts(cls, source: str, target: str, *, tokenized: bool = False) -> "AnalysisPair":
        """A pair of which only the texts are known; `split_words` finds its words."""
        return cls(
            source,
            target,
            split_words(source, tokenized=tokenized),
            split_words(target, tokenized=tokenized),
            tokenized=tokenized,
        )


def check_links(
    gold: GoldAlignment,
    source_words: int,
    target_words: int,
    *,
    option: str = "--gold",
    words_option: str = "--tokenized",
) -> None:
    """Raise ValueError for a link to a word beyond the end of a sentence.

    ``option`` is the command-line option that names the links, and ``words_option`` the one that
    says how words are split.
    """
    counts = source_words, target_words
    for link in sorted(gold.possible):
        for side, word, count in zip(("source", "target"), link, counts, strict=True):
            if not 0 <= word < count:
                raise ValueError(
                    f"the link of source word {link[0]} and target word {link[1]} (from 0) is "
                    f"out of range, the {side} has {number_with_noun(count, 'word')}; check where "
                    f"the links' numbers start ({option}-first), which side comes first "
                    f"({option}-reverse) and how words are split ({words_option})"
                )


def check_tags(tags: Sequence[str], target_words: int) -> None:
    """Raise ValueError unless there is one tag for each target word."""
    if len(tags) != target_words:
        raise ValueError(
            f"it has {number_with_noun(len(tags), 'tag')}, the target has "
            f"{number_with_noun(target_words, 'word')}; check how words are split (--tokenized)"
        )


class Pairs(Protocol):
    """Pairs that can be counted, and read more than once: a list of pairs, or `PairFiles`."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[AnalysisPair]: ...


def generated_gold_pair(pair: GeneratedPair) -> AnalysisPair:
    """A pair of the generated corpus; all its links are sure."""
    return AnalysisPair(
        pair.source_text,
        pair.target_text,
        pair.source_spans,
        pair.target_spans,
        GoldAlignment(frozenset(pair.links)),
        pair.target_tags,
    )


def tag_pair(pair: AnalysisPair, pipeline: str) -> AnalysisPair:
    """The pair with tags for its target words, see `tag_words`."""
    words = [pair.target[start:end] for start, end in pair.target_words]
    return replace(pair, target_tags=tag_words(words, pipeline))


@dataclass(frozen=True, kw_only=True)
class PairFiles:
    """Pairs in files, which are read again each time, so that they need not fit into memory.

    All files are read once at the start, so that mistakes are found before any work begins.

    Raises:
        ValueError: names a file and what is wrong with it, or ``tags`` and ``tagger`` if both are
            given.
    """

    source: Path
    """Sentences, one per line; without ``target``, each is followed by a tab and its translation"""
    target: Path | None = None
    gold: Path | None = None
    """Links of the pairs"""
    gold_format: GoldFormatChoice = "auto"
    gold_first: FirstWord | None = None
    """The number of a sentence's first word in ``gold``; None: the format's default"""
    gold_reverse: bool = False
    """Whether the links name the target word first"""
    tags: Path | None = None
    """A line for each target, a tag for each of its words"""
    tagger: str | None = None
    """Instead of ``tags``: a spaCy pipeline. The tagged pairs are kept in memory."""
    tokenized: bool = False
    """See `split_words`"""
    limit: int | None = None
    """Read at most this many pairs, from the start"""
    empty_sides: int = field(init=False)
    """How many pairs have a side without words; they count like all others."""
    _count: int = field(init=False)
    _tagged: list[AnalysisPair] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if self.tags is not None and self.tagger is not None:
            raise ValueError("tags and tagger exclude each other; give one of them")
        if self.tagger is not None:
            # Kept, because tagging is slow.
            tagged = [tag_pair(pair, self.tagger) for pair in self._read()]
            object.__setattr__(self, "_tagged", tagged)
        count = empty = sure = 0
        for pair in self:
            count += 1
            empty += not pair.has_words
            sure += 0 if pair.gold is None else len(pair.gold.sure)
        if self.gold is not None and not sure:
            raise ValueError(
                f"{self.gold} has no sure link in {number_with_noun(count, 'pair')}: there is "
                "nothing to score; give another file, or leave it out"
            )
        object.__setattr__(self, "_count", count)
        object.__setattr__(self, "empty_sides", empty)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[AnalysisPair]:
        return self._read() if self._tagged is None else iter(self._tagged)

    def _read(self) -> Iterator[AnalysisPair]:
        pairs = read_analysis_pairs(
            ParallelFiles(self.source, self.target),
            gold=self.gold,
            format=self.gold_format,
            first=self.gold_first,
            reverse=self.gold_reverse,
            tags=self.tags,
            tokenized=self.tokenized,
        )
        return islice(pairs, self.limit)

    @property
    def description(self) -> dict[str, str]:
        """What was read and how, for `ModelAnalysis.inputs`."""
        facts = {
            "source": self.source,
            "target": self.target,
            "gold": self.gold and f"{self.gold} ({self.gold_format})",
            "tags": self.tags or (self.tagger and f"by spaCy's {self.tagger}"),
            "words": "between spaces" if self.tokenized else "between spaces and punctuation",
        }
        return {name: str(fact) for name, fact in facts.items() if fact is not None}


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
    """The pairs of a parallel corpus, with links and tags if files of them are given.

    Args:
        files: the sentences.
        gold: the links of the pairs.
        format: the format of ``gold``, see `read_gold`.
        first: the number of a sentence's first word in ``gold``, see `read_gold`.
        reverse: whether the links name the target word first.
        tags: line n has a tag for each word in the target of pair n, separated by spaces.
        tokenized: see `split_words`.

    Raises:
        ValueError: names the file that is wrong, and the line or the two differing line counts.
    """
    pairs = read_pairs(files)
    links: Iterator[tuple[TextPair, GoldAlignment | None]] = ((pair, None) for pair in pairs)
    file = None
    if gold is not None:
        file = LinkFile(path=gold, format=format, first=first, reverse=reverse)
        if file.numbers_sentences:
            links = file.of_sentences(pairs, files.source)
        else:
            links = _with_lines(pairs, files.source, file.read(), gold, "links")
    rows: Iterator[tuple[tuple[TextPair, GoldAlignment | None], tuple[str, ...] | None]]
    rows = ((row, None) for row in links)
    if tags is not None:
        rows = _with_lines(links, files.source, read_tags(tags), tags, "tags")
    for number, ((texts, alignment), words_tags) in enumerate(rows, start=1):
        source, target = texts
        source_words = split_words(source, tokenized=tokenized)
        target_words = split_words(target, tokenized=tokenized)
        if alignment is not None and file is not None:
            with _named(file.place(number)):
                check_links(alignment, len(source_words), len(target_words))
        if words_tags is not None:
            with _named(f"{tags}, line {number:,}"):
                check_tags(words_tags, len(target_words))
        yield AnalysisPair(
            source, target, source_words, target_words, alignment, words_tags, tokenized
        )


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Put the place before the message of any ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _with_lines(
    rows: Iterator[Row], source: Path, lines: Iterator[Line], path: Path, what: str
) -> Iterator[tuple[Row, Line]]:
    """Each row together with its line from a file."""
    for number, (row, line) in enumerate(zip_longest(rows, lines), start=1):
        if row is None or line is None:
            sentences = number - (row is None) + sum(1 for _ in rows)
            count = number - (line is None) + sum(1 for _ in lines)
            raise ValueError(
                f"{source} has {number_with_noun(sentences, 'line')}, {path} has {count:,}: line n "
                f"of the {what} must belong to line n of the other"
            )
        yield row, line
