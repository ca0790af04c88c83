"""The folder of a report: what it holds, and what it may replace."""

from pathlib import Path

import pytest
from report_page import Sample

from relakit.analysis import AnalyzedModel, ModelAnalysis
from relakit.report import check_report_folder, report_folder, write_report


@pytest.fixture
def models(sample: Sample) -> list[AnalyzedModel]:
    return [AnalyzedModel(analysis, sample.views[analysis.name]) for analysis in sample.analyses]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_several_models_and_then_one(models: list[AnalyzedModel], tmp_path: Path) -> None:
    folder = tmp_path / "some" / "report"
    written = write_report(models, folder, figures=False)
    assert names(folder) == ["analysis-1.json", "analysis-2.json", "report.html", "tables"]
    assert ModelAnalysis.read(folder / "analysis-2.json") == models[1].analysis
    assert (written.page, written.tables) == (folder / "report.html", folder / "tables")
    assert (written.explored, written.no_figures) == (8, "they were not asked for")
    write_report(models[:1], folder, figures=False, title="Other")
    assert names(folder) == ["analysis.json", "report.html", "tables"]
    assert "<title>Other</title>" in (folder / "report.html").read_text(encoding="utf-8")
    assert names(folder.parent) == ["report"]


def test_figures_are_drawn_where_they_can_be(
    models: list[AnalyzedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Path] = []
    monkeypatch.setattr(report_folder, "write_figures", lambda *given: drawn.append(given[-1]))
    monkeypatch.setattr(report_folder, "why_no_figures", lambda: "no matplotlib")
    assert write_report(models, tmp_path / "a").no_figures == "no matplotlib"
    assert drawn == []
    monkeypatch.setattr(report_folder, "why_no_figures", lambda: None)
    written = write_report(models, tmp_path / "b")
    assert written.no_figures is None
    assert [path.name for path in drawn] == [written.figures.name]


def test_a_report_that_fails_leaves_nothing(models: list[AnalyzedModel], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="models need names that differ"):
        write_report([models[0], models[0]], tmp_path / "report", figures=False)
    assert names(tmp_path) == []


def test_folders_that_will_not_do(models: list[AnalyzedModel], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(OSError, match=r"holds 'mine\.txt', which is not part of a report"):
        write_report(models, tmp_path)
    with pytest.raises(OSError, match=r"mine\.txt is a file; a report needs a folder"):
        check_report_folder(tmp_path / "mine.txt")
    with pytest.raises(OSError, match="/proc/report cannot be written: "):
        check_report_folder(Path("/proc/report"))
