"""A report: a folder with all numbers as JSON and CSV, the figures, and a page to explore."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relakit.analysis.results import AnalyzedModel
from relakit.analysis.text_results import TextAnalysis
from relakit.files.output_paths import REPORT, check_output_folder
from relakit.files.writing import check_writable, whole_folder
from relakit.report.figure_files import why_no_figures
from relakit.report.figures import write_figures
from relakit.report.page_file import write_page
from relakit.report.settings import TITLE
from relakit.report.tables import write_tables

TABLES: Final = "tables"
FIGURES: Final = "figures"
PAGE: Final = REPORT.marker
_PARTS: Final = re.compile(rf"analysis(-\d+)?\.json|{TABLES}|{FIGURES}|{re.escape(PAGE)}")


@dataclass(frozen=True)
class WrittenReport:
    """Where a report is, and what is in it."""

    folder: Path
    explored: int
    """Sentences, or texts, that the page shows"""
    no_figures: str | None
    """Why there are no figures, if there are none"""

    @property
    def tables(self) -> Path:
        return self.folder / TABLES

    @property
    def figures(self) -> Path:
        return self.folder / FIGURES

    @property
    def page(self) -> Path:
        return self.folder / PAGE


def write_report(
    models: Sequence[AnalyzedModel] | Sequence[TextAnalysis],
    folder: Path,
    *,
    title: str = TITLE,
    figures: bool = True,
) -> WrittenReport:
    """Write a report about models that were analyzed on the same pairs, or on the same texts.

    The folder appears once it is complete, in place of an earlier report.

    Args:
        models: with different names, as returned by `relakit.analysis.analyze_models`,
            `relakit.analysis.analyze_texts` and `relakit.hf.analyze`; the others are compared with
            the first.
        folder: where to write it; missing parents are created.
        title: at the top of the page.
        figures: whether to draw figures, if matplotlib is installed.

    Raises:
        OSError: the folder cannot be written, or holds anything but a report
            (`check_report_folder`).
        ValueError: the models do not go together (`write_page`).
    """
    analyses = [model.analysis for model in models]
    views = {model.analysis.name: model.views for model in models}
    links = {
        model.analysis.name: model.links
        for model in models
        if isinstance(model, AnalyzedModel) and model.links is not None
    }
    no_figures = why_no_figures() if figures else "they were not asked for"
    check_report_folder(folder)
    with whole_folder(folder) as parts:
        for name, analysis in zip(_file_names(len(analyses)), analyses, strict=True):
            analysis.write(parts / name)
        write_tables(analyses, parts / TABLES)
        if no_figures is None:
            write_figures(analyses, views, parts / FIGURES)
        explored = write_page(analyses, views, parts / PAGE, links=links, title=title)
    return WrittenReport(folder, explored, no_figures)


def _file_names(models: int) -> list[str]:
    if models == 1:
        return ["analysis.json"]
    return [f"analysis-{number}.json" for number in range(1, models + 1)]


def check_report_folder(folder: Path) -> None:
    """Raise OSError if no report can be written there, before anything is computed.

    This includes a folder with files that are not part of a report: they would be replaced.
    """
    found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    parts = [name for name in found if _PARTS.fullmatch(name)]
    check_output_folder(folder, REPORT, parts=parts, replace=True)
    check_writable(folder, is_folder=True)
