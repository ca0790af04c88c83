"""What commands over many pairs share: where pairs are, who computes, and the bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from relakit.data.parallel_files import PairFormat, ParallelFiles
    from relakit.shards.engines import Engine
    from relakit.shards.run import Job, JobSummary, Writer

PAIRS, OUTPUT, COMPUTATION = "The pairs", "Output", "The computation"

Source = Annotated[
    Path,
    typer.Option(
        help="Sentences, one per line, plain, gzip or zstd; or, without --target, both sides.",
        rich_help_panel=PAIRS,
    ),
]
Target = Annotated[
    Path | None, typer.Option(help="Their translations, line by line.", rich_help_panel=PAIRS)
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        metavar="tsv|bars|tmx",
        help="How --source holds both sides: with tabs between them, with ||| between them, or as "
        "a translation memory. \\[default: by its name and first line]",
        rich_help_panel=PAIRS,
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        metavar="SOURCE,TARGET",
        help="The columns of a table, by number from 1 or by name.",
        rich_help_panel=PAIRS,
    ),
]
Languages = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE,TARGET",
        help="The languages in a translation memory. \\[default: the model's]",
        rich_help_panel=PAIRS,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Processes, with one thread each. \\[default: one for each processor, at most 8]",
        rich_help_panel=COMPUTATION,
    ),
]
Restart = Annotated[
    bool,
    typer.Option(
        "--restart",
        help="Begin again instead of going on with what an interrupted command left in "
        "OUTPUT.parts.",
        rich_help_panel=OUTPUT,
    ),
]


def pair_files(
    source: Path,
    target: Path | None,
    input_format: str | None,
    columns: str,
    languages: tuple[str, str] | None,
) -> "ParallelFiles":
    """Where the pairs are.

    Raises:
        OSError, ValueError: a file is missing, or options do not go together.
    """
    from relakit.data.compression import open_file
    from relakit.data.parallel_files import ParallelFiles, guess_format

    if target is not None and input_format is not None:
        raise ValueError("--input-format is for one file with both sides; leave it or --target out")
    for path in (source, target):
        if path is not None:
            open_file(path).close()
    format = cast("PairFormat", input_format or ("tsv" if target else guess_format(source)))
    return ParallelFiles(
        source, target, format=format, columns=two(columns, "--columns"), languages=languages
    )


def two(text: str, option: str) -> tuple[str, str]:
    """Both parts of what an option gives with a comma between them."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"{option} must be SOURCE,TARGET, got {text!r}")
    return parts[0], parts[1]


def run_with_bar(
    job: "Job",
    output: Path | None,
    engine: "Engine",
    *,
    restart: bool,
    write: "Writer | None" = None,
) -> "JobSummary":
    """Do a job, with a bar on a terminal; say if it goes on where another stopped."""
    from relakit.shards.run import run_job

    def on_resume(done: int, total: int) -> None:
        typer.echo(f"relakit: going on: {done:,} of {total:,} shards were done before", err=True)

    with _bar() as progress:
        return run_job(
            job,
            output,
            engine,
            restart=restart,
            progress=progress,
            on_resume=on_resume,
            write=write,
        )


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    console = Console(stderr=True)
    parts = (
        TextColumn("pairs"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, rate="")

        def progress(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.0f}/s"
            bar.update(task, completed=done, total=total, rate=rate)

        yield progress
