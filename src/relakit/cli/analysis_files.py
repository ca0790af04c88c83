"""What `relakit analyze` and the demo do: analyse models, and write everything about it."""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from relakit.analysis import AnalysisPair
    from relakit.analysis.results import AnalysisSettings, ModelAnalysis
    from relakit.analysis.views import SentenceView
    from relakit.decode.translator import Translator
    from relakit.metrics.bleu import CorpusScore

EXPLORED = 200
"""Sentences in the report's explorer, unless told otherwise."""
ANALYSIS, TABLES, FIGURES, REPORT = "analysis.json", "tables", "figures", "report.html"
_OWN = re.compile(rf"analysis(-\d+)?\.json|{TABLES}|{FIGURES}|{REPORT}")


@dataclass(frozen=True)
class NamedModel:
    """A model, and what it is called in tables and figures."""

    name: str
    translator: "Translator"


@dataclass(frozen=True)
class AnalysedModel:
    """The numbers of a model, and sentences to look at."""

    analysis: "ModelAnalysis"
    views: "list[SentenceView]"


@dataclass(frozen=True)
class Written:
    """Where the results are."""

    report: Path
    explored: int
    """Sentences in the report"""
    note: str | None
    """Why there are no figures, if so"""


def analyse(
    models: Sequence[NamedModel],
    pairs: "Callable[[], Iterable[AnalysisPair]]",
    count: int,
    *,
    settings: "AnalysisSettings",
    inputs: Mapping[str, str],
    explored: int,
    translates: bool,
    console: Console,
) -> list[AnalysedModel]:
    """Analyse each model on the same pairs, with a progress bar.

    Args:
        models: each with a name of its own.
        pairs: gives the pairs anew for each model.
        count: how many pairs there are.
        settings: what the numbers depend on.
        inputs: what is analysed, for people.
        explored: how many sentences to keep for the report.
        translates: whether the models translate the sources, for BLEU.
        console: for the bar.
    """
    from relakit.analysis import analyze_model
    from relakit.report.html_file import spread

    found = []
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as progress:
        for model in models:
            task = progress.add_task(f"{model.name}: attention", total=count)
            analysis, views = analyze_model(
                model.translator.model,
                model.translator.tokenizer,
                pairs(),
                name=model.name,
                settings=settings,
                keep=spread(explored, count),
                progress=lambda done, task=task: progress.update(task, completed=done),  # type: ignore[misc]
            )
            analysed = AnalysedModel(analysis.model_copy(update={"inputs": dict(inputs)}), views)
            if translates:
                task = progress.add_task(f"{model.name}: translations", total=count)
                analysed = _with_translations(
                    analysed,
                    model.translator,
                    pairs(),
                    lambda done, task=task: progress.update(task, completed=done),  # type: ignore[misc]
                )
            found.append(analysed)
    return found


def _with_translations(
    analysed: AnalysedModel,
    translator: "Translator",
    pairs: "Iterable[AnalysisPair]",
    progress: Callable[[int], object],
) -> AnalysedModel:
    from relakit.metrics.bleu import bleu_score

    sources, references = zip(*((pair.source, pair.target) for pair in pairs), strict=True)
    outputs = []
    for hypotheses in translator.translate_stream(sources, nbest=1, window=500):
        outputs.append(hypotheses[0].text)
        progress(len(outputs))
    return with_outputs(analysed, outputs, bleu_score(outputs, list(references)))


def with_outputs(
    analysed: AnalysedModel, outputs: Sequence[str], score: "CorpusScore"
) -> AnalysedModel:
    """With the model's own translations of all pairs, and their BLEU."""
    bleu = {"bleu": score.score, "bleu_signature": score.signature}
    return AnalysedModel(
        analysed.analysis.model_copy(update=bleu),
        [replace(view, output=outputs[view.index]) for view in analysed.views],
    )


def write_analysis(models: Sequence[AnalysedModel], folder: Path, *, title: str) -> Written:
    """Write numbers as JSON and CSV, figures, and the report.

    The folder appears when all of it is written, in place of what an earlier run left there; one
    that holds anything else is refused (`check_folder`).
    """
    from relakit.data.whole_files import whole_folder
    from relakit.report import why_no_figures, write_figures, write_report, write_tables

    analyses = [model.analysis for model in models]
    views = {model.analysis.name: model.views for model in models}
    note = why_no_figures()
    check_folder(folder)
    with whole_folder(folder) as parts:
        names = [ANALYSIS] if len(analyses) == 1 else _numbered(len(analyses))
        for name, analysis in zip(names, analyses, strict=True):
            analysis.write(parts / name)
        write_tables(analyses, parts / TABLES)
        if note is None:
            write_figures(analyses, views, parts / FIGURES)
        explored = write_report(analyses, views, parts / REPORT, title=title)
    return Written(folder / REPORT, explored, note)


def _numbered(count: int) -> list[str]:
    return [f"analysis-{number}.json" for number in range(1, count + 1)]


def check_folder(folder: Path) -> None:
    """Raise ValueError where results cannot be written to: before anything is computed.

    Also for a folder with files that are no analysis: they would be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; --out has to be a folder")
    foreign = [path.name for path in folder.iterdir()] if folder.exists() else []
    foreign = [name for name in foreign if not _OWN.fullmatch(name)]
    if foreign:
        raise ValueError(
            f"{folder} holds {foreign[0]!r}, which is no part of an analysis, and would be lost; "
            "choose another --out"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent):
            pass
    except OSError as error:
        raise ValueError(f"--out {folder} cannot be written: {error.strerror}") from None
