"""Plots of ReLA's speed against softmax attention, and drawing functions for all benchmarks."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from relakit.bench.attention_results import CaseResult
from relakit.bench.cases import DEMO, MODES, Case
from relakit.bench.rounds import Spread
from relakit.report.figure_files import save_figure, why_no_figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

NAMES: Final = ("plot.svg", "plot.png")
FORMATS: Final = (".svg", ".png", ".pdf")
DEMO_COLOUR: Final = "#d1495b"
DEMO_LABEL: Final = "trained model"
COLUMNS: Final = 3
TITLES: Final = {
    "forward": "forward",
    "both": "forward + backward",
    "causal-forward": "causal, forward",
    "causal-both": "causal, forward + backward",
    "decode": "decode (one query)",
}

Lines: TypeAlias = dict[str, list[tuple[int, float]]]
"""Points (length, ratio) by share of zeros."""
Panels: TypeAlias = dict[tuple[str, str], Lines]
"""Lines by mode and dtype."""
Colours: TypeAlias = dict[str, tuple[float, float, float, float] | str]
"""Colours by share of zeros, in the order of the legend."""


def why_no_plot() -> str | None:
    """Why plots cannot be drawn here; None if they can."""
    return why_no_figures("plots", "bench")


def check_plot_path(path: Path) -> None:
    """Raise ValueError, before anything is measured, if no plot can be written to the path."""
    if path.suffix not in FORMATS:
        raise ValueError(f"cannot draw into {path}: its name must end in {', '.join(FORMATS)}")
    problem = why_no_plot()
    if problem is not None:
        raise ValueError(problem)


def plot_style() -> AbstractContextManager[None]:
    """A block that sets the text sizes of all plots while a figure is drawn."""
    from matplotlib import rc_context

    return rc_context({"font.size": 9.5, "axes.titlesize": 10.5})


def draw_bars(ax: "Axes", values: Mapping[str, Spread], *, colours: Sequence[str]) -> None:
    """Horizontal bars, the first on top, with whiskers from quartile to quartile."""
    bottom_up = list(values.values())[::-1]
    medians = [value.median for value in bottom_up]
    whiskers = [
        [value.median - value.lower for value in bottom_up],
        [value.upper - value.median for value in bottom_up],
    ]
    ax.barh(
        list(values)[::-1],
        medians,
        xerr=whiskers,
        color=colours[::-1],
        error_kw={"linewidth": 1.0},
    )
    for number, value in enumerate(bottom_up):
        ax.annotate(f"  {value.median:,.0f}", (value.upper, number), va="center", fontsize=8.5)
    ax.margins(x=0.15)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def draw_line_at_one(ax: "Axes") -> None:
    ax.axhline(1, color="black", linewidth=1.2, zorder=1)


def label_ratios(ax: "Axes") -> None:
    """Put ticks such as 2× on the vertical axis, and lines across."""
    ax.yaxis.set_major_formatter("{x:g}×")
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)


def write_plots(results: Sequence[CaseResult], directory: Path, caption: str = "") -> list[Path]:
    """Write plot.svg and plot.png into a directory, and return their paths."""
    figure = draw(results, caption)
    written = [directory / name for name in NAMES]
    for path in written:
        save_figure(figure, path)
    return written


def draw(results: Sequence[CaseResult], caption: str = "") -> "Figure":
    """One panel per mode and dtype, one line per share of zeros."""
    problem = why_no_plot()
    if problem is not None:
        raise ValueError(problem)
    panels = _panels(results)
    if not panels:
        raise ValueError(
            "nothing to draw: no case has both ReLA and a softmax contender (sdpa, bmm-softmax)"
        )
    with plot_style():
        return _draw(panels, _colours(results), caption)


def _draw(panels: Panels, colours: Colours, caption: str) -> "Figure":
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(max(6.5, 3.7 * columns), 3.1 * rows + 0.9), layout="constrained")
    axes = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flatten())
    several_types = len({dtype for _, dtype in panels}) > 1
    for ax, ((mode, dtype), lines) in zip(axes, panels.items(), strict=False):
        _draw_panel(ax, lines, colours)
        ax.set_title(TITLES[mode] + (f", {dtype}" if several_types else ""), loc="left")
        if ax in axes[::columns]:
            ax.set_ylabel("softmax time / ReLA time")
    drawn = {label for lines in panels.values() for label in lines}
    handles = [_line(label, colours) for label in colours if label in drawn]
    unused = axes[len(panels) :]
    for ax in unused:
        ax.set_axis_off()
    title = "weights that are 0"
    if unused:
        unused[0].legend(handles=handles, title=title, loc="center", frameon=False)
    else:
        figure.legend(
            handles=handles,
            title=title,
            loc="outside lower center",
            ncols=len(handles),
            frameon=False,
        )
    headline = "ReLA against the faster softmax attention (SDPA or bmm + softmax)"
    figure.suptitle(f"{headline}\n{caption}" if caption else headline, fontsize=11)
    return figure


def _panels(results: Sequence[CaseResult]) -> Panels:
    """Panels in the order of MODES; in each, points (length, ratio) by share of zeros."""
    panels: Panels = {}
    usual = [r for r in results if r.case.mask == "none" and r.softmax_ratio is not None]
    for result in sorted(usual, key=lambda r: (list(MODES).index(r.case.mode), r.case.length)):
        case, ratio = result.case, result.softmax_ratio
        assert ratio is not None
        lines = panels.setdefault((case.mode, case.dtype), {})
        lines.setdefault(_label(case), []).append((case.length, ratio))
    return panels


def _draw_panel(ax: "Axes", lines: Lines, colours: Colours) -> None:
    draw_line_at_one(ax)
    for label, points in lines.items():
        line = _line(label, colours)
        line.set_data([length for length, _ in points], [ratio for _, ratio in points])
        ax.add_line(line)
    ax.autoscale_view()
    ticks = sorted({length for points in lines.values() for length, _ in points})
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(ticks, [f"{tick}" for tick in ticks], rotation=45 if len(ticks) > 5 else 0)
    ax.minorticks_off()
    ax.tick_params(labelleft=True)
    ax.set_xlabel("length (keys)")
    label_ratios(ax)


def _line(label: str, colours: Colours) -> "Line2D":
    """An empty line in the style for a share of zeros."""
    from matplotlib.lines import Line2D

    is_demo = label == DEMO_LABEL
    return Line2D(
        [],
        [],
        color=colours[label],
        marker="D" if is_demo else "o",
        markersize=4,
        linewidth=1.6,
        linestyle="--" if is_demo else "-",
        label=label,
    )


def _label(case: Case) -> str:
    return DEMO_LABEL if case.zeros == DEMO else case.zeros_label


def _colours(results: Sequence[CaseResult]) -> Colours:
    """Labels in legend order, with colours: the more zeros, the darker."""
    from matplotlib import colormaps

    shares = sorted({r.case.zeros for r in results if not isinstance(r.case.zeros, str)})
    palette = colormaps["viridis_r"]
    colours: Colours = {}
    for number, share in enumerate(shares):
        place = 0.2 + 0.75 * (number / (len(shares) - 1) if len(shares) > 1 else 1.0)
        colours[f"{share:g}%"] = palette(place)
    colours[DEMO_LABEL] = DEMO_COLOUR
    return colours
