"""Spans that cross become spans of which one encloses the other."""

from collections.abc import Iterable

from relakit.analysis.word_map import Span


def untangle(spans: Iterable[Span]) -> dict[Span, Span]:
    """For each span the one that it is widened to, so that no two cross.

    Of two that cross, the one is widened that takes in less by that. A span within another stays
    within it. None may be empty.
    """
    different = sorted(set(spans), key=lambda span: (span[0], -span[1]))
    widened = [list(span) for span in different]
    # Those around the place that is reached, the outer ones first; so no end is before the next's.
    around: list[list[int]] = []
    for span in widened:
        start, end = span
        while around and around[-1][1] <= start:
            around.pop()
        crossed = len(around)
        while crossed and around[crossed - 1][1] < end:
            crossed -= 1
        crossing = around[crossed:]
        if not crossing:
            around.append(span)
        elif sum(end - other[1] for other in crossing) <= start - crossing[0][0]:
            for other in crossing:
                other[1] = end
            around.append(span)
        else:
            span[0] = crossing[0][0]
            around.insert(crossed, span)
    return {old: (new[0], new[1]) for old, new in zip(different, widened, strict=True)}
