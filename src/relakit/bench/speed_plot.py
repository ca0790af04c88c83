"""Plots of training and decoding speed: bars per contender, lines over the source length."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from relakit.bench.plot import why_no_plot
from relakit.bench.speed_results import SpeedReport
from relakit.bench.timing import Spread
from relakit.bench.turns import CaseTurns, Contender
from relakit.report.figure_files import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = (".svg", ".png", ".pdf")
COLOURS: Final = {
    "softmax": "#4c72b0",
    "rela-g": "#d1495b",
    "sparsemax": "#55a868",
    "entmax15": "#8172b3",
}
OTHER_COLOUR: Final = "#937860"
PEER_COLOUR: Final = "0.65"
LINE_STYLES: Final = {"fp32": "-", "bf16": "--", "int8": ":"}


def check_plot_path(path: Path) -> None:
    """Raise ValueError where no plot can be written to, before anything is measured."""
    if path.suffix not in FORMATS:
        raise ValueError(f"cannot draw into {path}: its name must end in {', '.join(FORMATS)}")
    problem = why_no_plot()
    if problem is not None:
        raise ValueError(problem)


def write_plot(report: SpeedReport, path: Path) -> None:
    """Draw a report into a file."""
    check_plot_path(path)
    save_figure(draw_report(report), path)


def draw_report(report: SpeedReport) -> "Figure":
    """A panel of bars for every case, and one of lines for the groups by source length."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    bars = [case for case in report.cases if case.rounds and case.source_length is None]
    groups = [case for case in report.cases if case.rounds and case.source_length is not None]
    panels = len(bars) + bool(groups)
    if not panels:
        raise ValueError("nothing to draw: no round was measured")
    height = max(2.6, 0.28 * len(report.contenders) + 1.4)
    with rc_context({"font.size": 9.5, "axes.titlesize": 10.5}):
        figure = Figure(figsize=(5.2 * panels, height), layout="constrained")
        axes = list(figure.subplots(1, panels, squeeze=False).flatten())
        for ax, case in zip(axes, bars, strict=False):
            _draw_bars(ax, report, case)
        if groups:
            _draw_lines(axes[-1], report, groups)
        threads = report.settings.threads
        caption = f"{report.machine.cpu}, {threads} thread{'s' if threads > 1 else ''}"
        title = "Training speed" if report.benchmark == "train" else "Translation speed"
        figure.suptitle(f"{title}\n{caption}", fontsize=11)
    return figure


def _draw_bars(ax: "Axes", report: SpeedReport, case: CaseTurns) -> None:
    """The first contender on top; with whiskers from quartile to quartile."""
    measured: list[tuple[Contender, Spread]] = [
        (speed.contender, speed.tokens_per_second)
        for speed in report.speeds(case)
        if speed.tokens_per_second is not None
    ][::-1]
    medians = [values.median for _, values in measured]
    whiskers = [
        [values.median - values.lower for _, values in measured],
        [values.upper - values.median for _, values in measured],
    ]
    labels = [contender.label for contender, _ in measured]
    ax.barh(
        labels,
        medians,
        xerr=whiskers,
        color=[_colour(contender) for contender, _ in measured],
        error_kw={"linewidth": 1.0},
    )
    for number, (_, values) in enumerate(measured):
        ax.annotate(f"  {values.median:,.0f}", (values.upper, number), va="center", fontsize=8.5)
    ax.margins(x=0.15)
    ax.set_title(case.case, loc="left")
    ax.set_xlabel("target tokens per second")
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_lines(ax: "Axes", report: SpeedReport, groups: list[CaseTurns]) -> None:
    """The speed-up over softmax: Figure 2 of the paper."""
    ax.axhline(1, color="black", linewidth=1.2, zorder=1)
    for contender in report.contenders:
        if not contender.is_ours or contender.attention == "softmax":
            continue
        points = []
        for case in groups:
            [speed] = [s for s in report.speeds(case) if s.contender == contender]
            if speed.ratio is not None and speed.source_length is not None:
                points.append((speed.source_length, speed.ratio.median))
        ax.plot(
            [length for length, _ in points],
            [ratio for _, ratio in points],
            color=_colour(contender),
            linestyle=LINE_STYLES.get(contender.precision, "-"),
            marker="o",
            markersize=4,
            linewidth=1.6,
            label=contender.label,
        )
    ax.set_title("one sentence at a time", loc="left")
    ax.set_xlabel("source length (tokens)")
    ax.set_ylabel("speed-up over softmax")
    ax.yaxis.set_major_formatter("{x:g}×")
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)


def _colour(contender: Contender) -> str:
    if not contender.is_ours:
        return PEER_COLOUR
    return COLOURS.get(contender.attention, OTHER_COLOUR)
