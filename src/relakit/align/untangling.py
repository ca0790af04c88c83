"""Widen spans that cross, so that one encloses the other."""

from collections.abc import Iterable

from relakit.analysis.word_map import Span


def untangle(spans: Iterable[Span]) -> dict[Span, Span]:
    """For each span, the span that it is widened to, so that no two cross.

    Of two spans that cross, the one that takes in less by it is widened. A span inside another
    stays inside it. No span may be empty.
    """
    different = sorted(set(spans), key=lambda span: (span[0], -span[1]))
    widened = [list(span) for span in different]
    # The spans around the current place, outermost first; so none ends before the next in the list.
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
