"""Figures 7 to 10: the words, the weights between them, and the rows without any."""

from itertools import pairwise

import numpy as np
import pytest
from report_page import Sample
from report_samples import cross_words, make_view

from relakit.report.figure_files import save_figure
from relakit.report.figures_7_to_10_heat_maps import (
    cross_word_weights,
    draw_clauses,
    draw_examples,
    draw_heads,
    draw_quality,
)
from relakit.report.heat_map_panels import NULL_COLOUR

pytest.importorskip("matplotlib")


def test_word_weights_have_the_ends_last(sample: Sample) -> None:
    view = sample.views["ReLA-g"][5]
    weights = cross_word_weights(view, 2, 1)
    np.testing.assert_allclose(weights[:-1, :-1], cross_words(view, 2, 1), rtol=1e-6)
    assert weights[-1, -1] == view.weights["cross"][2, 1, -1, -1]


def test_heads(sample: Sample) -> None:
    analysis, views = sample.analyses[0], sample.views["ReLA-g"][:6]
    figure = draw_heads(analysis, views)
    assert len(figure.axes) == 4
    for ax in figure.axes:
        image = ax.images[0].get_array()
        assert image is not None
        shown = np.ma.filled(image, 0.0)
        nulls = (shown == 0).all(1)
        colours = [label.get_color() == NULL_COLOUR for label in ax.get_yticklabels()]
        marks = ["∅" in label.get_text() for label in ax.get_yticklabels()]
        assert colours == marks == nulls.tolist()
        assert len(ax.patches) == nulls.sum()
        head = int(ax.get_xlabel().split()[1]) - 1
        matches = [
            view
            for view in views
            if [label.get_text() for label in ax.get_xticklabels()]
            == [*(view.source[a:b] for a, b in view.source_words), "⟨end⟩"]
        ]
        layer = int(figure.get_suptitle().split()[-1]) - 1
        np.testing.assert_allclose(shown, cross_word_weights(matches[0], layer, head))


def test_other_figures(sample: Sample) -> None:
    analysis, views = sample.analyses[0], sample.views["ReLA-g"][:6]
    assert len(draw_examples(analysis, views).axes) == 3 * 4
    assert len(draw_clauses(analysis, views).axes) == 2 * 4
    quality = draw_quality(analysis, views)
    rates = [float(ax.get_xlabel().split("%")[0].split()[-1]) for ax in quality.axes]
    half = len(rates) // 2
    assert max(rates[:half]) <= min(rates[half:])


def test_a_title_of_two_lines(sample: Sample) -> None:
    figure = draw_quality(sample.analyses[0], sample.views["ReLA-g"][:6])
    first, second = figure.get_suptitle().splitlines()
    assert first.startswith("ReLA-g, ")
    assert second.startswith("pairs with the lowest null rates")


def test_short_sentences_have_room_for_what_is_said_about_them(sample: Sample) -> None:
    views = [make_view(index, "Yes .", "Ja .", sparse=False) for index in range(6)]
    figure = draw_quality(sample.analyses[0], views)
    figure.draw_without_rendering()
    for row in (figure.axes[:3], figure.axes[3:]):
        for left, right in pairwise(row):
            end = left.xaxis.label.get_window_extent().x1
            assert end < right.xaxis.label.get_window_extent().x0
            assert all(end < label.get_window_extent().x0 for label in right.get_yticklabels())


def test_words_are_no_formulas(sample: Sample, tmp_path: object) -> None:
    from pathlib import Path

    view = make_view(0, r"$\frac{ costs $5 _{ a ^ b", r"\alpha $x^{ $ c d", sparse=False)
    path = Path(str(tmp_path)) / "figure.svg"
    save_figure(draw_heads(sample.analyses[1], [view]), path)
    assert path.stat().st_size > 1000


def test_negative_weights_have_another_colour(sample: Sample) -> None:
    view = make_view(0, "a b c", "d e f", sparse=True)
    view.weights["cross"][:, :, 0, 0] = -1.0
    for ax in draw_heads(sample.analyses[0], [view]).axes:
        low, high = ax.images[0].get_clim()
        assert low == -high
