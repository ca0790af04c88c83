"""Figures 3 to 6: the points are the numbers."""

import pytest
from report_page import Sample
from report_samples import with_first_temperature

from relakit.report.figures_3_to_6_by_layer import (
    draw_alignment,
    draw_diversity,
    draw_null_rates,
    draw_sparsity,
)

pytest.importorskip("matplotlib")


def mean(values: tuple[float | None, ...]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


def test_sparsity(sample: Sample) -> None:
    figure = draw_sparsity(sample.analyses)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Encoder", "Decoder", "Cross"]
    for ax, kind in zip(figure.axes, ("encoder", "decoder", "cross"), strict=True):
        for line, analysis in zip(ax.lines, sample.analyses, strict=True):
            values = [mean(layer) for layer in analysis.kind(kind).sparsity]  # type: ignore[arg-type]
            assert list(line.get_xdata()) == [1, 2, 3]
            assert list(line.get_ydata()) == pytest.approx(values)


def test_alignment(sample: Sample) -> None:
    figure = draw_alignment(sample.analyses)
    rela = sample.analyses[0].alignment
    assert rela is not None
    solid, dashed, *others = figure.axes[1].lines
    assert len(others) == 2
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    assert list(dashed.get_ydata()) == [score.aer for score in rela.shifted.layers]
    assert list(solid.get_ydata()) == [
        min(score.aer for score in layer) for layer in rela.shifted.heads
    ]


def test_a_model_without_gold_has_no_line(sample: Sample) -> None:
    without = sample.analyses[1].model_copy(update={"alignment": None})
    figure = draw_alignment([sample.analyses[0], without])
    assert len(figure.axes[0].lines) == 2


def test_diversity_is_that_of_temperature_1(sample: Sample) -> None:
    figure = draw_diversity(sample.analyses)
    (rela, _) = figure.axes[2].lines
    assert tuple(rela.get_ydata()) == sample.analyses[0].kind("cross").diversity["1"]
    assert figure.get_suptitle() == "at temperature 1"


def test_diversity_names_the_temperatures_that_are_shown(sample: Sample) -> None:
    rela, softmax = sample.analyses
    colder = with_first_temperature(rela, "0.5")
    figure = draw_diversity([colder, softmax])
    assert figure.get_suptitle() == "at temperature 0.5 (ReLA-g), 1 (softmax)"
    assert tuple(figure.axes[2].lines[0].get_ydata()) == rela.kind("cross").diversity["0.5"]
    mixed = rela.model_copy(update={"kinds": (*softmax.kinds[:2], colder.kinds[2])})
    assert draw_diversity([mixed]).get_suptitle() == "at temperature 1 and 0.5 (ReLA-g)"
    assert draw_diversity([colder]).get_suptitle() == "at temperature 0.5"


def test_diversity_that_was_not_measured(sample: Sample) -> None:
    kinds = tuple(k.model_copy(update={"diversity": {}}) for k in sample.analyses[0].kinds)
    plain = sample.analyses[0].model_copy(update={"kinds": kinds})
    assert draw_diversity([plain]).get_suptitle() == "at no temperature"


def test_null_rates_with_shuffled_targets(sample: Sample) -> None:
    figure = draw_null_rates(sample.analyses)
    encoder, _, cross, gap = figure.axes
    assert len(encoder.lines) == 2, "the encoder sees no target"
    styles = [line.get_linestyle() for line in cross.lines]
    assert styles == ["-", "--", "-", "--"]
    shuffled = sample.analyses[0].shuffled
    assert shuffled is not None
    assert list(cross.lines[1].get_ydata()) == pytest.approx(
        [mean(layer) for layer in shuffled.null_rate["cross"]]
    )
    bars = gap.containers[0].lines[2][0].get_segments()
    ends = [(interval.low, interval.high) for interval in shuffled.cross_gap]
    assert [tuple(bar[:, 1]) for bar in bars] == [pytest.approx(end) for end in ends]


def test_without_shuffled_targets(sample: Sample) -> None:
    plain = [analysis.model_copy(update={"shuffled": None}) for analysis in sample.analyses]
    assert len(draw_null_rates(plain).axes) == 3
