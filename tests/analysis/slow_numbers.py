"""Every number of attention once more, in plain loops over Python numbers, from the formulas.

One sentence at a time: ``weights[head][query][key]``, and ``valid[query][key]``, True where a query
may see a key. Each function gives what one sentence adds to part and whole of a ratio.
"""

import math
from collections.abc import Sequence

Matrix = Sequence[Sequence[float]]
Mask = Sequence[Sequence[bool]]
Ratio = tuple[float, float]


def visible(row: Sequence[float], valid: Sequence[bool]) -> list[float]:
    return [weight for weight, ok in zip(row, valid, strict=True) if ok]


def sparsity(matrix: Matrix, valid: Mask) -> Ratio:
    zeros = total = 0
    for row, ok in zip(matrix, valid, strict=True):
        for weight in visible(row, ok):
            total += 1
            if weight == 0:
                zeros += 1
    return zeros, total


def is_null(row: Sequence[float], valid: Sequence[bool]) -> bool:
    return all(weight == 0 for weight in visible(row, valid))


def null(matrix: Matrix, valid: Mask) -> Ratio:
    rows = [(row, ok) for row, ok in zip(matrix, valid, strict=True) if any(ok)]
    return sum(is_null(row, ok) for row, ok in rows), len(rows)


def layer_null(heads: Sequence[Matrix], valid: Mask) -> Ratio:
    queries = [query for query, ok in enumerate(valid) if any(ok)]
    silent = [q for q in queries if all(is_null(head[q], valid[q]) for head in heads)]
    return len(silent), len(queries)


def first_sink(matrix: Matrix, valid: Mask) -> Ratio:
    first = total = 0.0
    for row, ok in zip(matrix, valid, strict=True):
        if sum(ok[1:]) > 0:
            first += abs(row[0]) if ok[0] else 0.0
            total += sum(abs(weight) for weight in visible(row, ok))
    return first, total


def end_sink(matrix: Matrix, valid: Mask, last_key: int) -> Ratio:
    end = total = 0.0
    for row, ok in zip(matrix, valid, strict=True):
        if any(ok):
            end += abs(row[last_key])
            total += sum(abs(weight) for weight in visible(row, ok))
    return end, total


def entropy(probabilities: Sequence[float]) -> float:
    return -sum(p * math.log(p) for p in probabilities if p > 0)


def distribution(row: Sequence[float], temperature: float | None) -> list[float]:
    """Of one head over the visible keys, and one more for null attention."""
    if temperature is None:
        return [*row, 0.0]
    if all(weight == 0 for weight in row):
        return [0.0] * len(row) + [1.0]
    scores = [math.copysign(abs(weight) ** temperature, weight) for weight in row]
    total = sum(math.exp(score) for score in scores)
    return [*(math.exp(score) / total for score in scores), 0.0]


def diversity(heads: Sequence[Matrix], valid: Mask, temperature: float | None) -> Ratio:
    total, queries = 0.0, 0
    for query, ok in enumerate(valid):
        if not any(ok):
            continue
        each = [distribution(visible(head[query], ok), temperature) for head in heads]
        mean = [sum(column) / len(heads) for column in zip(*each, strict=True)]
        total += entropy(mean) - sum(map(entropy, each)) / len(heads)
        queries += 1
    return total, queries


def mean_square(outputs: Matrix) -> Ratio:
    """Of one sentence's outputs ``[query][feature]`` before the norm."""
    values = [value for row in outputs for value in row]
    return sum(value * value for value in values), len(values)


def closed_gates(outputs: Matrix, gate: Sequence[float]) -> Ratio:
    closed = total = 0
    for row in outputs:
        for value, weight in zip(row, gate, strict=True):
            total += 1
            if 1 / (1 + math.exp(-value * weight)) < 0.01:
                closed += 1
    return closed, total


def added(ratios: Sequence[Ratio]) -> float | None:
    """The ratio of the sums."""
    part, whole = (sum(column) for column in zip(*ratios, strict=True))
    return part / whole if whole else None
