"""Running a benchmark from the command line: common options, progress, files, resuming."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from relakit.bench.plot import check_plot_path
from relakit.bench.results import Measured, Run, read_earlier, write_csv, write_json
from relakit.bench.rounds import CaseRounds, ContenderError
from relakit.bench.tables import WIDTH
from relakit.report.figure_files import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WHAT, HOW, OUTPUT = "What to measure", "How to measure", "Output"

Save = Callable[[], None]
Tell = Callable[[str], None]

ResultsFolder = Annotated[
    Path,
    typer.Option(
        help="Folder for the result files; the page is written beside it.",
        file_okay=False,
        rich_help_panel=OUTPUT,
    ),
]
Threads = Annotated[int, typer.Option(help="CPU threads per contender.", rich_help_panel=HOW)]
Seed = Annotated[int, typer.Option(help="Seed of data and weights.", rich_help_panel=HOW)]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="JSON file for all turns, settings and the machine; updated during the run.",
        dir_okay=False,
        rich_help_panel=OUTPUT,
    ),
]
CsvFile = Annotated[
    Path | None,
    typer.Option("--csv", help="CSV file for the table.", dir_okay=False, rich_help_panel=OUTPUT),
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", help="File for the plot: svg, png or pdf.", rich_help_panel=OUTPUT),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Resume an interrupted run: keep the rounds that --json already holds.",
        rich_help_panel=OUTPUT,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go."""

    json: Path | None = None
    csv: Path | None = None
    plot: Path | None = None
    resume: bool = False


class Report(Protocol):
    """What a run measures; it grows with every round."""

    @property
    def run(self) -> Run: ...

    cases: list[CaseRounds]
    about: dict[str, str]
    """Versions, by label."""

    def measured(self) -> Measured: ...


def split_names(text: str) -> tuple[str, ...]:
    """Split ``"a,b"`` into a and b; "none" or nothing gives no names."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return () if names == ("none",) else names


def split_numbers(text: str, option: str) -> tuple[int, ...]:
    """Split ``"64,1"`` into numbers."""
    try:
        return tuple(int(name) for name in split_names(text))
    except ValueError:
        raise ValueError(f"{option} must be numbers such as 64,1, got {text!r}") from None


def given_or(given: int | None, quick: int, usual: int) -> int:
    """An option's value; if not given, the value for --quick (0 without it), or the usual one."""
    return given if given is not None else quick or usual


def new_app() -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run_app(app: typer.Typer) -> None:
    """Run a benchmark. Errors in the user's input and failures of contenders end in a single line,
    as in `relakit`."""
    try:
        app()
    except subprocess.CalledProcessError as error:  # it has said what is wrong
        sys.exit(error.returncode if error.returncode > 0 else 128 - error.returncode)
    except (ContenderError, OSError, ValueError) as error:
        if os.environ.get("RELAKIT_DEBUG"):
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


def measure(
    report: Report,
    output: Output,
    work: Callable[[Save, Tell], None],
    *,
    show: Callable[[Console], None],
    draw: "Callable[[], Figure] | None" = None,
) -> None:
    """Measure, show progress, save what was measured after every round, and print it.

    Args:
        report: collects the measurements; gets the rounds of an earlier run when resuming.
        output: where the results go.
        work: measures; gets a function to call when the report has grown, and one for progress.
        show: prints the report.
        draw: draws the report, if there is a plot.
    """
    _open(report, output)
    messages = Console(stderr=True, highlight=False)

    def save() -> None:
        measured = report.measured()
        if output.json is not None:
            write_json(output.json, report.run, measured)
        if output.csv is not None:
            write_csv(output.csv, measured.rows)

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        task = progress.add_task("")

        def tell(text: str) -> None:
            progress.update(task, description=text)
            if not messages.is_terminal:
                messages.print(text)

        work(save, tell)
    save()
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    show(console)
    if output.plot is not None and draw is not None and any(case.rounds for case in report.cases):
        save_figure(draw(), output.plot)
    written = [str(path) for path in (output.json, output.csv, output.plot) if path is not None]
    if written:
        messages.print(f"Results are in {', '.join(written)}.")


def _open(report: Report, output: Output) -> None:
    """Check where results go, and load the results of an earlier run."""
    if output.plot is not None:
        check_plot_path(output.plot)
    if output.resume:
        if output.json is None:
            raise ValueError("--resume needs --json, the file of the run to continue")
        earlier = read_earlier(output.json, report.run)
        report.cases[:] = _with_earlier(report.cases, earlier.rounds)
        # For contenders that need not run again.
        report.about.update({known["label"]: known["about"] for known in earlier.contenders})
    elif output.json is not None and output.json.exists():
        raise ValueError(
            f"{output.json} exists already: --resume continues it; else choose another --json"
        )


def _with_earlier(cases: list[CaseRounds], earlier: list[CaseRounds]) -> list[CaseRounds]:
    """The earlier cases, followed by the new ones."""
    names = {case.case for case in earlier}
    return [*earlier, *(case for case in cases if case.case not in names)]
