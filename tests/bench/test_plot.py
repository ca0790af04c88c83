"""The plot: a panel per mode, a line per share of zeros, in both formats."""

import sys
from pathlib import Path

import pytest

from relakit.bench.attention_results import CaseResult, Measurement
from relakit.bench.cases import MODES, make_case
from relakit.bench.plot import DEMO_LABEL, check_plot_path, draw, write_plots
from relakit.bench.rounds import spread

pytest.importorskip("matplotlib")


def result(mode: str, length: int, zeros: object, ratio: float | None) -> CaseResult:
    rela = Measurement(contender="rela", ratio=spread([1.0]))
    sdpa = Measurement(contender="sdpa", ratio=None if ratio is None else spread([ratio]))
    case = make_case(mode, length, zeros)  # type: ignore[arg-type]
    return CaseResult(case=case, zeros_measured=50.0, measurements=(rela, sdpa))


RESULTS = [
    result(mode, length, zeros, length / 64)
    for mode in MODES
    for zeros in (90.0, 50.0, "demo")
    for length in (2048, 32, 64)
]


def test_panels_lines_and_points() -> None:
    figure = draw(RESULTS)
    panels = [ax for ax in figure.axes if ax.get_title(loc="left")]
    assert len(panels) == len(MODES)
    for ax in panels:
        lines = {str(line.get_label()): line for line in ax.lines[1:]}  # the first is the 1
        assert set(lines) == {"50%", "90%", DEMO_LABEL}
        for line in lines.values():
            assert list(line.get_xdata()) == [32, 64, 2048]
            assert list(line.get_ydata()) == [0.5, 1, 32]
        low, high = ax.get_ylim()
        assert low < 0.5 < 32 < high


def test_the_legend_is_in_the_order_of_zeros() -> None:
    figure = draw(RESULTS[:9])  # one panel: the legend stands outside
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["50%", "90%", DEMO_LABEL]


def test_cases_that_did_not_run_are_left_out() -> None:
    figure = draw([result("both", 64, 50.0, 2.0), result("both", 8192, 50.0, None)])
    assert list(figure.axes[0].lines[1].get_xdata()) == [64]


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="no case has both ReLA and a softmax contender"):
        draw([result("both", 8192, 50.0, None)])


def test_files_are_written_and_repeatable(tmp_path: Path) -> None:
    results = RESULTS[:9]  # one panel
    svg, png = write_plots(results, tmp_path / "new", "some machine")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()
    again, _ = write_plots(results, tmp_path / "again", "some machine")
    assert again.read_bytes() == svg.read_bytes()
    assert len(list((tmp_path / "new").iterdir())) == 2


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'relakit\[bench\]'"):
        draw(RESULTS)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    check_plot_path(tmp_path / "speed.pdf")
    with pytest.raises(ValueError, match=r"must end in \.svg, \.png, \.pdf"):
        check_plot_path(tmp_path / "speed.txt")
