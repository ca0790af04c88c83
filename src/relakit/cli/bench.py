"""`relakit bench`: measure attention, and plot the results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from relakit.bench.attention_results import CSV_NAME, AttentionSettings
from relakit.bench.cases import (
    DEFAULT,
    DTYPES,
    FULL,
    MODES,
    QUICK,
    TOKENS,
    Case,
    Grid,
    parse_zeros,
)
from relakit.bench.presets import CONTENDER_NAMES, PRESETS, RELA, Job, check_contenders
from relakit.cli.bench_tuning import print_tuning
from relakit.cli.consoles import messages_console, results_console
from relakit.known_names import known_name
from relakit.ops.options import BACKEND_NAMES, BackendName

if TYPE_CHECKING:
    from relakit.bench.attention_results import CaseResult

app = typer.Typer(
    no_args_is_help=True,
    help="Measure attention on this machine.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

SECONDS: Final = {
    "quick": 0.5,
    "default": AttentionSettings.seconds,
    "full": 2.0,
    "targets": 3.0,
    "never-slower": 0.3,
    "tune": 0.4,
}
"""Budget per case where neither --seconds nor --rounds is given."""

WHAT, HOW, OUTPUT = "What to measure", "How to measure", "Output"


@app.command()
def attention(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A small grid; takes about a minute.", rich_help_panel=WHAT),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="The whole grid: lengths 32 to 8192, five shares of zeros. Takes hours.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            help="A fixed list of cases. targets: the speeds that the kernels aim for. "
            "never-slower: many shapes and masks against SDPA, and the smallest ratio.",
            metavar="|".join(PRESETS),
            rich_help_panel=WHAT,
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Instead of other kinds of attention, compare the kernels' own methods. Prints "
            "the best thresholds between them on this processor, and the speed of its products; "
            "takes about a minute. Accepts --length (once), --heads, --dim, --batch and --dtype.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    mode: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(MODES)}. Repeatable.", rich_help_panel=WHAT),
    ] = None,
    length: Annotated[
        list[int] | None,
        typer.Option(help="Number of keys (and queries). Repeatable.", rich_help_panel=WHAT),
    ] = None,
    zeros: Annotated[
        list[str] | None,
        typer.Option(
            help="Percentage of weights that are 0, or demo for the tensors of a trained model. "
            "Repeatable.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    contender: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(CONTENDER_NAMES)}; rela is always included. Repeatable.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help=f"\\[default: {Case.dtype}]", metavar="|".join(DTYPES), rich_help_panel=WHAT
        ),
    ] = None,
    heads: Annotated[
        int | None, typer.Option(help=f"Heads. \\[default: {Case.heads}]", rich_help_panel=WHAT)
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            help=f"Features per head; demo has its own. \\[default: {Case.dim}]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help=f"\\[default: {TOKENS} / length; 1 for decode]", rich_help_panel=WHAT),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help="ReLA's backend: native, reference. \\[default: relakit's own choice]",
            rich_help_panel=HOW,
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(help="PyTorch threads.", rich_help_panel=HOW)
    ] = AttentionSettings.threads,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Rounds per case. \\[default: as many as --seconds allows]", rich_help_panel=HOW
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Budget per case for the timed rounds. \\[default: by the grid, "
            f"{min(SECONDS.values()):g} to {max(SECONDS.values()):g}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    memory: Annotated[
        bool | None,
        typer.Option(
            "--memory/--no-memory",
            help="Also measure peak memory, in separate processes. \\[default: yes, except for "
            "never-slower]",
            rich_help_panel=HOW,
        ),
    ] = None,
    memory_limit: Annotated[
        float,
        typer.Option(
            help="In GiB; contenders that would need more are left out.", rich_help_panel=HOW
        ),
    ] = AttentionSettings.memory_limit,
    seed: Annotated[
        int, typer.Option(help="Seed for the random tensors.", rich_help_panel=HOW)
    ] = AttentionSettings.seed,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for results.csv, results.json, plot.svg and plot.png.",
            file_okay=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue an interrupted run: skip the cases that --out already holds.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Time ReLA against softmax, sparsemax and 1.5-entmax attention.

    The contenders take turns, round after round, on the same tensors. Without --quick, --full or
    --preset, a medium grid is measured, which takes some minutes. --mode, --length and --zeros
    replace that part of a grid. docs/benchmark.md explains how to read the numbers.
    """
    if quick + full + tune + (preset is not None) > 1:
        raise ValueError(
            "--quick, --full, --preset and --tune exclude each other; give one of them"
        )
    chosen = "quick" if quick else "full" if full else "tune" if tune else preset or "default"
    shape = {"--dtype": dtype, "--heads": heads, "--dim": dim, "--batch": batch}
    cases = {"--mode": mode, "--length": length, "--zeros": zeros, "--contender": contender}
    if tune:
        given = {**cases, "--length": None, "--backend": backend, "--out": out}
        settings = AttentionSettings(
            threads=threads,
            rounds=rounds,
            seconds=SECONDS[chosen] if seconds is None else seconds,
            seed=seed,
        )
        return print_tuning(
            settings,
            length or [],
            heads=heads,
            dim=dim,
            batch=batch,
            dtype=dtype,
            given=given,
        )
    if preset is not None:
        jobs = _preset_jobs(preset, {**cases, **shape})
    else:
        default = {"quick": QUICK, "full": FULL}.get(chosen, DEFAULT)
        grid = Grid(
            modes=mode or default.modes,
            lengths=length or default.lengths,
            zeros=[parse_zeros(text) for text in zeros] if zeros else default.zeros,
        )
        made = grid.cases(
            dtype=dtype or Case.dtype,
            heads=Case.heads if heads is None else heads,
            dim=Case.dim if dim is None else dim,
            batch=batch,
        )
        names = tuple(contender or CONTENDER_NAMES)
        jobs = [Job(case, names) for case in dict.fromkeys(made)]

    check_contenders(name for job in jobs for name in job.contenders)
    if backend is not None:
        known_name("backend", backend, BACKEND_NAMES)
    settings = AttentionSettings(
        threads=threads,
        rounds=rounds,
        seconds=SECONDS[chosen] if seconds is None else seconds,
        backend=cast(BackendName | None, backend),
        memory=chosen != "never-slower" if memory is None else memory,
        memory_limit=memory_limit,
        seed=seed,
    )
    run(jobs, settings, chosen=chosen, out=out, resume=resume)


@app.command()
def plot(
    results: Annotated[Path, typer.Argument(help="A results.csv.", exists=True, dir_okay=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for the plots. \\[default: the CSV's]", file_okay=False),
    ] = None,
) -> None:
    """Redraw plot.svg and plot.png from a results.csv."""
    from relakit.bench.attention_results import read_csv
    from relakit.bench.plot import write_plots

    for path in write_plots(read_csv(results), results.parent if out is None else out):
        typer.echo(path)


def run(
    jobs: Sequence[Job], settings: AttentionSettings, *, chosen: str, out: Path | None, resume: bool
) -> None:
    """Measure all jobs, print the tables, and write the results if --out is given."""
    if resume and out is None:
        raise ValueError("--resume needs --out, the directory of the run to continue")
    if not resume and out is not None and (out / CSV_NAME).exists():
        raise ValueError(
            f"{out} holds results already; --resume continues them, or choose another --out"
        )
    from relakit.amounts import number_with_noun
    from relakit.bench.attention_results import read_finished, write_results
    from relakit.bench.attention_runs import run_jobs
    from relakit.bench.machine import describe_machine
    from relakit.bench.plot import why_no_plot, write_plots

    messages = messages_console()
    machine = describe_machine()
    results: list[CaseResult] = []
    if resume and out is not None:
        results = read_finished(out, settings, machine)
    remaining = [job for job in jobs if not _is_finished(job, results)]
    rerun = {job.case for job in remaining}
    results = [result for result in results if result.case not in rerun]
    _warn_without_native(settings, messages)

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=messages, transient=True) as progress:
        task = progress.add_task("", total=len(jobs), completed=len(jobs) - len(remaining))
        finished = run_jobs(remaining, settings)
        for job in remaining:
            progress.update(task, description=str(job.case))
            results.append(next(finished))
            progress.advance(task)
            if out is not None:
                write_results(out, results, settings, machine)

    order = {job.case: number for number, job in enumerate(jobs)}
    results.sort(key=lambda result: order.get(result.case, len(order)))
    _print(results, settings, chosen)
    _warn_about_reference(results, settings, messages)
    if out is not None:
        write_results(out, results, settings, machine)
        problem = why_no_plot()
        if problem is not None:
            messages.print(f"No plot: {problem}; then relakit bench plot {out / CSV_NAME}")
        elif any(r.softmax_ratio is not None and r.case.mask == "none" for r in results):
            threads = number_with_noun(settings.threads, "thread")
            write_plots(results, out, f"{machine.cpu}, {threads}")
        messages.print(f"Results are in {out}.")


def _print(results: "Sequence[CaseResult]", settings: AttentionSettings, chosen: str) -> None:
    from relakit.bench import tables

    console = results_console()
    console.width = max(console.width, tables.WIDTH)
    if chosen == "never-slower":
        tables.print_smallest(results, settings, console)
    elif chosen == "targets":
        tables.print_targets(results, settings, console)
    else:
        tables.print_by_mode(results, settings, console)


def _preset_jobs(preset: str, given: dict[str, object]) -> list[Job]:
    known_name("preset", preset, PRESETS)
    for option, value in given.items():
        if value not in (None, []):
            raise ValueError(f"--preset {preset} has its own cases; leave out {option}")
    return PRESETS[preset]()


def _is_finished(job: Job, results: "Sequence[CaseResult]") -> bool:
    return any(
        result.case == job.case
        and {*job.contenders} <= {measurement.contender for measurement in result.measurements}
        for result in results
    )


def _warn_without_native(settings: AttentionSettings, messages: Console) -> None:
    from relakit.bench.contenders import why_kernels_cannot_run

    reasons = why_kernels_cannot_run()
    if reasons and settings.backend is None:
        text = f"The native kernels cannot run here: {'; '.join(reasons)}."
        messages.print(Text(text, style="bold red"))


def _warn_about_reference(
    results: "Sequence[CaseResult]", settings: AttentionSettings, messages: Console
) -> None:
    """Warn about numbers from the reference backend: they say little about ReLA's speed."""
    from relakit.bench.contenders import why_kernels_cannot_run

    measured = [m for r in results if (m := r.of(RELA)) is not None and m.backend is not None]
    slow = sum(m.backend == "reference" for m in measured)
    if not slow or settings.backend == "reference":
        return
    hint = "" if why_kernels_cannot_run() else " The native kernels can run here: --backend native."
    text = (
        f"In {slow} of {len(measured)} cases ReLA ran on the reference backend, plain PyTorch that "
        f"is not made for speed: those numbers are not about the kernels.{hint}"
    )
    messages.print(Text(text, style="bold red"))
