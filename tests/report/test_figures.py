"""All figures as files."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_page import Sample
from report_samples import make_view

from relakit.report import figures, write_figures
from relakit.report.figures_7_to_10_heat_maps import draw_heads

pytest.importorskip("matplotlib")


def test_one_model(sample: Sample, tmp_path: Path) -> None:
    texts = "A small dog runs.", "Ein kleiner Hund läuft."
    views = {"ReLA-g": [make_view(index, *texts, sparse=True) for index in range(2)]}
    written = write_figures(sample.analyses[:1], views, tmp_path / "figures")
    names = [f"figure-{n}.{suffix}" for n in range(3, 11) for suffix in ("svg", "png")]
    assert [path.name for path in written] == names
    assert {path.name for path in (tmp_path / "figures").iterdir()} == set(names)
    for path in written:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_what_there_is_nothing_for_is_left_out(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))
    plain = sample.analyses[0].model_copy(update={"alignment": None})
    written = write_figures([plain], {}, tmp_path)
    assert {path.stem for path in written} == {"figure-3", "figure-5", "figure-6"}


def test_several_models_have_files_of_their_own(sample: Sample) -> None:
    views = {name: views[:1] for name, views in sample.views.items()}
    names = [name for name, _ in figures._drawings(sample.analyses, views)]
    assert "figure-7-ReLA-g" in names
    assert "figure-9-softmax" in names
    assert figures._name_endings(["a/b", "a b"]) == ["-1", "-2"]
    assert figures._name_endings(["../x", "y"]) == ["-x", "-y"]


def test_why_not(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least one model"):
        write_figures([], {}, tmp_path)
    monkeypatch.setattr(figures, "why_no_figures", lambda: "no matplotlib")
    with pytest.raises(ValueError, match="no matplotlib"):
        write_figures(sample.analyses, {}, tmp_path)


WORDS = [f"w{number}" for number in range(600)]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([0], set()),
        ([1], {7, 9}),
        ([0, 1], {7, 9}),
        ([1, 1], {7, 8, 9, 10}),
        ([1, 6], {7, 8, 9, 10}),
        ([6], {7, 9}),
        ([6, 60], {7, 9}),
        ([60, 600], set()),
    ],
)
def test_no_sentence_may_be_right_for_a_figure(
    sample: Sample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lengths: list[int],
    expected: set[int],
) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))
    monkeypatch.setattr(figures, "FIGURES_OF_ALL_MODELS", {})  # they need no sentences
    views = []
    for index, length in enumerate(lengths):
        text = " ".join(WORDS[:length])
        layers, heads = (1, 1) if length > 100 else (3, 4)
        views.append(make_view(index, text, text, sparse=True, layers=layers, heads=heads))
    written = write_figures(sample.analyses[:1], {"ReLA-g": views}, tmp_path)
    assert {int(path.stem.removeprefix("figure-")) for path in written} == expected


def test_a_word_of_very_many_tokens_is_no_figure(sample: Sample) -> None:
    view = make_view(0, "a b c", "d e f", sparse=True)
    tokens = tuple((0, 1) for _ in range(300))
    view = dataclasses.replace(view, source_token_spans=tokens)
    assert draw_heads(sample.analyses[0], [view]) is None


def test_control_characters_leave_svg_valid(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FORMATS", ("svg",))
    text = "nul\x00 esc\x1b[1m back\x08space \udc80 \uffff c1\x9b end"
    view = make_view(0, text, text, sparse=True)
    analysis = sample.analyses[0].model_copy(update={"name": "a\x07 $\\frac$"})
    written = write_figures([analysis], {analysis.name: [view, view]}, tmp_path)
    assert len(written) == 8
    for path in written:
        ElementTree.parse(path)


def test_why_matplotlib_cannot_be_used(tmp_path: Path) -> None:
    """Packages in its place that fail to import in different ways, in a process of their own.

    And it is not loaded before something is to be drawn.
    """
    contents = [
        "raise ImportError('built for\\nanother NumPy')",
        "raise AttributeError('nothing there')",
        "raise ModuleNotFoundError(\"No module named 'cycler'\", name='cycler')",
        "raise ModuleNotFoundError(name='matplotlib')",
    ]
    (tmp_path / "matplotlib").mkdir()
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(tmp_path)!r})
sys.dont_write_bytecode = True
from relakit.bench.plot import why_no_plot
from relakit.report import why_no_figures
assert "matplotlib" not in sys.modules
for content in {contents!r}:
    Path({str(tmp_path / "matplotlib" / "__init__.py")!r}).write_text(content)
    print(why_no_figures(), why_no_plot(), sep="|")
"""
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    broken, nothing, no_cycler, missing = printed.splitlines()
    error = "need matplotlib, which cannot be imported: ImportError: built for another NumPy"
    assert broken == f"figures {error}|plots {error}"
    assert "AttributeError: nothing there" in nothing
    assert "No module named 'cycler'" in no_cycler
    assert missing == (
        "figures need matplotlib: pip install 'relakit[report]'|"
        "plots need matplotlib: pip install 'relakit[bench]'"
    )
