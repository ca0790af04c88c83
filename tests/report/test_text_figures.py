"""Figures of models that read texts: their names, panels and marks."""

from pathlib import Path

import numpy as np
import pytest
from text_samples import TEXTS, text_analysis, text_view, two_models

from relakit.report import figures, write_figures
from relakit.report.figures_3_to_6_by_layer import draw_null_rates, draw_sinks
from relakit.report.text_figures import MOST_TOKENS, draw_by_head, draw_text_heads

pytest.importorskip("matplotlib")


def test_they_are_named_by_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))
    model = two_models()[0]
    written = write_figures([model.analysis], {"ReLA-g": model.views}, tmp_path)
    assert [path.stem for path in written] == [
        "sparsity", "null-rate", "first-sink", "diversity", "by-head", "texts",
    ]  # fmt: skip


def test_by_layer_there_is_one_panel_with_a_line_for_each_model() -> None:
    analyses = [model.analysis for model in two_models()]
    (panel,) = draw_sinks(analyses).axes
    assert panel.get_title(loc="left") == "Self-attention"
    for line, analysis in zip(panel.get_lines(), analyses, strict=True):
        np.testing.assert_allclose(
            line.get_ydata(), np.array(analysis.main.first_sink, dtype=float).mean(1)
        )
    assert len(draw_null_rates(analyses).axes) == 1


def test_all_heads_at_a_glance() -> None:
    analysis = two_models()[0].analysis
    sparsity, nulls, sinks, _colours = draw_by_head(analysis, ()).axes
    np.testing.assert_allclose(sparsity.images[0].get_array(), np.array(analysis.main.sparsity))
    np.testing.assert_allclose(nulls.images[0].get_array(), np.array(analysis.main.null_rate))
    np.testing.assert_allclose(sinks.images[0].get_array(), np.array(analysis.main.first_sink))


def test_a_text_in_several_heads() -> None:
    view = text_view(0, TEXTS[0])
    figure = draw_text_heads(text_analysis("m", [view]).analysis, [view])
    assert figure is not None
    shown = [ax for ax in figure.axes if ax.images]
    assert len(shown) == 3
    assert [label.get_text() for label in shown[0].get_xticklabels()] == list(view.tokens)
    assert any("∅" in label.get_text() for ax in shown for label in ax.get_yticklabels())


def test_long_texts_are_not_printed() -> None:
    view = text_view(0, " ".join(["dog"] * MOST_TOKENS))
    assert draw_text_heads(text_analysis("m", [view]).analysis, [view]) is None
