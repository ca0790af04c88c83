"""What `relakit bench train` and `bench decode` have in common: options, output, progress."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from relakit.bench.speed_results import SpeedReport
    from relakit.bench.speed_settings import SpeedSettings

WHAT, HOW, OUTPUT = "What to measure", "How to measure", "Output"
WIDTH: Final = 150
"""Columns that a table may take; in fewer, numbers would be cut."""

Threads = Annotated[int, typer.Option(help="CPU threads of everyone.", rich_help_panel=HOW)]
Seed = Annotated[int, typer.Option(help="Of data and weights.", rich_help_panel=HOW)]
PeerPython = Annotated[
    Path,
    typer.Option(help="The Python that the peers are installed for.", rich_help_panel=WHAT),
]
PeerScripts = Annotated[
    Path, typer.Option(help="The folder of the peers' worker scripts.", rich_help_panel=WHAT)
]
Corpus = Annotated[
    Path | None,
    typer.Option(
        help="A folder that `relakit prepare` wrote. \\[default: a generated corpus]",
        file_okay=False,
        rich_help_panel=WHAT,
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="For every turn, with settings and machine; written after every round.",
        dir_okay=False,
        rich_help_panel=OUTPUT,
    ),
]
CsvFile = Annotated[
    Path | None,
    typer.Option("--csv", help="For the table.", dir_okay=False, rich_help_panel=OUTPUT),
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", help="For the plot: svg, png, pdf.", rich_help_panel=OUTPUT),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with an interrupted run: keep the rounds that --json holds.",
        rich_help_panel=OUTPUT,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go."""

    json: Path | None
    csv: Path | None
    plot: Path | None
    resume: bool


def split_names(text: str) -> tuple[str, ...]:
    """``"a,b"`` to a and b; "none" or nothing to no names."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return () if names == ("none",) else names


def split_numbers(text: str, option: str) -> tuple[int, ...]:
    """``"64,1"`` to numbers."""
    try:
        return tuple(int(name) for name in split_names(text))
    except ValueError:
        raise ValueError(f"{option} must be numbers such as 64,1, got {text!r}") from None


def given_or(given: int | None, quick: int, usual: int) -> int:
    """An option's value; where it is not given that of --quick (0 without it), or the usual."""
    return given if given is not None else quick or usual


def measure(
    benchmark: str,
    settings: "SpeedSettings",
    output: Output,
    run: "Callable[[SpeedReport, Callable[[], None], Callable[[str], None]], None]",
) -> None:
    """Run a benchmark, show how far it is, keep what it measures, and print it.

    ``run`` gets the report, what to call when it has grown, and what to tell progress.
    """
    report = _open_report(benchmark, settings, output)
    messages = Console(stderr=True, highlight=False)

    def save() -> None:
        _write(report, output)

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        task = progress.add_task("")

        def tell(text: str) -> None:
            progress.update(task, description=text)
            if not messages.is_terminal:
                messages.print(text)

        run(report, save, tell)
    _write(report, output)
    _print(report, messages, output)


def _open_report(benchmark: str, settings: "SpeedSettings", output: Output) -> "SpeedReport":
    from relakit.bench.machine import describe_machine
    from relakit.bench.speed_plot import check_plot_path
    from relakit.bench.speed_results import SpeedReport, read_turns

    if output.plot is not None:
        check_plot_path(output.plot)
    machine = describe_machine()
    report = SpeedReport(benchmark=benchmark, settings=settings, machine=machine)
    if output.resume:
        if output.json is None:
            raise ValueError("--resume needs --json, the file of the run to go on with")
        report.cases = read_turns(output.json, benchmark, settings, machine)
    elif output.json is not None and output.json.exists():
        raise ValueError(
            f"{output.json} is there already: --resume goes on with it; else choose another --json"
        )
    return report


def _write(report: "SpeedReport", output: Output) -> None:
    from relakit.bench.speed_results import write_csv, write_json

    if output.json is not None:
        write_json(output.json, report)
    if output.csv is not None:
        write_csv(output.csv, report)


def _print(report: "SpeedReport", messages: Console, output: Output) -> None:
    from relakit.bench.speed_plot import write_plot
    from relakit.bench.speed_tables import print_report

    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    print_report(report, console)
    if output.plot is not None and any(case.rounds for case in report.cases):
        write_plot(report, output.plot)
    written = [str(path) for path in (output.json, output.csv, output.plot) if path is not None]
    if written:
        messages.print(f"Results are in {', '.join(written)}.")
