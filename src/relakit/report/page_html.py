"""The page as text: markup, style, script and data in one document that cannot load anything."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any, Final

from relakit.report.page_data import json_for_script


@dataclass(frozen=True)
class PageParts:
    """What a page is assembled from: files in the folder ``page``."""

    template: str
    styles: tuple[str, ...]
    scripts: tuple[str, ...]


_STYLES: Final = ("theme.css", "layout.css", "controls.css", "pictures.css")
_ATTENTION_SCRIPTS: Final = (
    "elements.js",
    "numbers.js",
    "data.js",
    "glossary_terms.js",
    "glossary.js",
    "attention.js",
    "theme.js",
    "state.js",
    "colour_scale.js",
    "heat_map.js",
    "head_tiles.js",
    "links.js",
    "saving.js",
    "pharaoh.js",
    "overview.js",
    "head_grid.js",
    "line_charts.js",
    "sortable_table.js",
    "tables.js",
    "settings.js",
    "sentence_list.js",
    "sentence_text.js",
    "pane.js",
    "explorer.js",
    "keyboard.js",
    "main.js",
)
ATTENTION_PAGE: Final = PageParts("page.html", (*_STYLES, "print.css"), _ATTENTION_SCRIPTS)
"""The report of `relakit analyze`."""
FILTER_PAGE: Final = PageParts(
    "filter.html",
    (*_STYLES, "filter.css", "print.css"),
    (
        "elements.js",
        "numbers.js",
        "filter_terms.js",
        "glossary.js",
        "theme.js",
        "sortable_table.js",
        "filter_histograms.js",
        "filter_curves.js",
        "filter_tables.js",
        "filter_samples.js",
        "filter_main.js",
    ),
)
"""The report of `relakit filter`."""


def page_html(
    document: Mapping[str, Any], blocks: Mapping[str, str], parts: PageParts = ATTENTION_PAGE
) -> str:
    """The whole page.

    Args:
        document: what the script reads as JSON, including the ``title``.
        blocks: by element id, what the script unpacks on demand; plain ASCII.
        parts: which page to build.
    """
    style = "\n".join(_part(name) for name in parts.styles)
    # One module, so that the scripts share their names and no name is global.
    script = "\n".join(_part(name) for name in parts.scripts)
    replacements = {
        "{{policy}}": _policy(style, script),
        "{{title}}": escape(document["title"]),
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": json_for_script(document),
        "{{blocks}}": "\n".join(block_element(name, text) for name, text in blocks.items()),
    }
    # Split once at the placeholders: what is filled in is never searched for placeholders.
    page = _part(parts.template)
    pieces = []
    for place, content in replacements.items():
        before, found, page = page.partition(place)
        if not found:
            raise AssertionError(f"{parts.template} has no {place}, or not in its order")
        pieces += [before, content]
    return "".join([*pieces, page])


def block_element(name: str, text: str) -> str:
    """The element that holds a block."""
    return f'<script type="text/plain" id="{name}">{text}</script>'


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
