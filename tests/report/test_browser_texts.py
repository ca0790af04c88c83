"""The page of models that read texts, in a real browser: nothing of sentence pairs is there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_page import Page
from text_samples import TEXTS, text_analysis, text_view, two_models

from relakit.analysis.text_results import TextAnalysis
from relakit.report import write_page

# One worker runs them all: they share the browser.
pytestmark = pytest.mark.xdist_group("browser")


def opened(driver: Any, folder: Path, models: list[TextAnalysis], place: str = "") -> Page:
    path = folder / "report.html"
    views = {model.analysis.name: model.views for model in models}
    write_page([model.analysis for model in models], views, path)
    driver.get_log("browser")
    page = Page(driver, path, folder)
    page.open(place)
    return page


def nonzero(weights: Any) -> set[tuple[int, int]]:
    return {(int(row), int(column)) for row, column in np.argwhere(weights != 0)}


def test_the_heat_map_is_what_was_recorded(driver: Any, tmp_path: Path) -> None:
    models = two_models()
    place = "sentence=1&layer=2&head=3&units=tokens&compare=softmax"
    page = opened(driver, tmp_path, models, place)
    for pane, model in enumerate(models):
        weights = model.views[0].weights[1, 2]
        assert set(page.cells(pane)) == nonzero(weights)
    nulls = (models[0].views[0].weights[1, 2] == 0).all(-1)
    assert 0 < nulls.sum() < len(nulls)
    first, second = page.find_all(".heat-map")
    assert len(first.find_elements("css selector", ".null-row")) == nulls.sum()
    assert first.find_elements("css selector", ".hidden-keys"), "a causal model has a triangle"
    assert not second.find_elements("css selector", ".hidden-keys")
    assert page.errors() == []


def test_what_only_pairs_have_is_not_there(driver: Any, tmp_path: Path) -> None:
    models = two_models()
    page = opened(driver, tmp_path, models)
    tokens = sum(len(view.tokens) for view in models[0].views)
    assert page.find("#summary").text.endswith(f"3 texts, {tokens} tokens")
    cards = [card.text.split("\n")[0] for card in page.find_all("#overview .cards .card")]
    assert cards == ["Sparsity", "Null rate", "First sink", "Head diversity"]
    labels = [group.get_attribute("aria-label") for group in page.find_all("#toolbar [role=group]")]
    assert labels == ["Layer", "Head", "Axes", "Colours"]
    assert {table.get_attribute("data-table") for table in page.find_all("table")} == {
        "layers", "diversity", "heads",
    }  # fmt: skip
    assert [entry.text for entry in page.find_all("#sentence-text dt")] == [
        f"Text {page.address()['sentence']}"
    ]
    # Lines by layer of six numbers; three of them by head, of both models.
    assert len(page.find_all("#figures .chart")) == 6 + 3 * 2
    text = page.run(
        "return document.body.textContent.slice(0, document.body.textContent.indexOf('{\"title\"'))"
    )
    for word in ("BLEU", "gold", "Reference", "source", "Cross", "AER", "sentence"):
        assert word not in text, word
    for key in ("e", "s", "o"):  # keys of what is not there do nothing
        page.find("body").send_keys(key)
    assert page.address()["kind"] == "self"
    assert page.errors() == []


def test_words_and_a_window(driver: Any, tmp_path: Path) -> None:
    view = text_view(0, TEXTS[0], window=4)
    model = text_analysis("windowed", [view])
    page = opened(driver, tmp_path, [model], "layer=1&head=1&units=tokens")
    visible = int((view.seen[0, :, 1] - view.seen[0, :, 0]).sum())
    zeros = 1 - np.count_nonzero(view.weights[0, 0]) / visible
    assert f"here: {100 * zeros:.0f} % zeros" in page.find(".measures").text
    page.click('[aria-label="Axes"] [data-value="words"]')
    labels = [label.text for label in page.find_all(".heat-map .row-labels text")]
    assert [label for label in labels if label != "∅"] == list(view.read.words or ())
    groups = np.array(view.read.token_words)
    of_words = np.zeros((len(view.read.words or ()),) * 2)
    np.add.at(of_words, (groups[:, None], groups[None, :]), view.weights[0, 0])
    assert set(page.cells()) == nonzero(of_words)


def test_a_cell_of_the_grid_shows_its_head(driver: Any, tmp_path: Path) -> None:
    page = opened(driver, tmp_path, two_models(), "layer=2&head=3&compare=softmax")
    grid = page.find_all(".head-grid")[1]  # of softmax
    cell = grid.find_element("css selector", '[data-place="0-1"]')
    before = page.drawn()
    page.run("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", cell)
    page.wait(lambda: page.drawn() > before)
    place = page.address()
    assert (place["model"], place["compare"]) == ("softmax", "ReLA-g")
    assert (place["layer"], place["head"]) == ("1", "2")


def test_terms_have_the_meaning_that_they_have_for_texts(driver: Any, tmp_path: Path) -> None:
    page = opened(driver, tmp_path, two_models())
    described = page.run("return document.getElementById('term-clarity').textContent")
    assert "query and key" in described
    assert page.run("return document.getElementById('term-bleu')") is None
    assert page.run("return document.getElementById('term-query') !== null")


def test_many_layers_and_heads_are_lists(driver: Any, tmp_path: Path) -> None:
    view = text_view(0, TEXTS[2], layers=20, heads=18)
    page = opened(driver, tmp_path, [text_analysis("deep", [view])], "layer=20&head=18")
    selects = [s.get_attribute("aria-label") for s in page.find_all("#toolbar select")]
    assert selects == ["Layer", "Head", "Sort heads by"]
    assert "layer 20, head 18" in page.find(".pane h3").text


def test_nothing_is_wider_than_a_narrow_window(driver: Any, tmp_path: Path) -> None:
    driver.set_window_size(700, 900)
    try:
        page = opened(driver, tmp_path, two_models())
        widths = page.run(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert widths[0] <= widths[1]
    finally:
        driver.set_window_size(1280, 1000)


def test_without_texts_it_says_so(driver: Any, tmp_path: Path) -> None:
    model = two_models()[0]
    path = tmp_path / "report.html"
    write_page([model.analysis], {}, path)
    driver.get(path.as_uri())
    page = Page(driver, path, tmp_path)
    page.wait(lambda: page.find_all("#explorer .card"))
    assert "This report shows no text" in page.find("#explorer .card").text
    assert page.errors() == []
