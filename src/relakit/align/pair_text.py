"""Pairs whose words are counted the way users of an aligner count them. No torch here."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from relakit.align.settings import WordRule
from relakit.analysis.link_file import LinkFile
from relakit.analysis.pairs import AnalysisPair, check_links
from relakit.analysis.word_map import join_words
from relakit.data.parallel_files import ParallelFiles, read_numbered_pairs


def pair_of_texts(source: str, target: str, *, words: WordRule = "spaces") -> AnalysisPair:
    """A pair as the model should read it, and where its words are.

    Args:
        source: a sentence.
        target: its translation.
        words: what counts as a word. Models learn from ordinary text, so ``tokenized`` words are
            joined as one would write them.
    """
    if words != "tokenized":
        return AnalysisPair.from_texts(source, target, tokenized=words == "spaces")
    (source, source_words), (target, target_words) = (
        join_words(text.split()) for text in (source, target)
    )
    return AnalysisPair(source, target, source_words, target_words, tokenized=True)


@dataclass(frozen=True)
class LinkedPairs:
    """Pairs from files that can be read more than once, with their links if there is a link file.

    The pairs that count are read once up front, so that problems with them are known.
    """

    files: ParallelFiles
    links: LinkFile | None = None
    words: WordRule = "spaces"
    limit: int | None = None
    """Read at most this many pairs, from the beginning"""
    _count: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_count", sum(1 for _ in self))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[AnalysisPair]:
        pairs = read_pairs_with_gold(self.files, self.links, words=self.words)
        return islice(pairs, self.limit)


def read_pairs_with_gold(
    files: ParallelFiles, gold: LinkFile | None, *, words: WordRule = "spaces"
) -> Iterator[AnalysisPair]:
    """The pairs in files, with their gold links if there are any.

    Raises:
        OSError: a file cannot be read.
        ValueError: a line is bad, or the numbers of pairs and of lines of links differ.
    """
    numbered = read_numbered_pairs(files)
    if gold is None:
        for pair in numbered:
            yield pair_of_texts(*pair.texts, words=words)
        return
    # Units of a translation memory that are not pairs have numbers, too, but no links.
    for count, (row, known) in enumerate(gold.beside(numbered, files.source), start=1):
        if row is None:
            raise ValueError(
                f"{files.source} has fewer pairs than {gold.path} has lines of links; line n of "
                "one must be about the same pair as line n of the other"
            )
        read = pair_of_texts(*row.texts, words=words)
        if known is None:
            raise ValueError(
                f"{gold.path} has no links for {files.source}, {files.unit} {row.number:,}: it "
                "must have a line for each pair"
            )
        try:
            check_links(
                known,
                len(read.source_words),
                len(read.target_words),
                option=gold.option,
                words_option="--words",
            )
        except ValueError as error:
            raise ValueError(f"{gold.place(count)}: {error}") from None
        yield replace(read, gold=known)
