"""A translation compared with its reference, word by word."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from relakit.analysis.word_map import Span

Status: TypeAlias = Literal["same", "added", "missing"]
"""Where words are: in both texts, only in the output, or only in the reference."""


def word_difference(
    reference: str,
    output: str,
    reference_words: Sequence[Span],
    output_words: Sequence[Span],
) -> list[tuple[Status, str]]:
    """The output in pieces, with missing reference words where they would stand.

    As many words as possible are the same, in the same order. Without the missing pieces, the text
    is the output, spaces included.
    """
    left = [reference[start:end] for start, end in reference_words]
    right = [output[start:end] for start, end in output_words]
    pieces: list[tuple[Status, str]] = []
    place = 0
    for status, steps in groupby(_steps(left, right), key=lambda step: step[0]):
        numbers = [number for _, number in steps]
        if status == "missing":
            start, end = reference_words[numbers[0]][0], reference_words[numbers[-1]][1]
            pieces.append((status, reference[start:end]))
        else:
            start, end = output_words[numbers[0]][0], output_words[numbers[-1]][1]
            if place < start:
                pieces.append(("same", output[place:start]))
            pieces.append((status, output[start:end]))
            place = end
    if place < len(output):
        pieces.append(("same", output[place:]))
    return pieces


def _steps(left: Sequence[str], right: Sequence[str]) -> list[tuple[Status, int]]:
    """How to get from left to right along a longest common subsequence.

    Each step has a word's number: in the reference if the word is missing, else in the output.
    """
    first = 0
    while first < min(len(left), len(right)) and left[first] == right[first]:
        first += 1
    lengths = _common_lengths(left[first:], right[first:])
    steps: list[tuple[Status, int]] = [("same", number) for number in range(first)]
    row, column = first, first
    while row < len(left) or column < len(right):
        below = lengths[row - first + 1][column - first] if row < len(left) else -1
        beside = lengths[row - first][column - first + 1] if column < len(right) else -1
        if row < len(left) and column < len(right) and left[row] == right[column]:
            steps.append(("same", column))
            row, column = row + 1, column + 1
        elif below >= beside:
            steps.append(("missing", row))
            row += 1
        else:
            steps.append(("added", column))
            column += 1
    return steps


def _common_lengths(left: Sequence[str], right: Sequence[str]) -> list[list[int]]:
    """``[left + 1][right + 1]``: how many words are in common from there on."""
    lengths = [[0] * (len(right) + 1)]
    for word in reversed(left):
        below = lengths[-1]
        row = [0] * (len(right) + 1)
        for column in range(len(right) - 1, -1, -1):
            same = word == right[column]
            row[column] = below[column + 1] + 1 if same else max(below[column], row[column + 1])
        lengths.append(row)
    return lengths[::-1]
