"""Results as tables for the terminal. Numbers are rounded here and nowhere else."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.bench.attention_results import AttentionSettings, CaseResult, Measurement
from relakit.bench.presets import RELA, SOFTMAXES
from relakit.bench.rounds import Spread

if TYPE_CHECKING:
    from relakit.bench.tune import Tuning

MEMORY_OF: Final = (RELA, "sdpa")
WIDTH: Final = 160
"""Width of the widest table; in a narrower terminal, numbers would be cut off."""
TIMES: Final = "time below it / time above it"


def print_by_mode(
    results: Sequence[CaseResult], settings: AttentionSettings, console: Console
) -> None:
    """Print one table per mode, with a row for every length and share of zeros."""
    for mode in dict.fromkeys(result.case.mode for result in results):
        chosen = [result for result in results if result.case.mode == mode]
        console.print(_table(chosen, f"{mode}, {_threads(settings)}", with_mode=False))
    _print_legend(console)
    _print_backends(results, console)
    print_notes(results, console)


def print_targets(
    results: Sequence[CaseResult], settings: AttentionSettings, console: Console
) -> None:
    """Print all cases in one table."""
    console.print(_table(results, f"targets, {_threads(settings)}", with_mode=True))
    _print_legend(console)
    _print_backends(results, console)
    print_notes(results, console)


def print_smallest(
    results: Sequence[CaseResult], settings: AttentionSettings, console: Console, shown: int = 10
) -> None:
    """Print the cases in which ReLA gains least over SDPA, the worst first."""
    compared: list[tuple[Spread, CaseResult]] = []
    for result in results:
        sdpa = result.of("sdpa")
        if sdpa is not None and sdpa.ratio is not None:
            compared.append((sdpa.ratio, result))
    compared.sort(key=lambda entry: entry[0].median)
    if not compared:
        console.print("No case with both ReLA and SDPA was measured.")
        return
    rows: list[list[str | Text]] = []
    for ratio, result in compared[:shown]:
        rela = result.of(RELA)
        backend = "" if rela is None else rela.backend or ""
        rows.append([_ratio(ratio), quartiles_text(ratio), backend, str(result.case)])
    title = f"smallest ratios of {len(compared)} cases, {_threads(settings)}"
    headings = ("SDPA / ReLA", "quartiles", "backend", "case")
    console.print(make_table(title, headings, rows, left=("backend", "case")))
    smallest, result = compared[0]
    slower = sum(ratio.median < 1 for ratio, _ in compared)
    console.print(
        f"Smallest ratio of SDPA's time to ReLA's: {smallest.median:.2f} ({result.case}).\n"
        f"ReLA was slower than SDPA in {slower} of {len(compared)} cases."
    )
    print_notes(results, console)


def print_tuning(tuning: "Tuning", cpu: str, console: Console) -> None:
    """Print the speed of products, and the best thresholds next to the built-in ones."""
    title = f"products alone, {tuning.isa}, {cpu}"
    headings: tuple[str, ...] = ("size", "GFLOP/s", "of the peak", "torch.mm", "ratio")
    rows = [
        [
            f"{p.size} x {p.dim} x {p.size}",
            number_text(p.kernel),
            f"{p.kernel / tuning.peak:.0%}",
            number_text(p.torch),
            number_text(p.kernel / p.torch),
        ]
        for p in tuning.products
    ]
    console.print(make_table(title, headings, rows))
    console.print(f"Peak of multiplying and adding in registers: {tuning.peak:.1f} GFLOP/s.")
    rows = []
    for comparison in tuning.comparisons:
        built_in = getattr(tuning.built_in, comparison.threshold)
        best = getattr(tuning.best, comparison.threshold)
        points = zip(comparison.places, comparison.ratios, strict=True)
        rows.append(
            [
                comparison.threshold,
                f"{built_in:g}" if isinstance(built_in, int) else f"{built_in:.2f}",
                f"{best:g}" if isinstance(best, int) else f"{best:.2f}",
                ", ".join(f"{place:g}: {ratio:.2f}" for place, ratio in points),
            ]
        )
    headings = ("threshold", "built in", "best here", TIMES)
    console.print(make_table("thresholds", headings, rows, left=("threshold", TIMES)))
    console.print(
        "dense_forward, dense_backward: the share of non-zeros up to which sums run along lists.\n"
        "most_candidates: the share up to which scores are screened. least_to_screen: the length\n"
        "from which on they are. most_to_fetch: with a single query, the share of non-zeros up to\n"
        "which values are fetched ahead of time. The last column has the time of the way that is\n"
        "used below a threshold (from it on, for the length) divided by the other's, by share or\n"
        "length.\n"
        "Thresholds are built in (native/attention/thresholds.h); nothing was changed."
    )


def print_notes(results: Sequence[CaseResult], console: Console) -> None:
    """Print why numbers are missing: each reason once, with the cases it applies to."""
    notes: dict[str, list[str]] = {}
    for result in results:
        for measurement in result.measurements:
            if measurement.note:
                place = f"{result.case.mode} {result.case.length}"
                places = notes.setdefault(f"{measurement.contender}: {measurement.note}", [])
                if place not in places:
                    places.append(place)
    for note, places in notes.items():
        console.print(Text(f"Note on {note} ({', '.join(places)})", style="yellow"))


def _table(results: Sequence[CaseResult], title: str, *, with_mode: bool) -> Table:
    contenders = list(
        dict.fromkeys(m.contender for r in results for m in r.measurements if m.contender != RELA)
    )
    has_softmax = any(name in contenders for name in SOFTMAXES)
    has_memory = any(m.peak_mib is not None for r in results for m in r.measurements)
    has_types = len({result.case.dtype for result in results}) > 1
    rows = []
    for result in results:
        case, rela = result.case, result.of(RELA) or Measurement(contender=RELA)
        row: dict[str, str | Text] = {"mode": case.mode} if with_mode else {}
        row |= {"length": f"{case.length}", "batch": f"{case.batch}", "zeros": _zeros(result)}
        if has_types:
            row["type"] = case.dtype
        if has_softmax:
            softmax = result.faster_softmax or Measurement(contender="none ran")
            row["softmax"] = _ratio(softmax.ratio)
            if with_mode:
                row["quartiles"] = quartiles_text(softmax.ratio)
        for name in contenders:
            found = result.of(name)
            row[name] = "" if found is None else _ratio(found.ratio)
        row["ms"] = _milliseconds(rela.seconds)
        row["GFLOP/s"] = number_text(rela.gflops)
        if has_memory:
            for name in MEMORY_OF:
                found = result.of(name)
                row[f"MiB {name}"] = number_text(found.peak_mib if found else None)
        rows.append(row)
    cells = [list(row.values()) for row in rows]
    return make_table(title, list(rows[0]), cells, left=("mode", "type"), bold=("softmax",))


def make_table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    left: Collection[str] = (),
    bold: Collection[str] = (),
    wrapped: Collection[str] = (),
    dim_rows: Collection[int] = (),
) -> Table:
    """A table of numbers, right-aligned except in the columns ``left``.

    If it gets too wide, the headings in ``wrapped`` take several lines.
    """
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(
            heading,
            justify="left" if heading in left else "right",
            style="bold" if heading in bold else None,
            no_wrap=heading not in wrapped,
            overflow="fold" if heading in wrapped else "ellipsis",
        )
    for number, row in enumerate(rows):
        table.add_row(*row, style="dim" if number in dim_rows else None)
    return table


def _threads(settings: AttentionSettings) -> str:
    return number_with_noun(settings.threads, "thread")


def _zeros(result: CaseResult) -> str:
    """The wanted and the measured share of zeros."""
    measured = result.zeros_measured
    return result.case.zeros_label + ("" if measured is None else f" ({measured:.1f})")


def _print_backends(results: Sequence[CaseResult], console: Console) -> None:
    found = Counter(m.backend for r in results if (m := r.of(RELA)) and m.backend is not None)
    if len(found) == 1:
        console.print(f"ReLA ran on the backend {next(iter(found))}.")
    elif found:
        parts = [f"{name} in {count}" for name, count in found.items()]
        console.print(f"ReLA's backend by number of cases: {', '.join(parts)}.")


def _print_legend(console: Console) -> None:
    console.print(
        "softmax, sdpa and so on: their time divided by ReLA's; above 1 ReLA is faster.\n"
        "softmax: the faster of sdpa and bmm-softmax. zeros: wanted (measured, in percent).\n"
        "ms, GFLOP/s: ReLA's, by the operations of the dense formula. -: did not run.\n"
        "MiB: peak memory above the inputs. Medians of interleaved rounds."
    )


def _ratio(values: Spread | None) -> Text:
    return Text(
        median_text(values), style="red" if values is not None and values.median < 1 else ""
    )


def _milliseconds(seconds: Spread | None) -> str:
    if seconds is None:
        return "-"
    median = 1000 * seconds.median
    return f"{median:.3f}" if median < 1 else number_text(median)


def median_text(values: Spread | None) -> str:
    return number_text(None if values is None else values.median)


def quartiles_text(values: Spread | None) -> str:
    return "-" if values is None else f"{number_text(values.lower)} to {number_text(values.upper)}"


def number_text(value: float | None) -> str:
    """The number with about three digits; "-" for None."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
