"""Make a lexical shortlist from a model's own alignments: which tokens were linked with which."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from relakit.align.aligner import Aligner
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.settings import SHORTLIST_BEST, SHORTLIST_FREQUENT
from relakit.decode.shortlist import (
    NEVER_LISTED,
    Shortlist,
    ShortlistAbout,
    TokenIds,
    about_tokenizers,
)


class TokenLinkCounts:
    """How often source and target tokens were linked, and how often each occurred."""

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._tokenizers = tokenizers
        self._links: Counter[tuple[int, int]] = Counter()
        self._sources: Counter[int] = Counter()
        self._targets: Counter[int] = Counter()
        self.pairs = 0

    def add(
        self, source: Sequence[int], target: Sequence[int], links: Iterable[tuple[int, int]]
    ) -> None:
        """Count a pair: its token ids, and which positions in them are linked."""
        self.pairs += 1
        self._sources.update(source)
        self._targets.update(token for token in target if token not in NEVER_LISTED)
        self._links.update(
            (source[s], target[t]) for s, t in links if target[t] not in NEVER_LISTED
        )

    def shortlist(
        self,
        *,
        best: int = SHORTLIST_BEST,
        frequent: int = SHORTLIST_FREQUENT,
        files: Sequence[str] = (),
    ) -> Shortlist:
        """The target tokens for each source token, and those for every sentence.

        Args:
            best: most target tokens for a source token, besides the frequent ones: those that go
                with it rather than with others, by twice the number of links, divided by how often
                both occur (Dice's coefficient); among equals, those with smaller ids.
            frequent: how many of the most frequent target tokens are listed for every sentence.
            files: where the pairs come from, for the record.
        """
        most = sorted(self._targets.items(), key=lambda item: (-item[1], item[0]))[:frequent]
        everywhere = {token for token, _ in most}
        by_source: dict[int, list[tuple[float, int]]] = {}
        for (source, target), count in self._links.items():
            if target not in everywhere:
                together = count / (self._sources[source] + self._targets[target])
                by_source.setdefault(source, []).append((-together, target))
        parts: list[list[int]] = []
        for source in range(self._tokenizers.source.size):
            chosen = sorted(by_source.get(source, ()))[:best]
            parts.append(sorted(target for _, target in chosen))
        return Shortlist(
            starts=np.cumsum([0, *map(len, parts)], dtype=np.int64),
            tokens=np.array([token for part in parts for token in part], dtype=np.int64),
            frequent=np.array(sorted(everywhere), dtype=np.int64),
            about=ShortlistAbout(
                **about_tokenizers(self._tokenizers),
                best=best,
                files=tuple(files),
                pairs=self.pairs,
                relakit=version("relakit"),
            ),
        )


def count_links(aligner: Aligner, pairs: Iterable[AnalysisPair]) -> TokenLinkCounts:
    """Align pairs, and count the links of their tokens.

    Args:
        aligner: its level must be "token".
        pairs: those without words on a side, and those that are too long, get no links.

    Raises:
        ValueError: no pair has a link.
    """
    if aligner.level != "token":
        raise ValueError(f"a shortlist is of tokens, but the aligner links {aligner.level}s")
    counts = TokenLinkCounts(aligner.tokenizers)
    has_links = False
    for pair, alignment in _side_by_side(aligner, pairs):
        source = aligner.tokenizers.source.encode(pair.source).ids
        target = aligner.tokenizers.target.encode(pair.target).ids
        counts.add(source, target, alignment)
        has_links = has_links or bool(alignment)
    if not has_links:
        raise ValueError(f"none of {counts.pairs:,} pairs has a link, so no shortlist can be made")
    return counts


def _side_by_side(
    aligner: Aligner, pairs: Iterable[AnalysisPair]
) -> Iterator[tuple[AnalysisPair, frozenset[tuple[int, int]]]]:
    """Each pair with its links; pairs are remembered, as an aligner reads ahead."""
    waiting: list[AnalysisPair] = []

    def remembered() -> Iterator[AnalysisPair]:
        for pair in pairs:
            waiting.append(pair)
            yield pair

    for alignment in aligner.align(remembered()):
        yield waiting.pop(0), frozenset(alignment.scores)


class Coverage(NamedTuple):
    """How much of some pairs a shortlist covers."""

    share: float
    """Share of target tokens that are in the list of their own sentence"""
    size: float
    """Average number of tokens in a sentence's list"""


def coverage(
    shortlist: Shortlist, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Coverage:
    """How much of the targets the lists for their sources cover."""
    found = total = size = 0
    for source, target in zip(sources, targets, strict=True):
        tokens: TokenIds = shortlist.tokens_for(source)
        size += len(tokens)
        total += len(target)
        found += int(np.isin(np.array(target, dtype=np.int64), tokens).sum())
    return Coverage(found / max(1, total), size / max(1, len(sources)))
