"""`relakit evaluate`: how good translations are, and whether others are better."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.cli.translator_options import (
    BatchTokens,
    Beam,
    Device,
    LengthPenalty,
    MaxLength,
    PrecisionName,
    Threads,
    load_translator,
)
from relakit.decode.settings import DEVICE, PRECISION, SearchSettings
from relakit.metrics.settings import SAMPLES

if TYPE_CHECKING:
    from relakit.metrics.bleu import CorpusScore
    from relakit.metrics.bootstrap import Comparison

WHAT, OUTPUT = "What to score", "Output"
WIDTH = 110
"""Columns that a signature needs: wrapped, it could not be copied."""

Translate = Callable[[Path, Sequence[str]], list[str]]


@dataclass(frozen=True)
class Lines:
    """The lines of a file, or translations of them by a model."""

    name: str
    lines: list[str]


def evaluate(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL", help="A model directory; or give --hypothesis.", show_default=False
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="The translations to compare with.", rich_help_panel=WHAT),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="What the model translates.", rich_help_panel=WHAT)
    ] = None,
    hypothesis: Annotated[
        Path | None,
        typer.Option(help="Translations to score, instead of a model's.", rich_help_panel=WHAT),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Other translations, or another model's directory, to compare with.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Draws of the test set for the comparison.", rich_help_panel=WHAT)
    ] = SAMPLES,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Keep the model's translations in this file.", rich_help_panel=OUTPUT),
    ] = None,
    beam: Beam = SearchSettings.beam,
    length_penalty: LengthPenalty = SearchSettings.length_penalty,
    max_length: MaxLength = SearchSettings.max_length,
    batch_tokens: BatchTokens = SearchSettings.batch_tokens,
    threads: Threads = None,
    precision: PrecisionName = PRECISION,
    device: Device = DEVICE,
) -> None:
    """Score translations: sacreBLEU, chrF and tokenised BLEU, each with its signature.

    relakit evaluate MODEL --source F --reference F translates, then scores; relakit evaluate
    --hypothesis F --reference F scores a file. --baseline compares two outputs by paired bootstrap
    resampling (Koehn, 2004). Files are UTF-8, one sentence per line, plain, gzip or zstd.
    """
    from relakit.metrics.bleu import METRICS, corpus_score
    from relakit.metrics.bootstrap import paired_bootstrap
    from relakit.writing import write_whole

    def by_model(folder: Path, texts: Sequence[str]) -> list[str]:
        translator = load_translator(folder, threads=threads, precision=precision, device=device)
        message = Text(f"{folder} translates {len(texts):,} lines ...")
        with Console(stderr=True).status(message):
            return translator.translate(
                texts,
                beam=beam,
                length_penalty=length_penalty,
                max_length=max_length,
                batch_tokens=batch_tokens,
            )

    references, sources = _checked_inputs(model, reference, source, hypothesis, baseline)
    if model is not None and sources is not None:
        system = Lines(str(model), by_model(model, sources.lines))
    else:
        assert hypothesis is not None
        system = _output_of(hypothesis, references, None, by_model)
    if output is not None:
        if model is None:
            raise ValueError("--output keeps a model's translations; name a MODEL")
        write_whole(output, "".join(f"{line}\n" for line in system.lines).encode())
    scores = [corpus_score(name, system.lines, references.lines) for name in METRICS]
    compared: list[Comparison] = []
    other = None
    if baseline is not None:
        other = _output_of(baseline, references, sources, by_model)
        compared = paired_bootstrap(other.lines, system.lines, references.lines, samples=samples)
    if as_json:
        typer.echo(json.dumps(_as_json(system, scores, other, compared), indent=2))
    else:
        render(scores, compared, Console(highlight=False))


def _checked_inputs(
    model: Path | None,
    reference: Path | None,
    source: Path | None,
    hypothesis: Path | None,
    baseline: Path | None,
) -> tuple[Lines, Lines | None]:
    """The references, and the sources where a model needs them."""
    if (model is None) == (hypothesis is None):
        raise ValueError("name what to score: either MODEL with --source, or --hypothesis")
    if reference is None:
        raise ValueError("--reference is missing: the translations to compare with")
    has_model = model is not None or (baseline is not None and baseline.is_dir())
    if has_model and source is None:
        raise ValueError("--source is missing: what the model is to translate")
    if source is not None and not has_model:
        raise ValueError("--source is for a model to translate, and none is named; leave it out")
    references = _read(reference)
    if source is None:
        return references, None
    sources = _read(source)
    _check_as_many(sources, references)
    return references, sources


def _output_of(path: Path, references: Lines, sources: Lines | None, by_model: Translate) -> Lines:
    """The lines of a file, or a model's translations of the sources."""
    if sources is not None and path.is_dir():
        return Lines(str(path), by_model(path, sources.lines))
    lines = _read(path)
    _check_as_many(lines, references)
    return lines


def _read(path: Path) -> Lines:
    from relakit.data.lines import read_lines

    lines = list(read_lines(path))
    if not lines:
        raise ValueError(f"{path} is empty")
    return Lines(str(path), lines)


def _check_as_many(lines: Lines, references: Lines) -> None:
    if len(lines.lines) != len(references.lines):
        raise ValueError(
            f"{lines.name} has {len(lines.lines):,} lines, {references.name} "
            f"{len(references.lines):,}: they must have the same number"
        )


def _as_json(
    system: Lines, scores: "list[CorpusScore]", other: Lines | None, compared: "list[Comparison]"
) -> dict[str, object]:
    content: dict[str, object] = {
        "system": system.name,
        "scores": [score.to_json() for score in scores],
    }
    if other is not None:
        content["baseline"] = other.name
        content["comparison"] = [comparison.to_json() for comparison in compared]
    return content


def render(scores: "list[CorpusScore]", compared: "list[Comparison]", console: Console) -> None:
    """Print the scores, and the comparison if there is one."""
    console.width = max(console.width, WIDTH)
    table = Table("metric", box=None, pad_edge=False)
    table.add_column("score", justify="right")
    table.add_column("signature", no_wrap=True)
    for score in scores:
        table.add_row(score.name, f"{score.score:.2f}", score.signature)
    console.print(table)
    console.print(f"{scores[0].sentences:,} sentences.")
    if not compared:
        return
    table = Table("compared by", box=None, pad_edge=False)
    for title in ("baseline", "system", "difference", "p"):
        table.add_column(title, justify="right")
    for comparison in compared:
        both = (comparison.baseline, comparison.system)
        table.add_row(
            comparison.metric,
            *(f"{side.score:.2f} ({side.mean:.2f} ± {side.interval:.2f})" for side in both),
            f"{comparison.difference:+.2f}",
            f"{comparison.p_value:.4f}",
        )
    console.print()
    console.print(table)
    console.print(
        "Score (mean ± 95% interval over the draws of the test set). p: how likely such a "
        "difference is if the outputs are equally good.",
        soft_wrap=True,
    )
    for comparison in compared:
        console.print(f"{comparison.metric}: {comparison.signature}", soft_wrap=True)
