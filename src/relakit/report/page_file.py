"""report.html: everything in one file that needs no network."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from relakit.analysis.results import ModelAnalysis, spread
from relakit.analysis.sentence_links import SentenceLinks
from relakit.broken_model import blamed_on
from relakit.files.writing import write_whole
from relakit.report.head_clarity import mean_clarity
from relakit.report.packing import PackedView, View, is_too_long, pack_links, pack_view
from relakit.report.page_data import json_for_script, page_data
from relakit.report.page_html import block_element, page_html
from relakit.report.settings import MAX_BYTES, TITLE

MOST_VIEW_BYTES: Final = 2_000_000
"""A larger view would crowd out too many others, if there are others."""
LINKS_SHARE: Final = 0.25
"""The largest share of the file that the links of all pairs may take."""


def write_page(
    analyses: Sequence[ModelAnalysis],
    views: Mapping[str, Iterable[View]],
    path: Path,
    *,
    links: Mapping[str, SentenceLinks] | None = None,
    title: str = TITLE,
    max_bytes: int = MAX_BYTES,
) -> int:
    """Write the page, whole or not at all.

    Args:
        analyses: one per model, with different names; the others are compared with the first.
        views: sentences, or texts, to inspect, by model name; they are read once, one at a time. A
            model may have none.
        path: the file; missing folders are created.
        links: the links of all pairs, by model name, which readers can save from the page. If they
            would take more than `LINKS_SHARE` of the file, only the links of the sentences that the
            page shows can be saved.
        title: at the top of the page.
        max_bytes: largest size of the file. If not all sentences fit, as many as do are kept,
            spread evenly. A view of more than `MOST_TOKENS` tokens is always left out, and so is
            one of more than `MOST_VIEW_BYTES` if there is no room for all to be that large. If
            space remains, sentences also get the attention to the models' own translations, spread
            in the same way.

    Returns:
        How many sentences the page has.

    Raises:
        ValueError: there is no model, two have the same name, views belong to an unknown model,
            sentences differ between models, or translation models are mixed with models that read
            texts.
    """
    _check_names(analyses, views)
    check_one_task(analyses)
    given: set[int] = set()
    packed = [_packed(analysis, views.get(analysis.name, ()), given) for analysis in analyses]
    most = max(MOST_VIEW_BYTES, max_bytes // (len(analyses) * max(1, len(given))))
    packed = [_without_large(of_model, most) for of_model in packed]
    _check_texts(analyses, packed)
    document = page_data(
        analyses,
        title=title,
        clarity=[mean_clarity(view.clarity for view in of_model.values()) for of_model in packed],
    )
    document["givenSentences"] = analyses[0].pairs if analyses[0].is_of_texts else len(given)
    document["hasWords"] = any(view.has_words for of_model in packed for view in of_model.values())
    blocks = _link_blocks(analyses, links or {}, int(max_bytes * LINKS_SHARE))
    room = max_bytes - len(page_html({**document, "sentences": []}, blocks).encode())
    chosen, view_blocks = _fitting(packed, room)
    document["sentences"] = [_sentence(index, packed) for index in chosen]
    page = page_html(document, {**blocks, **view_blocks})
    write_whole(path, page.encode("utf-8", "backslashreplace"))
    return len(chosen)


def _fitting(
    packed: Sequence[Mapping[int, PackedView]], room: int
) -> tuple[list[int], dict[str, str]]:
    """The sentences that fit, by index, and the blocks of their views.

    Own translations get the space that is left.
    """
    indices = sorted(set().union(*packed))
    sizes = {i: sum(map(_size, _views_of(i, packed))) for i in indices}
    chosen = _spread_indices(sizes, room)
    own_sizes = {i: sum(map(_own_size, _views_of(i, packed))) for i in chosen}
    left = room - sum(sizes[i] for i in chosen)
    with_own = _spread_indices({i: size for i, size in own_sizes.items() if size}, left)
    blocks: dict[str, str] = {}
    for number, of_model in enumerate(packed):
        blocks |= {f"view-{number}-{i}": of_model[i].text for i in chosen if i in of_model}
        own_texts = {i: of_model[i].own_text for i in with_own if i in of_model}
        blocks |= {f"own-{number}-{i}": text for i, text in own_texts.items() if text is not None}
    return chosen, blocks


def _spread_indices(sizes: Mapping[int, int], limit: int) -> list[int]:
    """`spread_to_fit` for items that are named by indices."""
    indices = list(sizes)
    return [indices[number] for number in spread_to_fit(list(sizes.values()), limit)]


def _packed(
    analysis: ModelAnalysis, views: Iterable[View], given: set[int]
) -> dict[int, PackedView]:
    """A model's views that can be shown, by index; adds the index of every view to ``given``."""
    end = "ignored" if analysis.alignment is None else analysis.alignment.settings.end
    packed = {}
    for view in views:
        given.add(view.index)
        if not is_too_long(view):
            with blamed_on(analysis.name):
                packed[view.index] = pack_view(view, end)
    return packed


def _without_large(packed: Mapping[int, PackedView], most: int) -> dict[int, PackedView]:
    """The views of at most ``most`` bytes, without own translations that have more."""
    return {
        index: replace(view, own_text=None) if len(view.own_text or "") > most else view
        for index, view in packed.items()
        if len(view.text) <= most
    }


def _link_blocks(
    analyses: Sequence[ModelAnalysis], links: Mapping[str, SentenceLinks], limit: int
) -> dict[str, str]:
    """The links of all models, by element id; none if they do not fit."""
    blocks = {
        f"links-{number}": pack_links(links[analysis.name])
        for number, analysis in enumerate(analyses)
        if analysis.name in links
    }
    return blocks if sum(map(len, blocks.values())) <= limit else {}


def spread_to_fit(sizes: Sequence[int], limit: int) -> list[int]:
    """As many item numbers as fit together, spread evenly over all items."""
    count = len(sizes)
    while count:
        kept = spread(count, len(sizes))
        total = sum(sizes[number] for number in kept)
        if total <= limit:
            return kept
        # As many as the average size allows, but at least one fewer than before.
        count = min(count - 1, max(0, limit) * count // total + 1)
    return []


def _views_of(index: int, packed: Sequence[Mapping[int, PackedView]]) -> list[PackedView]:
    return [of_model[index] for of_model in packed if index in of_model]


def _sentence(index: int, packed: Sequence[Mapping[int, PackedView]]) -> dict[str, Any]:
    views = [of_model.get(index) for of_model in packed]
    shown = next(view for view in views if view is not None)
    return {
        "index": index,
        "source": shown.source,
        "target": shown.target,
        "nullRates": [view and _rounded(view.null_rate) for view in views],
        "chrfs": [view and _rounded(view.chrf) for view in views],
        "losses": [view and _rounded(view.loss) for view in views],
    }


def _rounded(number: float | None) -> float | None:
    """Short enough for the file, and exact enough to sort by."""
    return None if number is None else round(number, 4)


def _size(view: PackedView) -> int:
    """How many bytes a view takes in the page, with its texts, its numbers and its element."""
    texts = json_for_script([view.source, view.target])
    return len(view.text) + len(texts.encode()) + 250


def _own_size(view: PackedView) -> int:
    return 0 if view.own_text is None else len(view.own_text) + len(block_element("", "")) + 30


def check_one_task(analyses: Sequence[ModelAnalysis]) -> None:
    """Raise ValueError unless all models were analyzed on pairs, or all on texts."""
    for analysis in analyses[1:]:
        if analysis.is_of_texts != analyses[0].is_of_texts:
            raise ValueError(
                f"of {analyses[0].name} and {analysis.name}, one was analyzed on texts and one on "
                "sentence pairs: make a report of each"
            )


def _check_names(analyses: Sequence[ModelAnalysis], views: Mapping[str, Iterable[View]]) -> None:
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
                what = "text" if analysis.is_of_texts else "pair"
                raise ValueError(
                    f"{what} {index + 1:,} is not the same for {name} and {analysis.name}: "
                    f"{known.source!r} and {view.source!r}; analyze the models on the same files"
                )
