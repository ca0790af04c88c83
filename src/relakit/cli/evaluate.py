"""`relakit evaluate`: how good translations are, and whether others are better."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.cli.completion import complete_model
from relakit.cli.consoles import messages_console, results_console
from relakit.cli.translator_options import (
    Device,
    MaxTokens,
    MoreModels,
    PrecisionName,
    Threads,
    TooLongName,
    WithShortlist,
    describe_models,
    fitting_lines,
    load_translator,
    named_models,
    with_search_options,
)
from relakit.decode.settings import (
    DEVICE,
    PRECISION,
    TOO_LONG,
    SearchSettings,
    known_too_long,
)
from relakit.metrics.settings import (
    BLEU_TOKENIZERS,
    METRIC_NAMES,
    METRICS,
    SAMPLES,
    checked_draws,
    known_metric,
    known_tokenizer,
    tokenizer_for,
)

if TYPE_CHECKING:
    from relakit.metrics.bleu import CorpusScore
    from relakit.metrics.bootstrap import Comparison
    from relakit.model.description import ModelDescription

WHAT, HOW, OUTPUT = "What to score", "How to score", "Output"
WIDTH = 110
"""Columns that a signature needs: if it were wrapped, it could not be copied."""


@dataclass(frozen=True)
class Lines:
    """The lines of a file, or a model's translations of them."""

    name: str
    lines: list[str]


@with_search_options
def evaluate(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A model directory; or give --hypothesis instead.",
            show_default=False,
            autocompletion=complete_model,
        ),
    ] = None,
    more_models: MoreModels = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The reference translations to compare with. Repeatable: a translation may match "
            "any of several references.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="The text that the model translates.", rich_help_panel=WHAT)
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
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(METRIC_NAMES)}. Repeatable. \\[default: {', '.join(METRICS)}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"How BLEU splits words: {', '.join(BLEU_TOKENIZERS)}. \\[default: zh for "
            "Chinese, ja-mecab for Japanese, ko-mecab for Korean, otherwise 13a]",
            rich_help_panel=HOW,
        ),
    ] = None,
    target_lang: Annotated[
        str | None,
        typer.Option(
            help="The language of the translations. \\[default: the model's]", rich_help_panel=HOW
        ),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            help="How many times the test set is resampled for the comparison.", rich_help_panel=HOW
        ),
    ] = SAMPLES,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Save the model's translations to this file.", rich_help_panel=OUTPUT),
    ] = None,
    max_tokens: MaxTokens = None,
    too_long: TooLongName = TOO_LONG,
    threads: Threads = None,
    precision: PrecisionName = PRECISION,
    shortlist: WithShortlist = False,
    device: Device = DEVICE,
    *,
    search: SearchSettings,
) -> None:
    """Score translations: BLEU, chrF, chrF++, TER and tokenised BLEU, each with its signature.

    relakit evaluate MODEL --source F --reference F translates, then scores; relakit evaluate
    --hypothesis F --reference F scores a file. --baseline compares two outputs by paired bootstrap
    resampling (Koehn, 2004). Files are UTF-8, one sentence per line, plain, gzip or zstd.
    """
    from relakit.files.output_paths import refuse_inputs
    from relakit.files.writing import check_writable, write_whole

    known_too_long(too_long)
    metrics = [known_metric(name) for name in metric] if metric else METRICS
    given_tokenizer = None if tokenize is None else known_tokenizer(tokenize)
    models = named_models(model, more_models)
    if output is not None:
        if not models:
            raise ValueError("--output keeps a model's translations; name a MODEL")
        read = {"--source": source, "--reference": reference, "--baseline": baseline}
        check_writable(output)
        refuse_inputs("--output", output, {"MODEL": models, **read})
    references, sources = _checked_inputs(models, reference, source, hypothesis, baseline)
    translation = _Translation(
        max_tokens=max_tokens,
        too_long=too_long,
        threads=threads,
        precision=precision,
        shortlist=shortlist,
        device=device,
        search=search,
    )
    # Problems with any input or package are found now, not after everything is translated.
    languages = [target_lang]
    system = other = None
    if models:
        languages.append(translation.describe(models).about.target_language)
    else:
        assert hypothesis is not None
        system = _read_beside(hypothesis, references)
    if baseline is not None:
        checked_draws(samples, len(references[0].lines), metrics)
        if sources is not None and baseline.is_dir():
            languages.append(translation.describe([baseline]).about.target_language)
        else:
            other = _read_beside(baseline, references)
    tokenizer = given_tokenizer or tokenizer_for(next(filter(None, languages), None))
    from relakit.metrics.bleu import corpus_score, make_metric
    from relakit.metrics.bootstrap import paired_bootstrap

    for kind in metrics:
        make_metric(kind, tokenizer)
    if system is None:
        assert sources is not None
        system = translation.translate(models, sources)
    if output is not None:
        write_whole(output, "".join(f"{line}\n" for line in system.lines).encode())
    expected = [several.lines for several in references]
    scores = [corpus_score(name, system.lines, *expected, tokenizer=tokenizer) for name in metrics]
    if baseline is not None and other is None:
        assert sources is not None
        other = translation.translate([baseline], sources)
    compared: list[Comparison] = []
    if other is not None:
        compared = paired_bootstrap(
            other.lines,
            system.lines,
            *expected,
            metrics=metrics,
            tokenizer=tokenizer,
            samples=samples,
        )
    if as_json:
        typer.echo(json.dumps(_as_json(system, references, scores, other, compared), indent=2))
    else:
        render(scores, compared, results_console())


@dataclass(frozen=True, kw_only=True)
class _Translation:
    """How models translate."""

    max_tokens: int | None
    too_long: str
    threads: int | None
    precision: str
    shortlist: bool
    device: str
    search: SearchSettings

    def describe(self, models: Sequence[Path]) -> "ModelDescription":
        """Check models that translate together; returns the first one's description."""
        [first, *_] = describe_models(models, **self._loading())
        return first

    def translate(self, models: Sequence[Path], sources: Lines) -> Lines:
        first = self.describe(models)
        fitting = list(
            fitting_lines(
                sources.lines,
                first,
                max_tokens=self.max_tokens,
                too_long=self.too_long,
                name=sources.name,
            )
        )
        translator = load_translator(models, **self._loading())
        name = " + ".join(map(str, models))
        options = asdict(replace(self.search, nbest=1))
        with messages_console().status(Text(f"{name} translates {len(fitting):,} lines ...")):
            found = translator.translate_nbest(fitting, **options)
        return Lines(name, [hypotheses[0].text for hypotheses in found])

    def _loading(self) -> dict[str, Any]:
        return {
            "threads": self.threads,
            "precision": self.precision,
            "device": self.device,
            "shortlist": self.shortlist,
        }


def _checked_inputs(
    models: Sequence[Path],
    reference: Sequence[Path] | None,
    source: Path | None,
    hypothesis: Path | None,
    baseline: Path | None,
) -> tuple[list[Lines], Lines | None]:
    """The references, and the sources where a model needs them."""
    if (not models) == (hypothesis is None):
        raise ValueError("name what to score: either MODEL with --source, or --hypothesis")
    if not reference:
        raise ValueError("--reference is missing: the translations to compare with")
    has_model = bool(models) or (baseline is not None and baseline.is_dir())
    if has_model and source is None:
        raise ValueError("--source is missing: what the model is to translate")
    if source is not None and not has_model:
        raise ValueError("--source is for a model to translate, and none is named; leave it out")
    references = [_read(path) for path in reference]
    for further in references[1:]:
        _check_as_many(further, references)
    return references, None if source is None else _read_beside(source, references)


def _read(path: Path) -> Lines:
    from relakit.data.lines import check_has_text, read_lines

    lines = list(read_lines(path))
    check_has_text(path, len(lines), has_text=any(line.strip() for line in lines))
    return Lines(str(path), lines)


def _read_beside(path: Path, references: Sequence[Lines]) -> Lines:
    """The lines of a file, which must have as many as each reference."""
    lines = _read(path)
    _check_as_many(lines, references)
    return lines


def _check_as_many(lines: Lines, references: Sequence[Lines]) -> None:
    first = references[0]
    if len(lines.lines) != len(first.lines):
        raise ValueError(
            f"{lines.name} has {number_with_noun(len(lines.lines), 'line')}, {first.name} has "
            f"{len(first.lines):,}: line n of one must belong to line n of the other"
        )


def _as_json(
    system: Lines,
    references: Sequence[Lines],
    scores: "list[CorpusScore]",
    other: Lines | None,
    compared: "list[Comparison]",
) -> dict[str, object]:
    content: dict[str, object] = {
        "system": system.name,
        "references": [several.name for several in references],
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
    has_ter = any(score.name == "TER" for score in scores)
    note = " Of TER less is better, of all others more." if has_ter else ""
    console.print(f"{scores[0].sentences:,} sentences.{note}")
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
