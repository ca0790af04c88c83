"""`relakit bench attention --tune`: which thresholds are best on this processor."""

from collections.abc import Mapping, Sequence

from rich.progress import Progress, TextColumn, TimeElapsedColumn

from relakit.bench.attention_results import AttentionSettings
from relakit.bench.cases import Case
from relakit.cli.consoles import messages_console, results_console


def print_tuning(
    settings: AttentionSettings,
    lengths: Sequence[int],
    *,
    heads: int | None,
    dim: int | None,
    batch: int | None,
    dtype: str | None,
    given: Mapping[str, object],
) -> None:
    """Compare the kernels' methods, and print which thresholds are best here."""
    for option, value in given.items():
        if value not in (None, []):
            raise ValueError(f"--tune compares the kernels' own ways; leave out {option}")
    if len(lengths) > 1:
        raise ValueError(f"--tune takes one --length, got {', '.join(map(str, lengths))}")
    from relakit.bench import tables
    from relakit.bench.contenders import why_kernels_cannot_run
    from relakit.bench.machine import describe_machine
    from relakit.bench.tune import LENGTHS, tune

    reasons = why_kernels_cannot_run()
    if reasons:
        raise ValueError(f"the native kernels cannot run here: {'; '.join(reasons)}")
    with Progress(
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=messages_console(),
        transient=True,
    ) as progress:
        task = progress.add_task("")
        tuning = tune(
            settings,
            length=lengths[0] if lengths else LENGTHS[-2],
            heads=Case.heads if heads is None else heads,
            dim=Case.dim if dim is None else dim,
            batch=batch,
            dtype=Case.dtype if dtype is None else dtype,
            tell=lambda text: progress.update(task, description=text),
        )
    console = results_console()
    console.width = max(console.width, tables.WIDTH)
    tables.print_tuning(tuning, describe_machine().cpu, console)
