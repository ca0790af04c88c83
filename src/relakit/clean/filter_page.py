"""The report.html of `relakit filter`: one page that needs no network. No torch here."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from relakit.clean.calibration import LOOKS, Area, NoiseCalibration
from relakit.clean.calibration_features import BY_NAME
from relakit.clean.columns import COLUMNS
from relakit.clean.counted import BLANK
from relakit.clean.cut import Cut
from relakit.clean.filter_files import UNSCORED, FilterCounts
from relakit.clean.filter_samples import GROUPS, Sample
from relakit.clean.measures import PROBABILITY, Measure
from relakit.data.noise_draw import NoiseKind
from relakit.files.writing import write_whole
from relakit.report.page_html import FILTER_PAGE, page_html

TITLE: Final = "Filtered corpus"
BINS: Final = 50
_TAIL: Final = 0.5
"""Percent of pairs at either end that share the outermost bars."""
_REASONS: Final[Mapping[str, str]] = {
    BLANK: "a side is blank",
    UNSCORED: "no number to rank by",
    **{str(kind): words for kind, words in LOOKS.items()},
}


def write_filter_page(
    path: Path,
    *,
    counts: FilterCounts,
    cut: Cut,
    measure: Measure,
    calibration: NoiseCalibration | None,
    samples: Sequence[Sample],
    settings: Mapping[str, Any],
) -> None:
    """Write the page, whole or not at all.

    Args:
        path: the file.
        counts: how many pairs were kept, and why others were not.
        cut: which pairs were kept.
        measure: what they were ranked by.
        calibration: the calibration, if there is one.
        samples: pairs to show.
        settings: how all this was made, for people to read.
    """
    document = {
        "title": TITLE,
        "by": measure.name,
        "good": _good(measure),
        "cut": measure.shown(cut.limit),
        "cutInWords": measure.in_words(cut.limit),
        "kept": counts.kept,
        "rejected": counts.rejected,
        "reasons": [
            {
                "name": name,
                "count": count,
                "words": _REASONS.get(name, f"{name} beyond the cut"),
            }
            for name, count in counts.reasons.most_common()
        ],
        "histogram": histogram(cut, measure),
        "calibration": None if calibration is None else _calibration(calibration),
        "groups": list(GROUPS),
        "samples": [_sample(sample) for sample in sorted(samples, key=lambda one: one.badness)],
        "settings": [[name, _in_words(value)] for name, value in settings.items()],
    }
    page = page_html(document, {}, FILTER_PAGE)
    write_whole(path, page.encode("utf-8", "backslashreplace"))


def histogram(cut: Cut, measure: Measure) -> dict[str, Any]:
    """How many pairs were kept and rejected, by the number that people see."""
    rankable = ~np.isnan(cut.badness)
    values = measure.shown_numbers(cut.badness[rankable])
    if measure.name == PROBABILITY:
        low, high = 0.0, 1.0
    else:
        low, high = np.percentile(values, [_TAIL, 100 - _TAIL]).tolist()
        shown = measure.shown(cut.limit)
        low, high = min(low, shown), max(high, shown)
    high = high if high > low else low + 1
    edges = np.linspace(low, high, BINS + 1)
    kept = cut.kept[rankable]
    return {
        "edges": [_rounded(edge) for edge in edges.tolist()],
        "kept": np.histogram(np.clip(values[kept], low, high), edges)[0].tolist(),
        "rejected": np.histogram(np.clip(values[~kept], low, high), edges)[0].tolist(),
        "isCutOff": bool((values < low).any() or (values > high).any()),
    }


def _good(measure: Measure) -> str:
    if measure.name == PROBABILITY:
        return "high"
    good = next(column.good for column in COLUMNS if column.name == measure.name)
    return "high" if good == "high" else "low"


def _calibration(calibration: NoiseCalibration) -> dict[str, Any]:
    held_out, fitted_on = calibration.held_out, calibration.fitted_on
    return {
        "kinds": [{"name": kind, "looks": LOOKS[kind]} for kind in calibration.kinds],
        "features": [
            {
                "name": name,
                "above": BY_NAME[name].above,
                "below": BY_NAME[name].below,
                "weights": [
                    _rounded(model.against_clean.weights[place])
                    for model in calibration.kinds.values()
                ],
            }
            for place, name in enumerate(calibration.features)
        ],
        "areas": _areas(held_out.areas),
        "areasWithoutDoubted": None
        if held_out.areas_without_doubted is None
        else _areas(held_out.areas_without_doubted),
        "heldOut": {"clean": held_out.clean_log_odds, "noise": held_out.noise_log_odds},
        "isOfCorpus": fitted_on.origin == "corpus",
        "clean": fitted_on.clean,
        "dropped": fitted_on.dropped,
        "noise": sum(fitted_on.noise.values()),
        "expectedNoise": calibration.expected_noise,
    }


def _areas(areas: Mapping[str, Mapping[NoiseKind, Area]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "kinds": {kind: area.model_dump() for kind, area in by_kind.items()}}
        for name, by_kind in areas.items()
    ]


def _sample(sample: Sample) -> dict[str, Any]:
    found = asdict(sample)
    found["scores"] = {name: _rounded(value) for name, value in sample.scores.items()}
    found["shares"] = {name: _rounded(share) for name, share in sample.shares.items()}
    # Words alternating with what is between them, split where Python splits words.
    parts = {f"{side}Parts": re.split(r"(\s+)", found[side]) for side in ("source", "target")}
    return {**found, **parts, "value": _rounded(sample.value)}


def _rounded(number: float) -> float:
    """Round a number: short enough for the file, and exact enough to sort by."""
    return float(f"{number:.6g}") if math.isfinite(number) else 0.0


def _in_words(value: object) -> str:
    if value is None:
        return "not set"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
