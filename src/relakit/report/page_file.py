"""report.html: everything in one file that needs no network."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from relakit.analysis.results import ModelAnalysis, SentenceView, spread
from relakit.report.packing import PackedView, pack_view
from relakit.report.page_data import json_for_script, page_data
from relakit.writing import write_whole

TITLE: Final = "Attention report"
MAX_BYTES: Final = 16_000_000
MOST_TOKENS: Final = 400
MOST_VIEW_BYTES: Final = 2_000_000
"""A larger one would crowd out too many others."""
STYLES: Final = ("theme.css", "layout.css", "controls.css", "pictures.css", "print.css")
SCRIPTS: Final = (
    "elements.js",
    "numbers.js",
    "data.js",
    "attention.js",
    "theme.js",
    "state.js",
    "heat_map.js",
    "head_tiles.js",
    "links.js",
    "saving.js",
    "overview.js",
    "line_charts.js",
    "sortable_table.js",
    "tables.js",
    "settings.js",
    "sentence_list.js",
    "pane.js",
    "explorer.js",
    "keyboard.js",
    "main.js",
)


def write_page(
    analyses: Sequence[ModelAnalysis],
    views: Mapping[str, Iterable[SentenceView]],
    path: Path,
    *,
    title: str = TITLE,
    max_bytes: int = MAX_BYTES,
) -> int:
    """Write the page, whole or not at all.

    Args:
        analyses: of each model, with names that differ; the first is what the others are compared
            with.
        views: sentences to look at, by the model's name; they are read once, one at a time. A
            model may have none.
        path: the file; missing folders are made.
        title: at the top of the page.
        max_bytes: largest size of the file. If not all sentences fit, as many as do are kept,
            spread evenly. A view of more than `MOST_TOKENS` tokens, or of more than
            `MOST_VIEW_BYTES`, is always left out.

    Returns:
        How many sentences the page has.

    Raises:
        ValueError: no model, two with one name, views of an unknown model, or models whose
            sentences differ.
    """
    _check_names(analyses, views)
    given: set[int] = set()
    packed = [_packed(analysis, views.get(analysis.name, ()), given) for analysis in analyses]
    indices = sorted(set().union(*packed))
    _check_texts(analyses, packed)
    rest = _page(analyses, title, [], "")
    kept = spread_to_fit(
        [sum(_size(of_model[index]) for of_model in packed if index in of_model)
         for index in indices],
        max_bytes - len(rest.encode()),
    )  # fmt: skip
    chosen = [indices[number] for number in kept]
    sentences = [_sentence(index, packed) for index in chosen]
    blocks = "\n".join(
        f'<script type="text/plain" id="view-{number}-{index}">{of_model[index].text}</script>'
        for number, of_model in enumerate(packed)
        for index in chosen
        if index in of_model
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    page = _page(analyses, title, sentences, blocks, len(given))
    write_whole(path, page.encode("utf-8", "backslashreplace"))
    return len(chosen)


def _packed(
    analysis: ModelAnalysis, views: Iterable[SentenceView], given: set[int]
) -> dict[int, PackedView]:
    """A model's views that can be shown, by index; adds the indices of all to ``given``."""
    end = "ignored" if analysis.alignment is None else analysis.alignment.settings.end
    packed = {}
    for view in views:
        given.add(view.index)
        # Checked before packing, which needs several times the memory of the weights.
        if max(len(view.source_token_spans), len(view.target_token_spans)) <= MOST_TOKENS:
            of_view = pack_view(view, end)
            if len(of_view.text) <= MOST_VIEW_BYTES:
                packed[view.index] = of_view
    return packed


def spread_to_fit(sizes: Sequence[int], limit: int) -> list[int]:
    """As many item numbers as fit together, spread evenly over all items."""
    count = len(sizes)
    while count:
        kept = spread(count, len(sizes))
        total = sum(sizes[number] for number in kept)
        if total <= limit:
            return kept
        # As many as the average size allows, but at least one fewer than now.
        count = min(count - 1, max(0, limit) * count // total + 1)
    return []


def _page(
    analyses: Sequence[ModelAnalysis],
    title: str,
    sentences: Sequence[dict[str, Any]],
    blocks: str,
    given: int = 0,
) -> str:
    style = "\n".join(_part(name) for name in STYLES)
    # One module, so that the scripts share their names and none is global.
    script = "\n".join(_part(name) for name in SCRIPTS)
    document = page_data(analyses, title=title, sentences=sentences)
    document["givenSentences"] = given
    replacements = {
        "{{policy}}": _policy(style, script),
        "{{title}}": escape(title),
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": json_for_script(document),
        "{{views}}": blocks,
    }
    # Split once at the placeholders: what is filled in is never searched for more.
    page = _part("page.html")
    pieces = []
    for place, content in replacements.items():
        before, found, page = page.partition(place)
        if not found:
            raise AssertionError(f"page.html has no {place}, or not in its order")
        pieces += [before, content]
    return "".join([*pieces, page])


def _policy(style: str, script: str) -> str:
    """The page may run only its own script, and must not load anything."""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _part(name: str) -> str:
    return (files("relakit.report") / "page" / name).read_text(encoding="utf-8")


def _sentence(index: int, packed: Sequence[Mapping[int, PackedView]]) -> dict[str, Any]:
    views = [of_model.get(index) for of_model in packed]
    shown = next(view for view in views if view is not None)
    return {
        "index": index,
        "source": shown.source,
        "target": shown.target,
        "nullRates": [None if view is None else round(view.null_rate, 4) for view in views],
    }


def _size(view: PackedView) -> int:
    """Bytes of a view in the page, with its texts and its element."""
    return len(view.text) + len(json_for_script([view.source, view.target]).encode()) + 150


def _check_names(
    analyses: Sequence[ModelAnalysis], views: Mapping[str, Iterable[SentenceView]]
) -> None:
    names = [analysis.name for analysis in analyses]
    if not names:
        raise ValueError("a report needs the analysis of at least one model, got none")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"models need names that differ, got {', '.join(repeated)} twice")
    unknown = sorted(set(views) - set(names))
    if unknown:
        raise ValueError(
            f"there are sentences of {', '.join(unknown)}, but analyses only of {', '.join(names)}"
        )


def _check_texts(
    analyses: Sequence[ModelAnalysis], packed: Sequence[Mapping[int, PackedView]]
) -> None:
    """Raise ValueError unless all models have the same sentences."""
    first: dict[int, tuple[PackedView, str]] = {}
    for analysis, of_model in zip(analyses, packed, strict=True):
        for index, view in of_model.items():
            known, name = first.setdefault(index, (view, analysis.name))
            if (known.source, known.target) != (view.source, view.target):
                raise ValueError(
                    f"pair {index + 1:,} is not the same for {name} and {analysis.name}: "
                    f"{known.source!r} and {view.source!r}; analyze the models on the same files"
                )
