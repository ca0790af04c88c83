"""Plots of training and decoding speed: bars per system, lines over the source length."""

from typing import TYPE_CHECKING, Final

from relakit.amounts import number_with_noun
from relakit.bench.plot import draw_bars, draw_line_at_one, label_ratios, plot_style
from relakit.bench.rounds import CaseRounds
from toolkits.report import SpeedReport
from toolkits.settings import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES: Final = {"train": "Training speed", "decode": "Translation speed"}
COLOURS: Final = {
    "softmax": "#4c72b0",
    "rela-g": "#d1495b",
    "sparsemax": "#55a868",
    "entmax15": "#8172b3",
}
OTHER_COLOUR: Final = "#937860"
PEER_COLOUR: Final = "0.65"
LINE_STYLES: Final = {"fp32": "-", "bf16": "--", "int8": ":"}


def draw_report(report: SpeedReport) -> "Figure":
    """A panel of bars for each case, and a panel of lines for the groups by source length."""
    from matplotlib.figure import Figure

    bars, groups = report.measured_cases(groups=False), report.measured_cases(groups=True)
    panels = len(bars) + bool(groups)
    if not panels:
        raise ValueError("nothing to draw: no round was measured")
    height = max(2.6, 0.28 * len(report.systems) + 1.4)
    with plot_style():
        figure = Figure(figsize=(5.2 * panels, height), layout="constrained")
        axes = list(figure.subplots(1, panels, squeeze=False).flatten())
        for ax, case in zip(axes, bars, strict=False):
            _draw_speeds(ax, report, case)
        if groups:
            _draw_speed_ups(axes[-1], report, groups)
        threads = number_with_noun(report.settings.threads, "thread")
        caption = f"{report.machine.cpu}, {threads}"
        figure.suptitle(f"{TITLES[report.benchmark]}\n{caption}", fontsize=11)
    return figure


def _draw_speeds(ax: "Axes", report: SpeedReport, case: CaseRounds) -> None:
    measured = [
        (speed.system, speed.tokens_per_second)
        for speed in report.speeds(case)
        if speed.tokens_per_second is not None
    ]
    draw_bars(
        ax,
        {system.label: values for system, values in measured},
        colours=[_colour(system) for system, _ in measured],
    )
    ax.set_title(case.case, loc="left")
    ax.set_xlabel("target tokens per second")


def _draw_speed_ups(ax: "Axes", report: SpeedReport, groups: list[CaseRounds]) -> None:
    """The speed-up over softmax: Figure 2 of the paper."""
    draw_line_at_one(ax)
    for system in report.systems:
        if not system.is_ours or system.attention == "softmax":
            continue
        points = []
        for case in groups:
            [speed] = [s for s in report.speeds(case) if s.system == system]
            if speed.ratio is not None and speed.source_length is not None:
                points.append((speed.source_length, speed.ratio.median))
        ax.plot(
            [length for length, _ in points],
            [ratio for _, ratio in points],
            color=_colour(system),
            linestyle=LINE_STYLES.get(system.precision, "-"),
            marker="o",
            markersize=4,
            linewidth=1.6,
            label=system.label,
        )
    ax.set_title("one sentence at a time", loc="left")
    ax.set_xlabel("source length (tokens)")
    ax.set_ylabel("speed-up over softmax")
    label_ratios(ax)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)


def _colour(system: System) -> str:
    if not system.is_ours:
        return PEER_COLOUR
    return COLOURS.get(system.attention, OTHER_COLOUR)
