"""Attentions on tasks beyond translation: a language model, a classifier, a converted model.

python benchmarks/tasks.py --help
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Annotated, Final, cast

import typer

import runs
from relakit.files.writing import write_whole
from runs import HOW, OUTPUT, WHAT, ResultsFolder, split_names, split_numbers
from task_grid.page import make_page
from task_grid.plan import (
    ATTENTIONS,
    SPEED_ROUNDS,
    TASKS,
    Choice,
    Places,
    Task,
    TaskResult,
    TaskRun,
    is_done,
    read_results,
    write_result,
)

app = runs.new_app()

RESULTS: Final = Path("results/tasks")
MODELS: Final = Path("build/tasks")


@app.command()
def tasks(
    task: Annotated[str, typer.Option(help="Which tasks.", rich_help_panel=WHAT)] = ",".join(TASKS),
    attention: Annotated[
        str,
        typer.Option(
            help="Attentions, as named in examples/attention_choices.py.", rich_help_panel=WHAT
        ),
    ] = ",".join(ATTENTIONS),
    seeds: Annotated[
        str, typer.Option(help="Seeds; each run is repeated for each one.", rich_help_panel=WHAT)
    ] = ",".join(map(str, Choice.seeds)),
    speed: Annotated[
        bool,
        typer.Option(
            "--speed",
            help="Measure training speed instead, in turns; keep the machine otherwise idle.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    text: Annotated[
        list[Path] | None,
        typer.Option(
            help="Text file for the language models. Repeatable. \\[default: the standard library]",
            exists=True,
            dir_okay=False,
            rich_help_panel=WHAT,
        ),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            help="File of lines label<TAB>text for the classifier. "
            "\\[default: functions of the standard library]",
            exists=True,
            dir_okay=False,
            rich_help_panel=WHAT,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Updates of every run, to try things out. \\[default: each task's own]",
            min=1,
            rich_help_panel=HOW,
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Turns per attention for --speed.", min=1, rich_help_panel=HOW)
    ] = SPEED_ROUNDS,
    jobs: Annotated[
        int,
        typer.Option(help="Runs in parallel, one thread each.", min=1, rich_help_panel=HOW),
    ] = 1,
    out: ResultsFolder = RESULTS,
    models: Annotated[
        Path,
        typer.Option(help="Folder for the models to fine-tune.", rich_help_panel=OUTPUT),
    ] = MODELS,
) -> None:
    """Train small models with several attentions and seeds, and write a page about them.

    A run that has a result file is not repeated: stop at any time, and run the command again to
    continue. See docs/tasks.md.
    """
    import task_grid.training_runs  # noqa: F401  # finds the examples

    choice = Choice(
        tasks=_known_tasks(split_names(task)),
        attentions=_known_attentions(split_names(attention)),
        seeds=split_numbers(seeds, "--seeds"),
        steps=steps,
    )
    places = Places(models=models, text=tuple(text or ()), labelled=labelled)
    if speed:
        _measure_speed(choice, places, out, rounds)
    else:
        _run_all(choice, places, out, jobs)
    typer.echo(f"The page is {_write_page(out)}.", err=True)


def _write_page(out: Path) -> Path:
    """Write the page; done after every run, so that it is up to date whenever you stop."""
    from task_grid.speed import read_speed

    page = out.parent / f"{out.name}.md"
    write_whole(page, make_page(read_results(out), read_speed(out)).encode("utf-8"))
    return page


def _known_tasks(names: Sequence[str]) -> tuple[Task, ...]:
    _check_known("--task", names, TASKS)
    return cast("tuple[Task, ...]", tuple(names))


def _known_attentions(names: Sequence[str]) -> tuple[str, ...]:
    from attention_choices import CHOICES

    _check_known("--attention", names, list(CHOICES))
    return tuple(names)


def _check_known(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{option}: there is no {name!r}; choose from {', '.join(known)}")


def _measure_speed(choice: Choice, places: Places, out: Path, rounds: int) -> None:
    from task_grid.speed import BASELINE, FROM_SCRATCH, SpeedSettings, measure_speed

    if not choice.seeds:
        raise ValueError("--speed needs a seed, got none in --seeds")
    if BASELINE not in choice.attentions:
        raise ValueError(f"--speed compares with {BASELINE}; add it to --attention")
    settings = SpeedSettings(
        attentions=choice.attentions,
        tasks=tuple(name for name in choice.tasks if name in FROM_SCRATCH),
        rounds=rounds,
        seed=choice.seeds[0],
    )
    measure_speed(settings, places, out, lambda message: typer.echo(message, err=True))


def _run_all(choice: Choice, places: Places, out: Path, jobs: int) -> None:
    waves = [[run for run in wave if not is_done(out, run)] for wave in choice.waves()]
    total, done = sum(map(len, waves)), 0
    typer.echo(f"{total} runs to do.", err=True)
    for wave in waves:
        for result in _results(wave, places, jobs):
            write_result(out, result)
            _write_page(out)
            done += 1
            typer.echo(f"{done} of {total}: {_in_words(result)}", err=True)


def _results(wave: Sequence[TaskRun], places: Places, jobs: int) -> Iterator[TaskResult]:
    """Results in the order in which runs finish."""
    from task_grid.training_runs import run_task

    if jobs == 1:
        yield from (run_task(run, places) for run in wave)
        return
    # torch's threads do not work in a forked process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for future in as_completed([pool.submit(run_task, run, places) for run in wave]):
            yield future.result()


def _in_words(result: TaskResult) -> str:
    name = "accuracy" if "accuracy" in result.numbers else "loss"
    return (
        f"{result.run.name}: {name} {result.numbers[name]:.3f} after {result.run.steps:,} updates, "
        f"{result.cpu_seconds:.0f} CPU seconds"
    )


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    runs.run_app(app)
