"""The report in a browser: the summary in words, terms that explain themselves, where it opens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_page import Page, Sample
from report_samples import sample_views

from relakit.report import write_page
from relakit.report.in_words import comparison_in_words, model_in_words

# In the group of the other tests that share the browser.
pytestmark = pytest.mark.xdist_group("browser")

ESCAPE, TAB = "\ue00c", "\ue004"


def test_the_summary_comes_first(page: Page, sample: Sample) -> None:
    paragraphs = [
        text.replace("\N{NO-BREAK SPACE}", " ")
        for text in page.run(
            "return [...document.querySelectorAll('#overview .in-words p')].map(p => p.textContent)"
        )
    ]
    expected = [
        *(model_in_words(analysis, None) for analysis in sample.analyses),
        comparison_in_words(*sample.analyses),
    ]
    assert paragraphs == [text.replace("\N{NO-BREAK SPACE}", " ") for text in expected]


class TestTerms:
    TERM = '#overview .in-words [data-term="aer"]'

    def explanation(self, page: Page) -> str | None:
        box = page.find("#explanation")
        return box.text if box.is_displayed() else None

    def test_pointing_and_going_away(self, page: Page) -> None:
        from selenium.webdriver import ActionChains

        assert self.explanation(page) is None
        ActionChains(page.driver).move_to_element(page.find(self.TERM)).perform()
        assert "0 is perfect" in (self.explanation(page) or "")
        ActionChains(page.driver).move_to_element(page.find("h1")).perform()
        assert self.explanation(page) is None

    def test_the_keyboard_reaches_them(self, page: Page) -> None:
        page.run("arguments[0].focus()", page.find(self.TERM))
        assert "Alignment error rate" in (self.explanation(page) or "")
        page.driver.switch_to.active_element.send_keys(ESCAPE)
        assert self.explanation(page) is None
        page.run("document.querySelector('#overview .in-words .term').focus()")
        first = self.explanation(page)
        page.driver.switch_to.active_element.send_keys(TAB)
        assert self.explanation(page) not in (None, first)

    def test_so_does_a_finger(self, page: Page) -> None:
        page.run(
            "for (const type of ['pointerover', 'pointerout']) arguments[0].dispatchEvent("
            "new PointerEvent(type, {bubbles: true, pointerType: 'touch'}));",
            page.find(self.TERM),
        )
        assert self.explanation(page) is None, "only passing by"
        page.run("arguments[0].click()", page.find(self.TERM))
        assert "0 is perfect" in (self.explanation(page) or "")
        page.run("document.querySelector('h1').click()")
        assert self.explanation(page) is None

    def test_every_term_has_an_explanation(self, page: Page) -> None:
        terms = page.run(
            "return [...document.querySelectorAll('[data-term]')].map(t => [t.dataset.term,"
            "document.getElementById(t.getAttribute('aria-describedby'))?.textContent ?? ''])"
        )
        named = {name for name, _ in terms}
        assert {
            "aer", "aol", "aoh", "bleu", "null", "sink", "sparsity", "diversity", "temperature",
            "reading", "clarity", "shuffled", "colours", "translation", "units", "gates", "rms",
        } <= named  # fmt: skip
        assert all(len(text) > 40 for _, text in terms)

    def test_the_head_of_a_column_sorts_and_explains(self, page: Page) -> None:
        button = '#head-table [data-column="First sink"]'
        page.run("arguments[0].focus(); arguments[0].click()", page.find(button))
        assert "says little" in (self.explanation(page) or "")
        assert page.find(button).text.endswith("↑")


def test_it_says_why_it_opens_where_it_does(page: Page) -> None:
    assert "with the lowest alignment error rate" in page.find("#opening").text


@pytest.mark.parametrize("clearest", [(0, 2), (2, 0)])
def test_without_gold_it_opens_on_the_clearest_head(
    driver: Any, sample: Sample, tmp_path: Path, clearest: tuple[int, int]
) -> None:
    """Neither on one that always looks at one word nor on one that is null."""
    views = sample_views(3, sparse=True)
    for view in views:
        cross = view.weights["cross"]
        cross[:] = 0
        cross[0, 0, :, 0] = 9  # a sink
        cross[1, 1] = 1  # everything
        rows = np.arange(min(cross.shape[2:]))
        cross[(*clearest, rows, rows)] = 0.01  # faint, but clear
    analysis = sample.analyses[0].model_copy(update={"alignment": None})
    page = Page(driver, tmp_path / "report.html", tmp_path)
    write_page([analysis], {"ReLA-g": views}, page.path)
    page.open()
    layer, head = clearest
    assert (page.address()["layer"], page.address()["head"]) == (str(layer + 1), str(head + 1))
    opening = page.find("#opening").text
    assert f"layer {layer + 1}, head {head + 1}" in opening
    assert "points most clearly" in opening
    assert "no gold links" in opening
    assert page.errors() == []


def test_an_address_leads_to_the_explorer(page: Page) -> None:
    top = "return document.getElementById('explorer').getBoundingClientRect().top"
    page.open()
    assert page.run("return scrollY") == 0
    page.open("sentence=3&layer=2")
    assert -5 <= page.run(top) <= 100
