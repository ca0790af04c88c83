"""What commands over many pairs share: where pairs are, what computes, and the progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relakit.cli.completion import complete_model
from relakit.cli.consoles import messages_console
from relakit.cli.standard_streams import shows_bar
from relakit.data.parallel_files import PAIR_FORMATS, ParallelFiles, guess_format
from relakit.files.reading import open_file
from relakit.known_names import known_name
from relakit.shards.cutting import check_read_twice
from relakit.shards.engines.processes import MOST_BY_DEFAULT, Processes
from relakit.shards.engines.ray import PATIENCE, RayCluster

if TYPE_CHECKING:
    from relakit.model.description import ModelAbout
    from relakit.shards.engines import Engine
    from relakit.shards.run import Job, JobSummary, Writer

PAIRS, OUTPUT, COMPUTATION = "The pairs", "Output", "The computation"
ENGINE: Final = "processes"
ENGINES: Final = (ENGINE, "ray")
COLUMNS: Final = ",".join(ParallelFiles.columns)
STOPPED: Final = 130
"""Exit code after Ctrl-C."""

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model directory.",
        show_default=False,
        autocompletion=complete_model,
    ),
]
Source = Annotated[
    Path,
    typer.Option(
        help="Sentences, one per line, plain, gzip or zstd. Without --target, a file with both "
        "sides.",
        rich_help_panel=PAIRS,
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(help="The translations of --source, line by line.", rich_help_panel=PAIRS),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        metavar="tsv|bars|tmx",
        help="How --source holds both sides: separated by tabs, separated by |||, or as a "
        "translation memory. \\[default: judged by its name and first line]",
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
        help="Processes, each with one thread and a copy of the model. \\[default: one per "
        f"processor, at most {MOST_BY_DEFAULT}]",
        rich_help_panel=COMPUTATION,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        help="Compute with processes on this machine, or with actors on a Ray cluster, whose "
        "machines need the model under the same path.",
        rich_help_panel=COMPUTATION,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="With --engine ray: if nothing comes back for this long, the missing shards are "
        f"handed over again. It must be long enough for --shard-pairs. \\[default: {PATIENCE:g}]",
        rich_help_panel=COMPUTATION,
    ),
]
ShardPairs = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Pairs per shard. Finished shards are kept if the command is interrupted.",
        rich_help_panel=COMPUTATION,
    ),
]
Restart = Annotated[
    bool,
    typer.Option(
        "--restart",
        help="Start over instead of resuming from what an interrupted command left in "
        "OUTPUT.parts. To resume this command later, leave --restart out.",
        rich_help_panel=OUTPUT,
    ),
]


def pair_files(
    source: Path,
    target: Path | None,
    input_format: str | None,
    columns: str,
    languages: tuple[str, str] | None,
) -> ParallelFiles:
    """The files that hold the pairs, from the options.

    Raises:
        OSError, ValueError: a file is missing, or options do not go together.
    """
    given = None
    if input_format is not None:
        given = known_name("--input-format", input_format, PAIR_FORMATS)
    if target is not None and given is not None:
        raise ValueError("--input-format is for one file with both sides; leave it or --target out")
    both_columns = two(columns, "--columns")
    if target is not None and both_columns != ParallelFiles.columns:
        raise ValueError("--columns is for one file with both sides; leave it or --target out")
    for path in (source, target):
        if path is not None:
            check_read_twice(path)
            open_file(path).close()
    format = given or ("tsv" if target else guess_format(source))
    if format != "tsv" and both_columns != ParallelFiles.columns:
        raise ValueError(f"--columns {columns} is for tables, {source} is read as {format}")
    return ParallelFiles(source, target, format=format, columns=both_columns, languages=languages)


def two(text: str, option: str) -> tuple[str, str]:
    """The two parts of an option's value, which are separated by a comma."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"{option} must be SOURCE,TARGET, got {text!r}")
    return parts[0], parts[1]


def pair_languages(given: str | None, about: "ModelAbout") -> tuple[str, str] | None:
    """The languages of the pairs: those of --languages, or else the model's."""
    if given is not None:
        return two(given, "--languages")
    if about.source_language is None or about.target_language is None:
        return None
    return about.source_language, about.target_language


def chosen_engine(name: str, workers: int | None, timeout: float | None) -> "Engine":
    """The engine of this name; ValueError if there is none, or it cannot be used."""
    known_name("--engine", name, ENGINES)
    if name == "ray":
        return RayCluster(workers, patience=PATIENCE if timeout is None else timeout)
    if timeout is not None:
        raise ValueError(f"--timeout {timeout:g} is for --engine ray; leave it out")
    return Processes(workers)


def run_with_bar(
    job: "Job",
    output: Path | None,
    engine: "Engine",
    *,
    restart: bool,
    receipt: bool = False,
    write: "Writer | None" = None,
) -> "JobSummary":
    """Run a job, with a bar on a terminal; say what it resumes, and how to resume if stopped."""
    from relakit.shards.run import has_parts, keeps_parts, run_job

    def is_kept() -> bool:
        return output is not None and has_parts(output)

    kept = is_kept if keeps_parts(output) else None
    with stoppable(kept, restart=restart), pair_bar(output) as progress:
        return run_job(
            job,
            output,
            engine,
            restart=restart,
            receipt=receipt,
            progress=progress,
            on_resume=say_it_resumes,
            write=write,
        )


def say_it_resumes(done: int, total: int) -> None:
    """Say how many shards were done before."""
    typer.echo(f"relakit: resuming: {done:,} of {total:,} shards were done before", err=True)


@contextmanager
def stoppable(is_kept: Callable[[], bool] | None, *, restart: bool) -> Iterator[None]:
    """End the command on Ctrl-C, or when whoever reads its output closes the pipe.

    ``is_kept``: whether some of the work is kept; None: the output is a stream.
    """
    try:
        yield
    except KeyboardInterrupt:
        if is_kept is not None and is_kept():
            command = "the same command without --restart" if restart else "the same command"
            typer.echo(f"relakit: stopped; {command} resumes from here", err=True)
        elif is_kept is not None:
            typer.echo("relakit: stopped; nothing was done that could be kept", err=True)
        raise typer.Exit(STOPPED) from None
    except BrokenPipeError:
        if is_kept is not None:
            raise
        raise typer.Exit from None


@contextmanager
def pair_bar(output: Path | None) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; yields a function to call with the pairs done and the total.

    ``output``: the file that is being written; None: standard output.
    """
    console = messages_console()
    is_hidden = not shows_bar(console, output)
    parts = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*parts, console=console, transient=True, disable=is_hidden) as bar:
        task = bar.add_task("", total=None, rate="")

        def progress(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:,.0f} pairs/s"
            bar.update(task, completed=done, total=total, rate=rate)

        yield progress
