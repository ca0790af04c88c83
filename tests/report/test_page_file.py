"""The file: complete, closed to the network, of the size that was asked for."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from report_page import Sample
from report_samples import make_view, sample_views, with_output
from unpacking import unpack_view

from relakit.analysis import SentenceLinks
from relakit.broken_model import BrokenModelError
from relakit.report import page_file, write_page
from relakit.report.page_file import spread_to_fit
from relakit.report.page_html import ATTENTION_PAGE, FILTER_PAGE
from relakit.report.settings import MAX_BYTES


class Parts(HTMLParser):
    """Scripts, styles and attributes of a page, as a browser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self._inside = tag if tag in self.texts else None
        if self._inside:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data

    def value(self, tag: str, name: str) -> list[str]:
        return [value for t, n, value in self.attributes if (t, n) == (tag, name)]


@pytest.fixture
def parts(report: Path) -> Parts:
    return Parts(report.read_text(encoding="utf-8"))


def test_nothing_is_loaded_from_elsewhere(parts: Parts) -> None:
    loading = [
        (tag, name, value)
        for tag, name, value in parts.attributes
        if name in ("src", "srcset", "href", "action", "data") and not value.startswith("#")
    ]
    assert loading == [("link", "href", "data:,")]
    (style,) = parts.texts["style"]
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", parts.texts["script"][0])


def test_only_the_page_s_own_script_and_style_may_run(parts: Parts) -> None:
    (policy,) = parts.value("meta", "content")[:1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for name, text in (("script", parts.texts["script"][0]), ("style", parts.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"


def test_all_parts_of_the_page_are_used() -> None:
    folder = Path(page_file.__file__).parent / "page"
    assert {path.name for path in folder.iterdir()} == {
        name
        for parts in (ATTENTION_PAGE, FILTER_PAGE)
        for name in (parts.template, *parts.styles, *parts.scripts)
    }


def test_texts_stay_what_they_are(parts: Parts, sample: Sample) -> None:
    assert parts.texts["title"] == ["Attention <i>& more</i>"]
    data = json.loads(parts.texts["script"][1])
    assert [sentence["source"] for sentence in data["sentences"]] == [
        view.source for view in sample.views["ReLA-g"]
    ]
    assert data["givenSentences"] == 8
    assert parts.value("script", "id")[:2] == ["report-data", "view-0-0"]
    header, _, _ = unpack_view(parts.texts["script"][2])
    assert " ".join(header["sourceWords"][:2]) in sample.views["ReLA-g"][0].source
    assert len(parts.texts["script"]) == 2 + 2 * 8


def test_as_many_sentences_as_fit_are_kept(sample: Sample, tmp_path: Path) -> None:
    views = sample_views(60, sparse=True)
    path = tmp_path / "new" / "report.html"
    write_page(sample.analyses[:1], {"ReLA-g": []}, path)
    empty = path.stat().st_size
    assert write_page(sample.analyses[:1], {"ReLA-g": iter(views)}, path) == 60
    full = path.stat().st_size
    limit = (empty + full) // 2
    kept = write_page(sample.analyses[:1], {"ReLA-g": views}, path, max_bytes=limit)
    assert 20 <= kept <= 40
    assert limit * 0.9 <= path.stat().st_size <= limit
    data = json.loads(Parts(path.read_text(encoding="utf-8")).texts["script"][1])
    indices = [sentence["index"] for sentence in data["sentences"]]
    assert data["givenSentences"] == 60
    assert len(indices) == kept
    gaps = [after - before for before, after in pairwise([0, *indices, 59])]
    assert max(gaps) <= 4, "spread over the whole test set"


def test_sentences_too_large_to_show_are_counted_but_left_out(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = " ".join(f"w{number}" for number in range(600))
    huge = make_view(1, text, text, sparse=True, layers=1, heads=1)
    views = [make_view(0, "a b", "c d", sparse=True), huge]
    path = tmp_path / "report.html"

    def kept(max_bytes: int = MAX_BYTES) -> list[int]:
        count = write_page(sample.analyses[:1], {"ReLA-g": views}, path, max_bytes=max_bytes)
        data = json.loads(Parts(path.read_text(encoding="utf-8")).texts["script"][1])
        assert data["givenSentences"] == 2
        assert len(data["sentences"]) == count
        return [sentence["index"] for sentence in data["sentences"]]

    assert kept() == [0]
    views[1] = make_view(1, text[:900], text[:900], sparse=False)
    assert kept() == [0, 1]
    monkeypatch.setattr(page_file, "MOST_VIEW_BYTES", 100_000)
    assert kept() == [0, 1], "there is room for two of them"
    assert kept(max_bytes=1_000_000) == [0]


def test_spread_to_fit() -> None:
    assert spread_to_fit([1] * 10, 10) == list(range(10))
    assert spread_to_fit([1] * 10, 5) == [1, 3, 5, 7, 9]
    assert spread_to_fit([1] * 10, 1) == [5]
    assert spread_to_fit([5] * 10, 4) == []
    assert spread_to_fit([5] * 10, -4) == []
    assert spread_to_fit([], 4) == []
    for limit in range(100):
        sizes = [1, 50, 2, 7, 9, 1, 1, 30]
        assert sum(sizes[n] for n in spread_to_fit(sizes, limit)) <= limit


def test_what_does_not_belong_together_is_refused(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    rela, softmax = sample.analyses
    with pytest.raises(ValueError, match="at least one model"):
        write_page([], {}, path)
    with pytest.raises(ValueError, match="names that differ, got ReLA-g twice"):
        write_page([rela, rela], {}, path)
    with pytest.raises(ValueError, match="sentences of other, but analyses only of ReLA-g"):
        write_page([rela], {"other": []}, path)
    views = {
        "ReLA-g": [make_view(2, "a b", "c", sparse=True)],
        "softmax": [make_view(2, "a x", "c", sparse=False)],
    }
    with pytest.raises(ValueError, match="pair 3 is not the same for ReLA-g and softmax: 'a b'"):
        write_page([rela, softmax], views, path)
    assert not list(tmp_path.iterdir())


def test_the_broken_model_is_named(sample: Sample, tmp_path: Path) -> None:
    view = make_view(2, "a b", "c", sparse=True)
    view.weights["cross"][0, 0, 0, 0] = np.nan
    expected = "^softmax computes NaN or infinity in the cross attention of pair 3: its weights"
    with pytest.raises(BrokenModelError, match=expected):
        write_page(sample.analyses, {"softmax": [view]}, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_the_same_results_give_the_same_file(report: Path, sample: Sample, tmp_path: Path) -> None:
    again = tmp_path / "report.html"
    write_page(sample.analyses, sample.views, again, title="Attention <i>& more</i>")
    assert again.read_bytes() == report.read_bytes()


def block_ids(path: Path, start: str) -> list[str]:
    ids = Parts(path.read_text(encoding="utf-8")).value("script", "id")
    return [name for name in ids if name.startswith(start)]


def test_own_translations_get_the_room_that_is_left(sample: Sample, tmp_path: Path) -> None:
    views = [
        with_output(view, f"{view.target} Nein.", chrf=50, sparse=True)
        for view in sample_views(30, sparse=True)
    ]
    path = tmp_path / "report.html"

    def write(limit: int) -> tuple[int, int]:
        kept = write_page(sample.analyses[:1], {"ReLA-g": views}, path, max_bytes=limit)
        assert path.stat().st_size <= limit
        assert len(block_ids(path, "view-0-")) == kept
        return kept, len(block_ids(path, "own-0-"))

    assert write(10_000_000) == (30, 30)
    whole = path.stat().st_size
    kept, own = write(whole * 4 // 5)
    assert kept == 30, "sentences come first"
    assert 5 < own < 25
    assert 5 < write(whole // 2)[0] < 30


def test_links_that_do_not_fit_are_left_out_of_the_page(sample: Sample, tmp_path: Path) -> None:
    views = sample_views(3, sparse=True)
    path = tmp_path / "report.html"
    shape = (2, 3, 5, 4000)
    links = SentenceLinks(
        (20,) * 200, np.random.default_rng(0).integers(-1, 20, shape).astype(np.int16)
    )

    def write(limit: int) -> list[str]:
        write_page(
            sample.analyses, {"ReLA-g": views}, path, links={"ReLA-g": links}, max_bytes=limit
        )
        assert path.stat().st_size <= limit
        return block_ids(path, "links-")

    assert write(1_000_000) == ["links-0"]
    assert write(300_000) == []
