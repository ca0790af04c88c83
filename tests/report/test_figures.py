"""All figures as files."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_page import Sample

from relakit.report import figures, write_figures

pytest.importorskip("matplotlib")


def test_one_model(sample: Sample, tmp_path: Path) -> None:
    views = {"ReLA-g": sample.views["ReLA-g"][:3]}
    written = write_figures(sample.analyses[:1], views, tmp_path / "figures")
    names = [f"figure-{n}.{suffix}" for n in range(3, 11) for suffix in ("svg", "png")]
    assert [path.name for path in written] == names
    assert {path.name for path in (tmp_path / "figures").iterdir()} == set(names)
    for path in written:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_what_there_is_nothing_for_is_left_out(sample: Sample, tmp_path: Path) -> None:
    plain = sample.analyses[0].model_copy(update={"alignment": None})
    written = write_figures([plain], {}, tmp_path)
    assert {path.stem for path in written} == {"figure-3", "figure-5", "figure-6"}


def test_several_models_have_files_of_their_own(sample: Sample) -> None:
    views = {name: views[:1] for name, views in sample.views.items()}
    names = [name for name, _ in figures._drawings(sample.analyses, views)]
    assert "figure-7-ReLA-g" in names
    assert "figure-9-softmax" in names
    assert figures._file_names(["a/b", "a b"]) == ["-1", "-2"]
    assert figures._file_names(["../x", "y"]) == ["-x", "-y"]


def test_why_not(sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least one model"):
        write_figures([], {}, tmp_path)
    monkeypatch.setattr(figures, "why_no_figures", lambda: "no matplotlib")
    with pytest.raises(ValueError, match="no matplotlib"):
        write_figures(sample.analyses, {}, tmp_path)


def test_matplotlib_is_loaded_only_to_draw() -> None:
    code = "import sys, relakit.report; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
