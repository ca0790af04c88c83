"""The paper's tables in Markdown, with what was measured beside what the paper reports."""

from collections.abc import Iterable, Sequence
from typing import Final

import torch

from relakit.analysis.estimate import Estimate
from relakit.analysis.flops import rela_g_flops, softmax_flops
from relakit.analysis.links import READINGS, EndWeight, Reading
from relakit.analysis.ranking import QualityRanking
from relakit.analysis.results import KindResult
from relakit.attention_kinds import ATTENTION_KINDS
from relakit.model import Transformer
from relakit.reproduce import paper
from relakit.reproduce.corpora import CORPORA, DEMO
from relakit.reproduce.evidence import ErrorRate, Evidence, Setting, bleu, mean_diversity
from relakit.reproduce.markdown import table
from relakit.reproduce.rows import BASELINE, OURS, ROWS, VARIANTS
from relakit.reproduce.speed import decoding_speed, decoding_speed_by_length, training_speed
from relakit.reproduce.statistics import Seeds, over_seeds
from relakit.reproduce.studies import COMPARED, STABILITY_ROWS, STUDIES
from relakit.train.recipe_file import load_recipe

NONE: Final = "–"
PAPER_VOCABULARY: Final = 27_515
"""Tokens on each side: docs/authors.md says why."""


def table_1(evidence: Evidence) -> str:
    """BLEU of all rows."""
    settings = [
        setting
        for setting in evidence.settings()
        if setting.corpus in {need.corpus for need in STUDIES["table1"].needs[setting.scale]}
    ]
    headings = ["ID", "model", "paper, WMT14 en-de", *(setting.label for setting in settings)]
    rows = []
    for name, row in ROWS.items():
        reported = paper.TABLE_1[name]
        cells = [str(row.number), row.label, "failed" if reported is None else f"{reported:.1f}"]
        cells += [_bleu_cell(evidence, setting, name) for setting in settings]
        rows.append(cells)
    return table(headings, rows, left=2)


def _bleu_cell(evidence: Evidence, setting: Setting, row: str) -> str:
    runs = evidence.runs(setting, row)
    if not runs:
        return NONE
    scores = evidence.seeds(setting, row, bleu)
    failed = evidence.failed(setting, row)
    parts = [] if scores is None else [f"{scores.text()} (n={scores.n})"]
    parts += [f"{failed} of {len(runs)} failed"] if failed else []
    return ", ".join(parts)


def table_2(evidence: Evidence) -> str | None:
    """Speed, from the benchmarks; None if they have not been run."""
    training, decoding = training_speed(evidence.results), decoding_speed(evidence.results)
    in_pytorch = decoding_speed(evidence.results, in_pytorch=True)
    if not training and not decoding:
        return None
    headings = ["model", "parameters, paper", "here", "training, paper", "here"]
    headings += ["decoding one by one, paper", "here", "here, all in PyTorch"]
    rows = [
        [
            row,
            f"{paper.TABLE_2[row].parameters:.2f}M",
            f"{parameters(row) / 1e6:.2f}M",
            f"{paper.TABLE_2[row].training:.2f}",
            training[row].text if row in training else NONE,
            f"{paper.TABLE_2[row].decoding:.2f}",
            decoding[row].text if row in decoding else NONE,
            in_pytorch[row].text if row in in_pytorch else NONE,
        ]
        for row in COMPARED
    ]
    return table(headings, rows)


def parameters(attention: str) -> int:
    """Parameters of the authors' model, with the vocabulary that fits the paper's softmax count."""
    recipe = load_recipe("authors", ["data.folder=data", f"model.attention={attention}"])
    with torch.device("meta"):
        model = Transformer(recipe.model.config(PAPER_VOCABULARY))
    return sum(parameter.numel() for parameter in model.parameters())


def figure_2(evidence: Evidence) -> str | None:
    """Decoding speed by source length, from the benchmark; None if it has not been run."""
    by_length = decoding_speed_by_length(evidence.results)
    if not by_length:
        return None
    models = [model for model in COMPARED if any(model in speeds for speeds in by_length.values())]
    rows = [
        [model, *(s[model].short if model in s else NONE for s in by_length.values())]
        for model in models
    ]
    return table(["source tokens, mean", *(f"{length:.0f}" for length in by_length)], rows)


def table_3(evidence: Evidence) -> str:
    """BLEU on further language pairs."""
    settings = [
        setting
        for setting in evidence.settings()
        if setting.corpus in {n.corpus for n in STUDIES["table3"].needs.get(setting.scale, ())}
    ]
    reported = [f"paper, {CORPORA[name].label}" for name in paper.TABLE_3_LANGUAGES]
    headings = ["model", *reported, *(setting.label for setting in settings)]
    rows = [
        [
            row,
            *(f"{score:.1f}" for score in paper.TABLE_3[row]),
            *(_bleu_cell(evidence, setting, row) for setting in settings),
        ]
        for row in COMPARED
    ]
    return table(headings, rows)


def table_4() -> str:
    """The FLOPs formulas, evaluated at the lengths in the paper's text."""
    rows = [
        [str(length), f"{softmax_flops(length, 8):,}", f"{rela_g_flops(length, 8, 512):,}"]
        for length in (100, 1000)
    ]
    return table(["T (8 heads, d = 512)", "softmax, 3HT² - HT", "ReLA-g, HT² + 10Td + T"], rows)


_ALIGNED: Final = (*COMPARED, "rela-i")


def table_5(evidence: Evidence, end: EndWeight) -> list[str]:
    """Alignment error rates in percent, for each gold set of each setting."""
    columns = [(reading, number) for reading in READINGS for number in ("aol", "aoh")]
    names = {"aol": "AoL", "aoh": "AoH"}
    headings = ["model", *(f"{reading} {names[number]}" for reading, number in columns), "n"]
    tables = []
    for setting in evidence.settings():
        for gold in evidence.gold_sets(setting):
            rows = [
                [row, *cells]
                for row in _ALIGNED
                if (cells := _alignment_cells(evidence, setting, row, gold, columns, end))
            ]
            tables.append(f"**{setting.label}, {gold} links**\n\n{table(headings, rows)}")
            others = [r.name for r in evidence.with_other_links(setting, gold) if r.row in _ALIGNED]
            if others:
                tables.append(
                    f"Not counted, as they were compared with other {gold} links: "
                    f"{', '.join(others)}."
                )
    return tables


def _alignment_cells(
    evidence: Evidence,
    setting: Setting,
    row: str,
    gold: str,
    columns: Iterable[tuple[Reading, str]],
    end: EndWeight,
) -> list[str]:
    """A row's cells, if any: one run has its interval over sentences, several their deviation."""
    cells, runs = [], 0
    for reading, number in columns:
        rates = ErrorRate(gold, end, reading, number).of(evidence, setting, row)
        if not rates:
            return []
        runs = len(rates)
        text = Seeds(tuple(rate.value for rate in rates)).times(100).text()
        if runs == 1:
            text += f" ({100 * rates[0].low:.1f} to {100 * rates[0].high:.1f})"
        cells.append(text)
    return [*cells, str(runs)]


def table_5_paper() -> str:
    """Table 5 as the paper reports it."""
    headings = ["model", "normal AoL", "normal AoH", "shifted AoL", "shifted AoH"]
    rows = [[row, *(f"{value:.1f}" for value in paper.TABLE_5[row])] for row in COMPARED]
    return table(headings, rows)


def table_6(evidence: Evidence) -> str:
    """Head diversity in nats: encoder / decoder / cross."""
    settings = [s for s in evidence.settings() if _diversity(evidence, s, OURS, "1") is not None]
    headings = ["model", "paper", *(setting.label for setting in settings)]
    rows = []
    for (row, temperature), reported in paper.TABLE_6.items():
        name = f"{row}, τ = {temperature}" if row == OURS else row
        cells = [name, " / ".join(f"{value:.2f}" for value in reported)]
        cells += [_diversity(evidence, s, row, temperature) or NONE for s in settings]
        rows.append(cells)
    return table(headings, rows)


def _diversity(evidence: Evidence, setting: Setting, row: str, temperature: str) -> str | None:
    found = [
        evidence.seeds(setting, row, mean_diversity(kind, temperature)) for kind in ATTENTION_KINDS
    ]
    known = [seeds for seeds in found if seeds is not None]
    if len(known) < len(ATTENTION_KINDS):
        return None
    return " / ".join(seeds.text(2) for seeds in known) + f" (n={known[0].n})"


def areas_table(evidence: Evidence, labels: str) -> list[str]:
    """Areas under the ROC curve, by kind of bad pair."""
    tables = []
    for setting in evidence.settings():
        for row in (OURS, BASELINE):
            rankings = [
                run.rankings[labels]
                for run in evidence.runs(setting, row)
                if labels in run.rankings
            ]
            if rankings:
                title = f"**{setting.label}, {row}** (n={len(rankings)})"
                tables.append(f"{title}\n\n{_areas_of(rankings)}")
    return tables


def _areas_of(rankings: Sequence[QualityRanking]) -> str:
    headings = ["bad pairs", "null rate", "by layer", "best head", "cross-entropy"]
    has_given = rankings[0].overall.given_score is not None
    headings += ["the corpus's own score"] if has_given else []
    rows = []
    for name in ("all", *rankings[0].by_label):
        areas = [r.overall if name == "all" else r.by_label[name] for r in rankings]
        layers = zip(*(area.layer_null_rate for area in areas), strict=True)
        given = [area.given_score for area in areas if area.given_score is not None]
        rows.append(
            [
                name,
                _area_text([area.null_rate for area in areas]),
                " ".join(f"{over_seeds(layer).value:.2f}" for layer in layers),
                _area_text([area.best_head.auc for area in areas]),
                _area_text([area.cross_entropy for area in areas]),
                *([_area_text(given) if given else NONE] if has_given else []),
            ]
        )
    return table(headings, rows)


def _area_text(estimates: Sequence[Estimate]) -> str:
    """The mean over seeds, with the lowest and the highest limit of any seed."""
    area = over_seeds(estimates)
    return f"{area.value:.2f} ({area.low:.2f} to {area.high:.2f})"


def stability_table(evidence: Evidence) -> str | None:
    """Changes to the demo's recipe: BLEU, and what became of the outputs before the norm."""
    setting = Setting("tiny", DEMO)
    headings = ["model", "BLEU", "largest RMS(z)", "most closed gates"]
    rows = []
    for name in STABILITY_ROWS:
        runs = evidence.runs(setting, name)
        if not runs:
            continue
        label = VARIANTS[name].label if name in VARIANTS else name
        outputs = [_largest(run.attention.kinds) for run in runs if run.attention is not None]
        rms = [one for one, _ in outputs if one is not None]
        closed = [100 * one for _, one in outputs if one is not None]
        cells = [label, _bleu_cell(evidence, setting, name), _seeds_text(rms)]
        rows.append([*cells, f"{_seeds_text(closed)}%" if closed else NONE])
    return table(headings, rows) if rows else None


def _seeds_text(values: Sequence[float]) -> str:
    return Seeds(tuple(values)).text(0) if values else NONE


def _largest(kinds: Iterable[KindResult]) -> tuple[float | None, float | None]:
    """The largest root mean square before the norm, and share of closed gates, of all layers.

    None where they were not measured.
    """
    several = list(kinds)
    rms = [x for kind in several for x in kind.output_rms or () if x is not None]
    closed = [x for kind in several for x in kind.closed_gates or () if x is not None]
    return max(rms, default=None), max(closed, default=None)
