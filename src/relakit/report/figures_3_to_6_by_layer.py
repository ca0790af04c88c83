"""Figures 3 to 6: a number by layer, a panel for each kind of attention, a line for each model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from relakit.analysis.links import READINGS
from relakit.analysis.results import (
    HeadValues,
    KindResult,
    ModelAnalysis,
    layer_means,
)
from relakit.attention_kinds import AttentionKind
from relakit.report.figure_files import drawable
from relakit.report.temperatures import shown_temperature, temperature_note

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = ("#1d5fc4", "#d07a1c", "#1d8a5b", "#8a4fc0", "#b8325a", "#6b727c")
"""The models' colours, in order; the page has the same."""
PANELS: Final[dict[AttentionKind, str]] = {
    "encoder": "Encoder",
    "decoder": "Decoder",
    "cross": "Cross",
}


def _kind_panels(
    analyses: Sequence[ModelAnalysis],
) -> list[tuple[str, Callable[[ModelAnalysis], KindResult]]]:
    """The title of each panel, and the function that selects its numbers."""
    if analyses[0].is_of_texts:
        return [("Self-attention", lambda analysis: analysis.main)]
    return [(title, partial(_of_kind, kind)) for kind, title in PANELS.items()]


def _of_kind(kind: AttentionKind, analysis: ModelAnalysis) -> KindResult:
    return analysis.kind(kind)


def draw_sparsity(analyses: Sequence[ModelAnalysis]) -> "Figure":
    """Figure 3: sparsity rate, averaged over heads."""
    return _draw_shares(analyses, "sparsity rate", lambda result: result.sparsity)


def draw_sinks(analyses: Sequence[ModelAnalysis]) -> "Figure":
    """Not in the paper: share of the weight that lies on the first token, averaged over heads."""
    return _draw_shares(analyses, "weight on the first token", lambda result: result.first_sink)


def _draw_shares(
    analyses: Sequence[ModelAnalysis], label: str, values: Callable[[KindResult], HeadValues]
) -> "Figure":
    panels = _kind_panels(analyses)
    figure, axes = _panels(len(panels), label)
    for (title, of), ax in zip(panels, axes, strict=True):
        ax.set_title(title, loc="left")
        for number, analysis in enumerate(analyses):
            _line(ax, number, layer_means(values(of(analysis))), analysis.name)
        ax.set_ylim(-0.03, 1.03)
    return _finish(figure, axes)


def draw_alignment(analyses: Sequence[ModelAnalysis]) -> "Figure | None":
    """Figure 4: alignment error rate of the best head (solid) and of the mean of heads (dashed).

    None without gold links.
    """
    if not any(analysis.alignment for analysis in analyses):
        return None
    figure, axes = _panels(len(READINGS), "AER (lower is better)")
    for reading, ax in zip(READINGS, axes, strict=True):
        ax.set_title(f"{reading.capitalize()} attention", loc="left")
        for number, analysis in enumerate(analyses):
            if analysis.alignment is None:
                continue
            scores = analysis.alignment.scores(reading)
            best = [
                layer[head].aer for layer, head in zip(scores.heads, scores.best_heads, strict=True)
            ]
            _line(ax, number, best, f"{analysis.name}, best head")
            layers = [score.aer for score in scores.layers]
            _line(ax, number, layers, f"{analysis.name}, mean of heads", dashed=True)
        ax.set_ylim(0, 1.03)
    return _finish(figure, axes)


def draw_diversity(analyses: Sequence[ModelAnalysis]) -> "Figure":
    """Figure 5: Jensen-Shannon divergence of the heads at the first temperature."""
    panels = _kind_panels(analyses)
    figure, axes = _panels(len(panels), "JS divergence (nats)", share_scale=True)
    for (title, of), ax in zip(panels, axes, strict=True):
        ax.set_title(title, loc="left")
        for number, analysis in enumerate(analyses):
            result = of(analysis)
            values = result.diversity.get(shown_temperature(result), ())
            _line(ax, number, values, analysis.name)
        ax.set_ylim(bottom=0)
    figure.suptitle(drawable(temperature_note(analyses)), fontsize=10)
    return _finish(figure, axes)


def draw_null_rates(analyses: Sequence[ModelAnalysis]) -> "Figure":
    """Figure 6: null rate, dashed for shuffled targets; the last panel is the gap with interval."""
    shuffled = [a.shuffled for a in analyses if a.shuffled is not None]
    panels = _kind_panels(analyses)
    figure, axes = _panels(len(panels) + bool(shuffled), "null rate")
    rate_axes = axes[: len(panels)]
    for (title, of), ax in zip(panels, rate_axes, strict=True):
        ax.set_title(title, loc="left")
        for number, analysis in enumerate(analyses):
            result = of(analysis)
            _line(ax, number, layer_means(result.null_rate), analysis.name)
            if analysis.shuffled is not None and result.kind in analysis.shuffled.null_rate:
                rates = layer_means(analysis.shuffled.null_rate[result.kind])
                _line(ax, number, rates, f"{analysis.name}, shuffled", dashed=True)
    # One scale, because kinds are compared; the gaps, which are much smaller, have their own.
    top = max(ax.get_ylim()[1] for ax in rate_axes)
    for ax in rate_axes:
        ax.set_ylim(-0.02 * top, 1.02 * top)
    if shuffled:
        _draw_gaps(axes[-1], analyses)
    return _finish(figure, axes)


def _draw_gaps(ax: "Axes", analyses: Sequence[ModelAnalysis]) -> None:
    """How much more often a target with the wrong source is null."""
    level = analyses[0].settings.confidence
    ax.set_title("Cross, shuffled − true", loc="left")
    ax.set_ylabel(f"mean over sentences, {100 * level:g}% CI")
    ax.axhline(0, color="0.4", linewidth=1)
    for number, analysis in enumerate(analyses):
        if analysis.shuffled is None:
            continue
        gaps = analysis.shuffled.cross_gap
        shift = (number - (len(analyses) - 1) / 2) * 0.12  # intervals side by side
        ax.errorbar(
            [layer + shift for layer in range(1, len(gaps) + 1)],
            [gap.mean for gap in gaps],
            yerr=[[gap.mean - gap.low for gap in gaps], [gap.high - gap.mean for gap in gaps]],
            fmt="o",
            color=COLOURS[number % len(COLOURS)],
            markersize=4,
            capsize=3,
        )


def _panels(count: int, label: str, *, share_scale: bool = False) -> tuple["Figure", list["Axes"]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * count + 0.4, 3.3), layout="constrained")
    axes = list(figure.subplots(1, count, sharey=share_scale, squeeze=False).flatten())
    axes[0].set_ylabel(label)
    return figure, axes


def _line(
    ax: "Axes", number: int, values: Sequence[float | None], label: str, *, dashed: bool = False
) -> None:
    known = [(layer, value) for layer, value in enumerate(values, 1) if value is not None]
    ax.plot(
        [layer for layer, _ in known],
        [value for _, value in known],
        color=COLOURS[number % len(COLOURS)],
        linestyle="--" if dashed else "-",
        marker=None if dashed else "o",
        markersize=4.5,
        linewidth=1.4 if dashed else 1.8,
        label=drawable(label),
    )


def _finish(figure: "Figure", axes: Sequence["Axes"]) -> "Figure":
    """Axes without clutter, and one legend for all panels."""
    from matplotlib.ticker import MaxNLocator

    handles: dict[str, Artist] = {}
    for ax in axes:
        ax.set_xlabel("layer")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(axis="y", color="0.91", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(str(label), handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(len(axes), len(handles)),
        frameon=False,
    )
    return figure
