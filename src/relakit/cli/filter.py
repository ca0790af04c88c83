"""`relakit filter`: a corpus without the pairs that are not translations of each other."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relakit.clean.settings import (
    CALIBRATION_PAIRS,
    CALIBRATION_SEED,
    EXPECTED_NOISE,
    THRESHOLD,
)
from relakit.cli.completion import complete_model
from relakit.cli.consoles import messages_console
from relakit.cli.pair_job import (
    COLUMNS,
    ENGINE,
    OUTPUT,
    Columns,
    EngineName,
    InputFormat,
    Languages,
    Restart,
    ShardPairs,
    Source,
    Target,
    Timeout,
    Workers,
    chosen_engine,
    pair_files,
    pair_languages,
    say_it_resumes,
    stoppable,
)
from relakit.cli.score_options import (
    SCORES,
    BatchTokens,
    LanguagesFrom,
    MaxTokens,
    Reverse,
    learned_languages,
)
from relakit.cli.stage_bar import stage_bar
from relakit.files.output_paths import refuse_inputs
from relakit.shards.cutting import SHARD_PAIRS

if TYPE_CHECKING:
    from relakit.clean.filter import FilterHooks, FilterResult
    from relakit.clean.filter_settings import CalibrationSettings
    from relakit.data.parallel_files import ParallelFiles

CUT, CALIBRATING = "Which pairs are kept", "The calibration"
_MOST_REASONS = 4


def filter(
    source: Source,
    output: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where to write the kept pairs, the rejected pairs with reasons, and a report.",
            rich_help_panel=OUTPUT,
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A directory of a model from source to target; with --scores, only for "
            "--calibrate.",
            show_default=False,
            autocompletion=complete_model,
        ),
    ] = None,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    keep: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Keep this share of the pairs that can be ranked, the best ones, such as 0.8. "
            "Pairs with a blank side cannot be ranked.",
            rich_help_panel=CUT,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Keep pairs that are at least this good by the column --by. \\[default of a "
            f"probability: {THRESHOLD:g}]",
            rich_help_panel=CUT,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What to rank pairs by: a column of their scores, or probability. \\[default: "
            "probability if calibrated, else dual_cross_entropy with --reverse, else "
            "cross_entropy]",
            rich_help_panel=CUT,
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Give each pair the probability that it is clean, learned from noise planted in "
            "clean pairs.",
            rich_help_panel=CALIBRATING,
        ),
    ] = False,
    clean: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Pairs that are known to be clean, to calibrate on. \\[default: pairs of the "
            "corpus itself that could be clean]",
            rich_help_panel=CALIBRATING,
        ),
    ] = None,
    calibration_pairs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of clean pairs to calibrate on, at most. \\[default: "
            f"{CALIBRATION_PAIRS}]",
            rich_help_panel=CALIBRATING,
        ),
    ] = None,
    expected_noise: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="The share of the corpus that you expect to be noise; it moves all probabilities "
            f"up or down. \\[default: {EXPECTED_NOISE:g}]",
            rich_help_panel=CALIBRATING,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help=f"Different seeds calibrate on other pairs. \\[default: {CALIBRATION_SEED}]",
            rich_help_panel=CALIBRATING,
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A calibration.json that was fitted before, to use instead of --calibrate.",
            rich_help_panel=CALIBRATING,
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table that relakit score wrote for this text, instead of scoring it.",
            rich_help_panel=SCORES,
        ),
    ] = None,
    reverse: Reverse = None,
    languages_from: LanguagesFrom = None,
    max_tokens: MaxTokens = None,
    compress: Annotated[
        bool,
        typer.Option(
            "--compress", help="Compress the kept pairs with gzip.", rich_help_panel=OUTPUT
        ),
    ] = False,
    workers: Workers = None,
    engine: EngineName = ENGINE,
    timeout: Timeout = None,
    shard_pairs: ShardPairs = SHARD_PAIRS,
    batch_tokens: BatchTokens = None,
    restart: Restart = False,
) -> None:
    """Keep the good pairs of a corpus: the best share, by a threshold, or by a probability.

    Pairs are scored as in relakit score. FOLDER gets the kept pairs, the rejected pairs with a
    reason for each, all scores, and report.html. docs/cleaning.md is the guide.

    If the command is stopped, run it again to resume. With a different cut, it reuses the scores.
    """
    from relakit.clean.filter import FilterJob
    from relakit.clean.filter_files import has_scores
    from relakit.clean.filter_settings import FilterSettings
    from relakit.clean.score import ScoreSettings
    from relakit.model.description import ModelAbout, read_description

    for_scoring: dict[str, object] = {
        "--reverse": reverse,
        "--languages-from": languages_from,
        "--max-tokens": max_tokens,
        "--batch-tokens": batch_tokens,
        "--workers": workers,
        "--engine": None if engine == ENGINE else engine,
        "--timeout": timeout,
        "--shard-pairs": None if shard_pairs == SHARD_PAIRS else shard_pairs,
        "--restart": restart or None,
    }
    if model is None and scores is not None:
        _refuse(for_scoring, "is about scoring pairs, which needs a MODEL")
    calibrating: dict[str, object] = {
        "--clean": clean,
        "--calibration-pairs": calibration_pairs,
        "--expected-noise": expected_noise,
        "--seed": seed,
    }
    if not calibrate:
        _refuse(calibrating, "is for --calibrate")
    _refuse_inputs(output, source, target, model, for_scoring | calibrating, scores, calibration)
    about = ModelAbout() if model is None else read_description(model).about
    both_languages = pair_languages(languages, about)
    settings = FilterSettings(
        score=None
        if model is None
        else ScoreSettings(
            model=model,
            reverse=reverse,
            languages=learned_languages(languages_from),
            max_tokens=max_tokens,
            **_given(batch_tokens=batch_tokens),
        ),
        scores=scores,
        keep=keep,
        threshold=threshold,
        by=by,
        calibrate=_calibration(clean, calibration_pairs, seed, expected_noise)
        if calibrate
        else None,
        calibration=calibration,
        languages=both_languages,
        compress=compress,
    )
    pairs = pair_files(source, target, input_format, columns, both_languages)
    job = FilterJob(pairs, settings, shard_pairs=shard_pairs)
    runner = chosen_engine(engine, workers, timeout)
    with stoppable(lambda: has_scores(output), restart=restart), _hooks() as hooks:
        result = job.run(output, runner, restart=restart, hooks=hooks)
    for line in summary_lines(result):
        typer.echo(f"relakit: {line}", err=True)


def _calibration(
    clean: tuple[Path, Path] | None,
    pairs: int | None,
    seed: int | None,
    expected_noise: float | None,
) -> "CalibrationSettings":
    from relakit.clean.filter_settings import CalibrationSettings

    return CalibrationSettings(
        clean=None if clean is None else _clean_files(*clean),
        **_given(pairs=pairs, seed=seed, expected_noise=expected_noise),
    )


def _clean_files(source: Path, target: Path) -> "ParallelFiles":
    from relakit.data.parallel_files import ParallelFiles
    from relakit.files.reading import open_file
    from relakit.shards.cutting import check_read_twice

    for path in (source, target):
        check_read_twice(path)
        open_file(path).close()
    return ParallelFiles(source, target)


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given; the others keep their defaults."""
    return {name: value for name, value in options.items() if value is not None}


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} {why}; leave it out, or give that too")


def _refuse_inputs(
    output: Path,
    source: Path,
    target: Path | None,
    model: Path | None,
    others: Mapping[str, object],
    scores: Path | None,
    calibration: Path | None,
) -> None:
    inputs: dict[str, Any] = {"--source": source, "--target": target, "MODEL": model}
    names = ("--reverse", "--languages-from", "--clean")
    inputs |= {name: others[name] for name in names}
    # Scores and calibrations may be those that an earlier command left in the same folder.
    for name, path in (("--scores", scores), ("--calibration", calibration)):
        if path is not None and not _stays(path, output):
            inputs[name] = path
    refuse_inputs("--output", output, inputs)


def _stays(path: Path, folder: Path) -> bool:
    from relakit.clean.filter_files import CALIBRATION, SCORES

    return path.name in (SCORES, CALIBRATION) and path.parent.resolve() == folder.resolve()


@contextmanager
def _hooks() -> Iterator["FilterHooks"]:
    """A bar for scoring, and one for the rest; they do not run at the same time."""
    from relakit.clean.filter import FilterHooks

    def note(text: str) -> None:
        typer.echo(f"relakit: {text}", err=True)

    with stage_bar(messages_console()) as on_stage:

        def progress(done: int, total: int) -> None:
            on_stage("scoring", done, total)

        yield FilterHooks(progress, say_it_resumes, on_stage, note)


def summary_lines(result: "FilterResult") -> Iterator[str]:
    """What the user is told at the end."""
    counts = result.counts
    share = counts.kept / counts.pairs
    yield f"kept {counts.kept:,} of {counts.pairs:,} pairs ({share:.1%}): {result.cut}"
    if counts.reasons:
        reasons = counts.reasons.most_common(_MOST_REASONS)
        listed = ", ".join(f"{reason} {count:,}" for reason, count in reasons)
        others = counts.rejected - sum(count for _, count in reasons)
        listed += f", and {others:,} for other reasons" if others else ""
        yield f"rejected {counts.rejected:,}: {listed}"
    yield f"the pairs are in {result.folder}, the report is {result.page}"
