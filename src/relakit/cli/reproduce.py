"""`relakit reproduce`: rerun the experiments behind the paper's tables and figures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.cli.consoles import messages_console, results_console
from relakit.train.run_folder import RUNS

if TYPE_CHECKING:
    from relakit.reproduce.jobs import Job
    from relakit.reproduce.places import Places
    from relakit.reproduce.plan import Plan, Step

WHAT, WHERE, HOW = "What", "Where", "How"
JOBS = 2
SHOWN_RUNS = 60


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="table1 to table6, figure2 to figure10, stability, claims or all.",
            show_default=False,
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            metavar="tiny|deep|paper",
            help="tiny: 3+3 layers on Multi30k, minutes for each run. deep: 6+6 narrow layers, "
            "hours for each run. paper: the paper's size and data, for GPUs.",
            rich_help_panel=WHAT,
        ),
    ] = "tiny",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Train every model with seeds 1 to N. \\[default: 3 seeds where a claim rests "
            "on them, else 1 or 2]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Where the corpora are, each in its own folder; docs/reproduction.md lists them.",
            file_okay=False,
            rich_help_panel=WHERE,
        ),
    ] = Path("data"),
    runs: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where models are trained and kept.", rich_help_panel=WHERE
        ),
    ] = Path(RUNS) / "reproduction",
    results: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Result files, one for each run, and README.md, the page made from them.",
            rich_help_panel=WHERE,
        ),
    ] = Path("results"),
    jobs: Annotated[
        int,
        typer.Option(
            min=1, help="How many runs to do in parallel; each takes one core.", rich_help_panel=HOW
        ),
    ] = JOBS,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be done.", rich_help_panel=HOW),
    ] = False,
) -> None:
    """Rerun the paper's experiments, and compare the results with what the paper reports.

    Lists the training runs that the tables and figures need, trains those that are missing (two at
    a time), analyzes them, and writes a page with every table and a verdict on each claim. Tables
    share runs. If it is interrupted or killed, run it again to resume where it stopped; once
    everything is there, it trains nothing. Runs that another process is making are left to that
    process.

    Exit status: 0 done, 1 something is missing or went wrong, 129, 130 or 143 stopped by a signal.
    """
    from relakit.reproduce.corpora import known_scale
    from relakit.reproduce.studies import GROUPS, chosen_studies, runs_of, scales_of

    chosen_scale = known_scale(scale)
    studies = chosen_studies(names)
    console = results_console()
    for study in studies if not set(names) & set(GROUPS) else ():
        if study.needs and chosen_scale not in study.needs:
            raise ValueError(
                f"{study.name} is not made at the scale {scale}; choose "
                f"{' or '.join(scales_of(study))}"
            )
    from relakit.reproduce.benchmarks import missing_benchmarks, run_benchmark
    from relakit.reproduce.places import Places
    from relakit.reproduce.plan import make_plan

    places = Places(data=data, runs=runs, results=results)
    plan = make_plan(runs_of(studies, chosen_scale, seeds), places)
    _print_plan(plan, jobs, console)
    benchmarks = missing_benchmarks(studies, results)
    for benchmark in benchmarks:
        console.print(f"to measure: {results / benchmark.result}, a few minutes", soft_wrap=True)
    if dry_run:
        return
    impossible = _impossible(plan)
    if impossible and all(step.state == "impossible" for step in plan.steps):
        raise ValueError(next(iter(impossible)))
    problems: dict[str, str] = {}
    if plan.open:
        problems |= _run(plan.open, places, jobs, console)
    for benchmark in benchmarks:  # last, as nothing else may run while something is timed
        busy = places.at_work()
        if busy is None:
            problem = run_benchmark(benchmark, results)
        else:
            problem = f"nothing can be timed while a run is at work in {busy}; try again afterwards"
        if problem is not None:
            problems[str(benchmark.result)] = problem
    _write_page(places, console)
    if impossible or problems:
        _print_impossible(impossible, console)
        for name, problem in problems.items():
            console.print(f"{name}: {problem}", soft_wrap=True)
        raise typer.Exit(1)


def _impossible(plan: "Plan") -> Counter[str]:
    """Why runs cannot be made, and how many runs each reason applies to."""
    return Counter(step.note for step in plan.steps if step.state == "impossible")


def _print_impossible(reasons: Counter[str], console: Console) -> None:
    for reason, count in reasons.items():
        console.print(f"{number_with_noun(count, 'run')} impossible: {reason}", soft_wrap=True)


def _print_plan(plan: "Plan", jobs: int, console: Console) -> None:
    if not plan.steps:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)  # names are for copying
    table.add_column("state")
    table.add_column("minutes left", justify="right")
    table.add_column("", overflow="fold")
    shown = [
        step for step in plan.steps if step.state != "impossible" and (step.is_open or step.note)
    ]
    for step in shown[:SHOWN_RUNS]:
        minutes = f"{step.minutes:.0f}" if step.is_open else ""
        table.add_row(step.run.name, step.state, minutes, Text(step.note))
    if shown:
        console.print(table)
    if len(shown) > SHOWN_RUNS:
        console.print(f"... and {len(shown) - SHOWN_RUNS} more")
    impossible = _impossible(plan)
    _print_impossible(impossible, console)
    done = sum(step.state == "done" for step in plan.steps)
    text = f"{number_with_noun(len(plan.steps), 'run')}: {done} done, {len(plan.open)} to do"
    elsewhere = sum(step.state == "being made elsewhere" for step in plan.steps)
    if elsewhere:
        text += f", {elsewhere} being made elsewhere"
    if impossible:
        text += f", {impossible.total()} impossible"
    if plan.open:
        hours = plan.core_minutes / 60
        side_by_side = min(jobs, len(plan.open))
        text += f"; about {hours:.1f} core-hours, {hours / side_by_side:.1f} hours here"
    console.print(f"{text}.")


def _run(steps: "Sequence[Step]", places: "Places", jobs: int, console: Console) -> dict[str, str]:
    """Run the open steps; returns what went wrong."""
    from relakit.reproduce.jobs import run_steps

    problems = _prepare(steps, places)
    possible = [step for step in steps if step.run.name not in problems]
    with _job_view(places, console) as view:
        outcome = run_steps(possible, places, jobs=jobs, view=view)
    if outcome.signal is not None:
        _write_page(places, console)
        console.print("Stopped. The same command continues where it was.")
        raise typer.Exit(128 + outcome.signal)
    return problems | outcome.problems


def _prepare(steps: "Sequence[Step]", places: "Places") -> dict[str, str]:
    """Prepare the corpora, each once, before several runs need them at the same time.

    Returns:
        Why a run's corpus could not be prepared, by the run's name.
    """
    from relakit.cli.stage_bar import stage_bar

    reasons: dict[str, str | None] = {}  # by corpus: the steps have one scale
    problems: dict[str, str] = {}
    with stage_bar(messages_console()) as on_stage:
        for step in steps:
            if step.state == "to analyze":
                continue
            assert step.recipe is not None
            corpus = step.run.corpus
            if corpus not in reasons:
                try:
                    places.prepare(step.run, step.recipe, on_stage=on_stage)
                    reasons[corpus] = None
                except (OSError, ValueError) as error:
                    reasons[corpus] = f"its corpus could not be prepared: {error}"
            reason = reasons[corpus]
            if reason is not None:
                problems[step.run.name] = reason
    return problems


@contextmanager
def _job_view(places: "Places", console: Console) -> Iterator["_JobView"]:
    parts = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[about]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(
        *parts, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        yield _JobView(progress, places, console)


class _JobView:
    """A bar for each run in progress; a line and a new page for each run that has ended."""

    def __init__(self, progress: Progress, places: "Places", console: Console) -> None:
        self._progress = progress
        self._places = places
        self._console = console
        self._tasks: dict[str, TaskID] = {}

    def started(self, job: "Job") -> None:
        name = job.step.run.name
        self._tasks[name] = self._progress.add_task(name, total=1.0, about="")
        if not self._console.is_terminal:
            self._console.print(f"started {name}", soft_wrap=True)

    def finished(self, job: "Job", problem: str | None) -> None:
        text = "done" if problem is None else f"went wrong, {problem}"
        self._end(job, f"{text} ({job.seconds / 60:.0f} min)")
        _write_interim_page(self._places, self._console)

    def left_out(self, job: "Job") -> None:
        self._end(job, "being made elsewhere")

    def _end(self, job: "Job", how: str) -> None:
        name = job.step.run.name
        self._progress.remove_task(self._tasks.pop(name))
        self._console.print(f"{name}: {how}", soft_wrap=True)

    def tick(self, running: "Sequence[Job]") -> None:
        from relakit.reproduce.plan import latest_update, share_done

        if not self._console.is_terminal:
            return
        for job in running:
            step = job.step
            assert step.folder is not None
            assert step.recipe is not None
            entry = latest_update(step.folder)
            about = "" if entry is None else f"update {entry['update']:,}, loss {entry['loss']:.2f}"
            self._progress.update(
                self._tasks[step.run.name],
                completed=share_done(step.folder, step.recipe),
                about=about,
            )


def _write_interim_page(places: "Places", console: Console) -> None:
    """Like `_write_page`, but an error in the page does not stop the runs."""
    from relakit.reproduce.page import write_page

    try:
        write_page(places.results)
    except (OSError, ValueError) as error:
        console.print(f"The page could not be written: {error}", soft_wrap=True)


def _write_page(places: "Places", console: Console) -> None:
    from relakit.reproduce.page import write_page

    path = write_page(places.results)
    console.print(f"The page: {path}", soft_wrap=True)
