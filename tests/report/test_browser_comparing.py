"""The report in a browser: models beside each other, their own translations, links as a file."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_page import Page, Sample
from report_samples import cross_words, make_view, sample_analysis, sample_views, with_output

from relakit.analysis import SentenceLinks, links_of, read_pharaoh
from relakit.analysis.results import SentenceView
from relakit.report import write_page

# In the group of the other tests that share the browser.
pytestmark = pytest.mark.xdist_group("browser")

LONG_NAME = "a-model-of-a-rather-long-name"


def written(view: SentenceView, place: int, sparse: bool) -> SentenceView:
    """Every second sentence is translated as in the reference, the others otherwise."""
    if place % 2:
        return view
    output = "" if place == 4 else view.target.replace(" ", " sehr ", 1)
    return with_output(view, output, chrf=90 - 10 * place - 5 * sparse, sparse=sparse)


@pytest.fixture(scope="module")
def models() -> Sample:
    """Two models, the second with a long name; all but the own translations as in `sample`."""
    analyses, views = [], {}
    for name, sparse in (("ReLA-g", True), (LONG_NAME, False)):
        usual = sample_views(6, sparse=sparse)
        views[name] = [written(view, n, sparse) for n, view in enumerate(usual)]
        analyses.append(sample_analysis(name, usual, sparse=sparse))
    return Sample(analyses, views)


@pytest.fixture(scope="module")
def links(models: Sample) -> SentenceLinks:
    """Of ReLA-g in nine pairs: the six that are shown, and three more."""
    random = np.random.default_rng(2)
    sizes = [len(view.target_words) for view in models.views["ReLA-g"]] + [3, 0, 5]
    source_words = random.integers(-1, 7, (2, 3, 5, sum(sizes))).astype(np.int16)
    return SentenceLinks(tuple(sizes), source_words)


@pytest.fixture
def page(driver: Any, models: Sample, links: SentenceLinks, tmp_path: Path) -> Page:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
    )
    driver.get_log("browser")
    page = Page(driver, tmp_path / "report.html", downloads)
    first = models.analyses[0].model_copy(update={"pairs": 9})
    write_page([first, models.analyses[1]], models.views, page.path, links={"ReLA-g": links})
    return page


class TestOwnTranslations:
    def test_the_switch_shows_attention_to_them(self, page: Page, models: Sample) -> None:
        page.open("sentence=1&kind=cross&layer=2&head=1&units=tokens&text=reference")
        before = page.picture()
        page.click('[aria-label="Translation"] [data-value="own"]')
        assert page.address()["text"] == "own"
        assert page.picture() != before
        for pane, views in enumerate(models.views.values()):
            own = views[0].own
            assert own is not None
            nonzero = np.nonzero(own.weights["cross"][1, 0])
            assert set(page.cells(pane)) == set(zip(*map(list, nonzero), strict=True))
        assert "own translation" in page.find(".pane").text
        assert not page.find_all(".links .gold path"), "the gold is that of the reference"
        page.press("o")
        assert page.picture() == before
        assert page.errors() == []

    def test_one_that_is_the_reference_or_empty(self, page: Page) -> None:
        page.open("sentence=2&text=reference&layer=1&head=1")
        before = page.picture()
        page.press("o")
        assert page.picture().replace(", own translation", "") == before
        page.open("sentence=5&text=own&layer=1&head=1&units=tokens&kind=cross&reading=normal")
        assert len(page.find_all(".pane .heat-map")) == 2
        assert {row for row, _ in page.cells(1)} == {0}, "only the end was predicted"
        assert "nothing" in page.find("#sentence-text").text
        assert page.errors() == []

    def test_one_that_was_not_kept(self, page: Page, models: Sample, tmp_path: Path) -> None:
        views = {"ReLA-g": models.views["ReLA-g"][:1], LONG_NAME: models.views[LONG_NAME][:1]}
        whole = write_page(models.analyses, views, page.path)
        assert whole == 1
        limit = page.path.stat().st_size - 1000
        write_page(models.analyses, views, page.path, max_bytes=limit)
        page.open("text=own")
        assert ["was not kept" in pane.text for pane in page.find_all(".pane")] == [True, True]
        assert page.errors() == []

    def test_differences_to_the_reference_are_marked(self, page: Page, models: Sample) -> None:
        page.open("sentence=1")
        view = models.views["ReLA-g"][0]
        assert view.output is not None
        rows = page.run(
            "return [...document.querySelectorAll('#sentence-text dd')].map(d => ({"
            "added: [...d.querySelectorAll('ins')].map(e => e.textContent),"
            "missing: [...d.querySelectorAll('del')].map(e => e.textContent),"
            "text: [...d.childNodes].filter(n => n.nodeName !== 'DEL')"
            ".map(n => n.textContent).join('')}))"
        )
        assert rows[2]["added"] == ["sehr"]
        assert rows[2]["missing"] == []
        assert rows[2]["text"].startswith(view.output)
        assert "chrF 85" in rows[2]["text"]
        page.open("sentence=2")
        assert page.find("#sentence-text").text.count("✓ the reference") == 2
        page.open("sentence=5")
        target = models.views["ReLA-g"][4].target
        missing = page.run("return document.querySelector('#sentence-text del').textContent")
        assert missing == target

    def test_without_translations_there_is_no_switch(self, page: Page, models: Sample) -> None:
        view = make_view(0, "a b", "c d", sparse=True)
        view = dataclasses.replace(view, chrf=None, output=None)
        write_page(models.analyses[:1], {"ReLA-g": [view]}, page.path)
        page.open("text=own")
        assert not page.find_all('[aria-label="Translation"]')
        assert page.address()["text"] == "reference"
        page.find("body").send_keys("o")
        assert page.address()["text"] == "reference"
        assert page.errors() == []


def test_sentences_are_sorted_by_scores(page: Page, models: Sample) -> None:
    page.open()
    views = models.views["ReLA-g"]
    for name, values, falling in [
        ("lowest chrF first", [view.chrf or 0 for view in views], False),
        ("highest chrF first", [view.chrf or 0 for view in views], True),
        ("highest loss first", [view.loss or 0 for view in views], True),
        ("lowest loss first", [view.loss or 0 for view in views], False),
        ("shortest first", [len(view.source) for view in views], False),
        ("models differ most in chrF", [5 * (n % 2 == 0) for n in range(6)], True),
    ]:  # fmt: skip
        page.order_sentences(name)
        sign = -1 if falling else 1
        assert page.sentences() == sorted(range(6), key=lambda n: (sign * values[n], n)), name
    page.order_sentences("lowest chrF first")
    page.press("m")
    assert page.sentences()[0] == 4, "the order is that of the model's own scores"


class TestColours:
    def fills(self, page: Page, pane: int) -> dict[tuple[int, int], str]:
        colours = page.run(
            "return [...document.querySelectorAll('.heat-map')[arguments[0]]"
            ".querySelectorAll('.cells rect')].map(r => r.getAttribute('fill'))",
            pane,
        )
        return dict(zip(page.cells(pane), colours, strict=True))

    def legends(self, page: Page) -> list[str]:
        return [legend.text for legend in page.find_all(".heat-map .legend-marks")]

    @pytest.fixture
    def two(self, page: Page, models: Sample) -> Page:
        """One pair: row 0 has 1 and 3 in the first model, row 0 has 0.25 and 0.75 in the second."""
        views = {}
        for name, row in (("ReLA-g", [1, 3, 0]), (LONG_NAME, [0.25, 0.75, 0])):
            view = make_view(0, "a b", "c", sparse=True)
            view.weights["cross"][:] = 0
            view.weights["cross"][0, 0, 0] = row
            views[name] = [view]
        write_page(models.analyses, views, page.path)
        return page

    def test_a_row_s_share_where_one_model_sums_to_one(self, two: Page) -> None:
        two.open("layer=1&head=1&kind=cross&reading=normal&units=tokens")
        assert two.address()["scale"] == ""
        assert self.fills(two, 0) == self.fills(two, 1)
        assert all("100 % of the row" in legend for legend in self.legends(two))

    def test_the_largest_weight_of_both(self, two: Page) -> None:
        two.open("layer=1&head=1&kind=cross&reading=normal&units=tokens&scale=shared")
        ours, theirs = self.fills(two, 0), self.fills(two, 1)
        assert len({*ours.values(), *theirs.values()}) == 4
        assert all("3 in both pictures" in legend for legend in self.legends(two))
        two.click('[aria-label="Colours"] [data-value="own"]')
        assert self.fills(two, 0) == self.fills(two, 1)
        assert ["3" in self.legends(two)[0], "0.75" in self.legends(two)[1]] == [True, True]
        two.press("v")
        assert two.address()["scale"] == "shared"

    def test_two_models_of_a_kind_share_the_weights(self, page: Page, models: Sample) -> None:
        twin = models.analyses[0].model_copy(update={"name": "twin"})
        views = {"ReLA-g": models.views["ReLA-g"], "twin": models.views["ReLA-g"]}
        write_page([models.analyses[0], twin], views, page.path)
        page.open("sentence=1")
        assert all("in both pictures" in legend for legend in self.legends(page))
        page.open("sentence=1&compare=&scale=shared")
        assert "in both" not in self.legends(page)[0], "there is nothing to share with"


class TestPharaoh:
    BUTTON = '.pane[data-model="{}"] [data-save="links-Pharaoh"]'

    @pytest.mark.parametrize(("reading", "place"), [("normal", 0), ("shifted", 1)])
    def test_links_of_all_pairs(
        self, page: Page, links: SentenceLinks, tmp_path: Path, reading: Any, place: int
    ) -> None:
        page.open(f"sentence=1&layer=2&head=3&reading={reading}")
        text = page.save(self.BUTTON.format(0)).decode()
        assert text.splitlines() == [*links.pharaoh(reading, 1, 2)]
        assert len(text.splitlines()) == 9
        assert page.saved_name == f"rela-g-layer-2-head-3-{reading}.pharaoh"
        page.open(f"sentence=1&layer=3&head=mean&reading={reading}")
        text = page.save(self.BUTTON.format(0)).decode()
        assert text.splitlines() == [*links.pharaoh(reading, 2, 4)]
        assert page.saved_name == f"rela-g-layer-3-mean-of-heads-{reading}.pharaoh"

    def test_only_those_of_the_page(self, page: Page, models: Sample, tmp_path: Path) -> None:
        """The other lines are blank, and the button and the name say so."""
        few = models.analyses[0].model_copy(update={"pairs": 5})
        kept = [models.views["ReLA-g"][n] for n in (1, 3)]
        write_page([few], {"ReLA-g": kept}, page.path)
        page.open("layer=2&head=1&reading=normal")
        content = page.save(self.BUTTON.format(0))
        assert page.saved_name == "rela-g-layer-2-head-1-normal-2-of-5.pharaoh"
        path = tmp_path / "links.pharaoh"
        path.write_bytes(content)
        found = [gold.sure for gold in read_pharaoh(path)]
        expected = {view.index: links_of(cross_words(view, 1, 0)) for view in kept}
        assert found == [expected.get(n, frozenset()) for n in range(5)]
        title = page.find(self.BUTTON.format(0)).get_attribute("title")
        assert "2 pairs of this page; the other 3 lines are blank" in title

    def test_the_words_of_an_own_translation_are_in_no_file(self, page: Page) -> None:
        page.open("sentence=1&text=own&kind=cross")
        assert not page.find_all('[data-save="links-Pharaoh"]')


class TestRoom:
    def widths(self, page: Page, selector: str) -> list[tuple[int, int]]:
        found = page.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(e => [e.scrollWidth, e.clientWidth])",
            selector,
        )
        return [(inner, outer) for inner, outer in found]

    @pytest.mark.parametrize("width", [1400, 1000, 400])
    def test_tables_and_links_are_not_cut(self, page: Page, models: Sample, width: int) -> None:
        page.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        try:
            page.open("sentence=6&layer=2&head=1&kind=cross")
            links = self.widths(page, '.picture[aria-label="Links between words"]')
            tables = self.widths(page, "#tables .card:not(.wide) .scroll")
            assert page.run("return document.documentElement.scrollWidth") <= width
        finally:
            page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert len(links) == 2
        assert all(inner <= outer for inner, outer in links)
        assert len(tables) == 3
        assert all(inner <= outer for inner, outer in tables)
        words = page.run(
            "return [...document.querySelectorAll('.links')].map(svg => [...svg.querySelectorAll"
            "('.word')].every(w => w.getBBox().x >= 0 && w.getBBox().x + w.getBBox().width <= "
            "svg.viewBox.baseVal.width + 1))"
        )
        assert words == [True, True]

    def test_a_line_of_words_runs_as_it_is_written(self, page: Page, models: Sample) -> None:
        view = make_view(0, "שלום לכם עולם", "one two three", sparse=True)
        write_page(models.analyses[:1], {"ReLA-g": [view]}, page.path)
        page.open("kind=cross")
        places = page.run(
            "return ['source', 'target'].map(side => [...document.querySelectorAll("
            "`.links .${side}`)].map(w => +w.getAttribute('x')))"
        )
        assert places[0] == sorted(places[0], reverse=True)
        assert places[1] == sorted(places[1])
