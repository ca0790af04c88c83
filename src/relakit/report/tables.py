"""All numbers as CSV files, one for each number, one row for each value.

Layers and heads are numbered from 1, as people count.
"""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from relakit.analysis.aer import AlignmentScore
from relakit.analysis.links import READINGS
from relakit.analysis.results import HeadValues, KindResult, LayerValues, ModelAnalysis, mean_of
from relakit.files.writing import make_folder, write_whole
from relakit.report.page_data import finite

Cell: TypeAlias = str | int | float | None
Row: TypeAlias = tuple[Cell, ...]
Table: TypeAlias = tuple[Row, list[Row]]
"""Names of the columns, and the rows"""

HEAD_COLUMNS = ("model", "kind", "layer", "head", "value")
LAYER_COLUMNS = ("model", "kind", "layer", "value")


def write_tables(analyses: Sequence[ModelAnalysis], folder: Path) -> list[Path]:
    """Write the tables, and return the paths of the files. Values that were not counted are empty.

    Tables without rows, such as alignment tables without gold links, are left out.
    """
    make_folder(folder)
    written = []
    for name, (columns, rows) in tables(analyses).items():
        if rows:
            path = folder / f"{name}.csv"
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([columns, *rows])
            write_whole(path, text.getvalue().encode("utf-8", "backslashreplace"))
            written.append(path)
    return written


def tables(analyses: Sequence[ModelAnalysis]) -> dict[str, Table]:
    """The tables by file name, without suffix."""
    return {
        "overview": _overview(analyses),
        **_by_head(analyses),
        **_by_layer(analyses),
        "diversity": _diversity(analyses),
        "table_4_flops": _flops(analyses),
        "table_5_alignment": _alignment_means(analyses),
        "table_6_diversity": _diversity_means(analyses),
        "alignment": _alignment(analyses),
        "shuffled_null_rate": _shuffled(analyses),
        "shuffled_gap": _gaps(analyses),
        "null_rate_by_class": _classes(analyses),
    }


def _overview(analyses: Sequence[ModelAnalysis]) -> Table:
    columns = ("model", "pairs", "source_tokens", "target_tokens", "bleu", "bleu_signature")
    return columns, [
        (a.name, a.pairs, a.source_tokens, a.target_tokens, a.bleu, a.bleu_signature)
        for a in analyses
    ]


def _by_head(analyses: Sequence[ModelAnalysis]) -> dict[str, Table]:
    def rows(name: str) -> list[Row]:
        return [
            (analysis.name, kind.kind, *row)
            for analysis in analyses
            for kind in analysis.kinds
            for row in _head_rows(getattr(kind, name))
        ]

    names = ("sparsity", "null_rate", "first_sink", "end_sink")
    return {name: (HEAD_COLUMNS, rows(name)) for name in names}


def _head_rows(values: HeadValues | None) -> Iterator[Row]:
    for layer, heads in enumerate(values or (), 1):
        for head, value in enumerate(heads, 1):
            yield layer, head, value


def _by_layer(analyses: Sequence[ModelAnalysis]) -> dict[str, Table]:
    def rows(values: Callable[[KindResult], LayerValues | None]) -> list[Row]:
        return [
            (analysis.name, kind.kind, layer, value)
            for analysis in analyses
            for kind in analysis.kinds
            for layer, value in enumerate(values(kind) or (), 1)
        ]

    numbers: dict[str, Callable[[KindResult], LayerValues | None]] = {
        "layer_null_rate": lambda kind: kind.layer_null_rate,
        "null_rate_variance": lambda kind: kind.null_variance(),
        "output_rms": lambda kind: kind.output_rms,
        "closed_gates": lambda kind: kind.closed_gates,
    }
    return {name: (LAYER_COLUMNS, rows(values)) for name, values in numbers.items()}


def _diversity(analyses: Sequence[ModelAnalysis]) -> Table:
    return ("model", "kind", "temperature", "layer", "value"), [
        (analysis.name, kind.kind, temperature, layer, value)
        for analysis in analyses
        for kind in analysis.kinds
        for temperature, values in kind.diversity.items()
        for layer, value in enumerate(values, 1)
    ]


def _diversity_means(analyses: Sequence[ModelAnalysis]) -> Table:
    return ("model", "kind", "temperature", "value"), [
        (analysis.name, kind.kind, temperature, mean_of([values]))
        for analysis in analyses
        for kind in analysis.kinds
        for temperature, values in kind.diversity.items()
    ]


def _flops(analyses: Sequence[ModelAnalysis]) -> Table:
    return ("model", "length", "softmax", "rela_g"), [
        (analysis.name, counts.length, counts.softmax, counts.rela_g)
        for analysis in analyses
        for counts in analysis.flops
    ]


def _alignment_means(analyses: Sequence[ModelAnalysis]) -> Table:
    return ("model", "reading", "aol", "aoh"), [
        (analysis.name, reading, finite(scores.aol), finite(scores.aoh))
        for analysis in analyses
        if analysis.alignment is not None
        for reading in READINGS
        for scores in [analysis.alignment.scores(reading)]
    ]


def _alignment(analyses: Sequence[ModelAnalysis]) -> Table:
    """The mean attention of a layer is listed as a head called "mean"."""
    rows: list[Row] = []
    for analysis in analyses:
        if analysis.alignment is None:
            continue
        for reading in READINGS:
            scores = analysis.alignment.scores(reading)
            for layer, (heads, mean) in enumerate(zip(scores.heads, scores.layers, strict=True), 1):
                named: list[tuple[Cell, AlignmentScore]] = [*enumerate(heads, 1), ("mean", mean)]
                rows += [
                    (analysis.name, reading, layer, head, *_score(score)) for head, score in named
                ]
    return ("model", "reading", "layer", "head", "aer", "precision", "recall"), rows


def _score(score: AlignmentScore) -> Row:
    return finite(score.aer), finite(score.precision), finite(score.recall)


def _shuffled(analyses: Sequence[ModelAnalysis]) -> Table:
    return HEAD_COLUMNS, [
        (analysis.name, kind, *row)
        for analysis in analyses
        if analysis.shuffled is not None
        for kind, values in analysis.shuffled.null_rate.items()
        for row in _head_rows(values)
    ]


def _gaps(analyses: Sequence[ModelAnalysis]) -> Table:
    return ("model", "layer", "mean", "low", "high"), [
        (analysis.name, layer, gap.mean, gap.low, gap.high)
        for analysis in analyses
        if analysis.shuffled is not None
        for layer, gap in enumerate(analysis.shuffled.cross_gap, 1)
    ]


def _classes(analyses: Sequence[ModelAnalysis]) -> Table:
    rows: list[Row] = []
    for analysis in analyses:
        classes = analysis.classes
        if classes is None:
            continue
        for layer, heads in enumerate(classes.null_rate, 1):
            for head, rates in enumerate(heads, 1):
                rows += [
                    (analysis.name, layer, head, name, count, rate)
                    for name, count, rate in zip(
                        classes.classes, classes.counts, rates, strict=True
                    )
                ]
    return ("model", "layer", "head", "class", "count", "value"), rows
