"""The report in a real browser: what is shown is what is in the data, and every control works."""

import json
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from report_page import Page, Sample
from report_samples import cross_words, make_view

from relakit.attention_kinds import AttentionKind
from relakit.report import write_page

# One worker runs them all: they share the browser.
pytestmark = pytest.mark.xdist_group("browser")

SVG = "{http://www.w3.org/2000/svg}"
LEFT, UP, RIGHT, DOWN = "\ue012", "\ue013", "\ue014", "\ue015"
SHIFT, ENTER = "\ue008", "\ue007"


def test_it_opens_without_errors_and_without_network(page: Page) -> None:
    assert page.errors() == []
    log = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    requests = [e["params"] for e in log if e["method"] == "Network.requestWillBeSent"]
    file = page.path.as_uri()
    # The browser's own first page may be loading still.
    of_the_page = [r["request"]["url"] for r in requests if r["documentURL"].startswith(file)]
    assert [url.partition("#")[0] for url in of_the_page if not url.startswith("data:")] == [file]


def test_all_parts_are_there(page: Page, sample: Sample) -> None:
    assert page.find("h1").text == "Attention <i>& more</i>"
    cards = [card.text for card in page.find_all("#overview .cards .card")]
    assert [text.split("\n")[0] for text in cards] == [
        "BLEU", "Sparsity", "Null rate", "Alignment error rate",
    ]  # fmt: skip
    assert {"33.1", "28.4", "−4.7"} <= set(cards[0].split())
    assert len(page.find_all("#figures .chart")) == 3 + 4 + 3 + 3 + 2 + 3 + 3
    assert {table.get_attribute("data-table") for table in page.find_all("table")} == {
        "alignment", "diversity", "flops", "classes", "heads",
    }  # fmt: skip
    assert "8 sentences" in page.find("#sentence-count").text
    assert page.find("#settings details").get_attribute("open") is None
    assert len(page.find_all(".pane")) == 2, "two models stand side by side from the start"


def test_it_starts_with_the_best_aligning_head(page: Page, sample: Sample) -> None:
    alignment = sample.analyses[0].alignment
    assert alignment is not None
    layer, head = alignment.scores(alignment.best_reading).best_head
    place = page.address()
    assert (place["layer"], place["head"]) == (str(layer + 1), str(head + 1))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_cell_is_empty_exactly_where_the_weight_is_zero(
    page: Page, sample: Sample, kind: AttentionKind
) -> None:
    page.open(f"sentence=6&kind={kind}&layer=2&head=3&units=tokens&compare=softmax")
    for pane, name in enumerate(("ReLA-g", "softmax")):
        weights = sample.views[name][5].weights[kind][1, 2]
        assert set(page.cells(pane)) == set(zip(*map(list, np.nonzero(weights)), strict=True))
        assert len(page.cells(pane)) == np.count_nonzero(weights)


def test_null_rows_are_marked(page: Page, sample: Sample) -> None:
    page.open("sentence=6&kind=cross&layer=1&head=3&units=tokens&compare=")
    nulls = (sample.views["ReLA-g"][5].weights["cross"][0, 2] == 0).all(-1)
    assert 0 < nulls.sum() < len(nulls)
    assert len(page.find_all(".heat-map .null-row")) == nulls.sum()
    assert len(page.find_all(".heat-map .null-mark")) == nulls.sum()


@pytest.mark.parametrize(("reading", "first"), [("normal", 0), ("shifted", 1)])
@pytest.mark.parametrize("head", [1, None])
def test_pointing_at_a_word_shows_its_weight(
    page: Page, sample: Sample, reading: str, first: int, head: int | None
) -> None:
    from selenium.webdriver import ActionChains

    view = sample.views["ReLA-g"][5]
    name = "mean" if head is None else head + 1
    page.open(f"sentence=6&layer=3&head={name}&units=words&reading={reading}&compare=")
    words = cross_words(view, 2, head, first)
    row, column = np.unravel_index(words.argmax(), words.shape)
    place = page.cells().index((row + first, column))  # the begin token's row comes first
    rectangle = page.find_all(".heat-map .cells rect")[place]
    page.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", rectangle)
    ActionChains(page.driver).move_to_element(rectangle).perform()
    shown = page.find("#tooltip")
    steps = float(view.weights["cross"][2].max()) / 255 * 2  # a word has two tokens at most
    assert float(shown.get_attribute("data-weight")) == pytest.approx(
        float(words[row, column]), abs=steps
    )
    target = view.target[slice(*view.target_words[row])]
    source = view.source[slice(*view.source_words[column])]
    assert f"{target} → {source}" in shown.text


def test_choosing_layer_head_and_kind_changes_the_picture(page: Page) -> None:
    page.open("sentence=6&layer=1&head=1&compare=")
    seen = {page.picture()}
    for label, value in [("Layer", 2), ("Head", 2), ("Attention", "encoder"), ("Axes", "tokens")]:
        page.click(f'[aria-label="{label}"] [data-value="{value}"]')
        seen.add(page.picture())
    assert len(seen) == 5
    place = page.address()
    assert (place["layer"], place["head"], place["kind"], place["units"]) == (
        "3", "3", "encoder", "tokens",
    )  # fmt: skip
    page.click('.tile[data-head="0"]')
    assert page.address()["head"] == "1"
    assert page.errors() == []


def test_keys(page: Page) -> None:
    page.open("sentence=6&layer=1&head=1&compare=")
    for key, name, expected in [
        (RIGHT, "head", "2"), (LEFT, "head", "1"), (LEFT, "head", "mean"),
        (DOWN, "layer", "2"), (UP, "layer", "1"), (UP, "layer", "3"),
        ("j", "sentence", "7"), ("k", "sentence", "6"),
        ("e", "kind", "encoder"), ("d", "kind", "decoder"), ("c", "kind", "cross"),
        ("w", "units", "tokens"), ("s", "reading", "shifted"),
        ("m", "model", "softmax"), ("b", "compare", "ReLA-g"), ("m", "model", "ReLA-g"),
    ]:  # fmt: skip
        before = page.picture()
        page.press(key)
        assert page.address()[name] == expected, key
        assert page.picture() != before, key
    page.find("body").send_keys("?")
    assert page.find("#help").is_displayed()
    page.find("#help button").click()
    assert not page.find("#help").is_displayed()


def test_focus_stays_where_it_was(page: Page) -> None:
    page.open("sentence=6&layer=1&head=1")
    for selector in (
        '[aria-label="Layer"] [data-value="1"]',
        '[data-model="1"] .tile[data-head="2"]',
        '#head-table [data-head="2-1"]',
    ):
        before = page.drawn()
        page.run("arguments[0].focus()", page.find(selector))
        page.driver.switch_to.active_element.send_keys(ENTER)
        page.wait(lambda before=before: page.drawn() > before)
        assert page.driver.switch_to.active_element == page.find(selector), selector
    assert (page.address()["layer"], page.address()["head"]) == ("3", "2")


def test_arrows_scroll_where_there_is_no_explorer(page: Page) -> None:
    page.open("sentence=6&layer=1")
    page.run("document.getElementById('tables').scrollIntoView({behavior: 'instant'})")
    before = page.run("return scrollY")
    page.find("body").send_keys(DOWN)
    page.wait(lambda: page.run("return scrollY") != before)
    assert page.address()["layer"] == "1"


def test_cells_can_be_read_with_the_keyboard(page: Page, sample: Sample) -> None:
    page.open("sentence=6&layer=1&head=1&units=tokens&kind=encoder&compare=")
    for key in (DOWN, DOWN, RIGHT):  # the first press enters at the first cell
        page.find("body").send_keys(SHIFT + key)
    weight = float(page.find("#tooltip").get_attribute("data-weight"))
    expected = sample.views["ReLA-g"][5].weights["encoder"][0, 0]
    assert weight == pytest.approx(float(expected[1, 1]), abs=float(expected.max()) / 255)
    assert page.run("return document.getElementById('readout').textContent")


def test_keys_are_left_to_the_search_box(page: Page, sample: Sample) -> None:
    before = page.address()
    search = page.find('input[type="search"]')
    word = sample.views["ReLA-g"][4].target.split()[-1]
    search.send_keys(word.upper())
    shown = [int(e.get_attribute("data-sentence")) for e in page.find_all("#sentence-list button")]
    assert shown == [
        number
        for number, view in enumerate(sample.views["ReLA-g"])
        if word.lower() in f"{view.source} {view.target}".lower()
    ]
    assert page.address() == before
    assert "found" in page.find("#sentence-count").text


def test_sentences_are_sorted_by_null_rate(page: Page, sample: Sample) -> None:
    page.order_sentences("highest null rate first")
    rates = [(view.weights["cross"] == 0).all(-1).mean() for view in sample.views["ReLA-g"]]
    assert [rates[n] for n in page.sentences()] == sorted(rates, reverse=True)


def test_heads_are_sorted(page: Page, sample: Sample) -> None:
    alignment = sample.analyses[0].alignment
    assert alignment is not None
    orders: dict[str, list[float]] = {
        "null": [x or 0.0 for x in sample.analyses[0].kind("cross").null_rate[1]],
        "sparsity": [x or 0.0 for x in sample.analyses[0].kind("cross").sparsity[1]],
        "aer": [score.aer for score in alignment.normal.heads[1]],
    }
    for sort, values in orders.items():
        page.open(f"layer=2&sort={sort}&reading=normal&compare=")
        shown = [int(tile.get_attribute("data-head")) for tile in page.find_all(".tile")]
        assert shown == [*sorted(range(4), key=lambda head: (values[head], head)), 4]


def test_the_head_table_is_sorted_and_selects(page: Page, sample: Sample) -> None:
    page.open("compare=")
    rates = sample.analyses[0].kind("cross").null_rate
    places = [(layer, head) for layer in range(3) for head in range(4)]
    for falling in (False, True):
        page.run("document.querySelector('#head-table [data-column=\"Null rate\"]').click()")
        rows = page.find_all("#head-table tbody tr")
        shown = [tuple(map(int, row.get_attribute("data-head").split("-"))) for row in rows]
        values = [rates[layer][head] or 0.0 for layer, head in shown]
        assert sorted(shown) == places
        assert values == sorted(values, reverse=falling)
    page.click('#head-table [data-head="1-2"]')
    assert (page.address()["layer"], page.address()["head"]) == ("2", "3")
    assert page.find("#head-table [aria-current]").get_attribute("data-head") == "1-2"


def test_links_and_gold(page: Page, sample: Sample) -> None:
    view = sample.views["ReLA-g"][5]
    assert view.gold is not None
    page.open("sentence=6&layer=3&head=2&compare=&reading=normal")
    lines = page.run(
        "return [...document.querySelectorAll('.links .weights path')].map(p => "
        "[+p.dataset.source, +p.dataset.target, 'best' in p.dataset])"
    )
    words = cross_words(view, 2, 1)
    assert {(s, t) for s, t, is_best in lines if is_best} == {
        (int(row.argmax()), t) for t, row in enumerate(words) if row.any()
    }
    assert {(s, t) for s, t, _ in lines} <= {(s, t) for t, s in np.argwhere(words > 0).tolist()}
    gold = page.run(
        "return [...document.querySelectorAll('.links .gold path')].map(p => "
        "[+p.dataset.source, +p.dataset.target])"
    )
    assert {tuple(link) for link in gold} == view.gold.possible
    page.open("sentence=6&kind=encoder&compare=")
    assert not page.find_all(".links"), "there are links in cross-attention only"


def test_a_saved_svg_is_complete(page: Page, sample: Sample) -> None:
    page.open("sentence=6&layer=2&head=3&units=tokens&kind=cross&compare=&reading=normal")
    root = ElementTree.fromstring(page.save('[data-save="heat-map-SVG"]'))
    assert root.tag == f"{SVG}svg"
    cells = root.find(f".//{SVG}g[@class='cells']")
    view = sample.views["ReLA-g"][5]
    assert cells is not None
    assert len(cells) == np.count_nonzero(view.weights["cross"][1, 2])
    texts = {text.text for text in root.iter(f"{SVG}text")}
    tokens = {view.source[start:end] for start, end in view.source_token_spans}
    assert tokens | {"ReLA-g: cross attention, layer 2, head 3, normal"} <= texts
    assert "var(" not in ElementTree.tostring(root, "unicode"), "colours do not need the page"
    links = ElementTree.fromstring(page.save('[data-save="links-SVG"]'))
    assert len(links.findall(f".//{SVG}g[@class='weights']/{SVG}path"))


def test_a_saved_png_is_a_picture(page: Page) -> None:
    page.open("sentence=6&compare=")
    content = page.save('[data-save="heat-map-PNG"]')
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert min(width, height) > 300
    assert len(content) > 5000, "not a blank sheet"
    assert page.errors() == []


def test_light_and_dark(page: Page) -> None:
    def background() -> Any:
        return page.run("return getComputedStyle(document.body).backgroundColor")

    colours = {}
    for theme in ("dark", "light"):
        page.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": theme}]},
        )
        page.open("sentence=6")
        colours[theme] = background(), page.picture()
    assert len(set(colours["dark"] + colours["light"])) == 4
    page.click("#theme-button")
    assert (background(), page.picture()) == colours["dark"]


def test_hostile_text_stays_text(page: Page, sample: Sample) -> None:
    page.open("sentence=7&units=words")
    assert page.run("return window.harmed") is None
    assert not page.find_all("main img")
    source = sample.views["ReLA-g"][6].source
    assert page.run("return document.querySelector('#sentence-text dd').textContent") == source
    labels = page.run(
        "return [...document.querySelectorAll('.links .source')].map(t => t.dataset.text)"
    )
    words = [source[start:end] for start, end in sample.views["ReLA-g"][6].source_words]
    assert labels == words * 2
    ElementTree.fromstring(page.save('[data-save="links-SVG"]'))
    assert page.errors() == []


def test_a_long_sentence_scrolls_inside_the_page(page: Page, sample: Sample) -> None:
    page.open("sentence=8&units=tokens")
    fits, inner, outer = page.run(
        "const p = document.querySelector('.picture');"
        "return [document.documentElement.scrollWidth <= innerWidth, p.scrollWidth, p.clientWidth]"
    )
    assert fits
    assert inner > outer
    outlines = page.run(
        "return [...document.querySelectorAll('.heat-map')[1].querySelectorAll('.cells path')]"
        ".map(path => path.getAttribute('d').split('M').length - 1)"
    )
    dense = sample.views["softmax"][7].weights["cross"][0, 0]
    assert sum(outlines) == dense.size, "so many cells are drawn by colour"
    page.run("document.querySelector('.picture').scrollTo(300, 200)")
    page.press(RIGHT)
    assert page.run("return document.querySelector('.picture').scrollLeft") == 300, "it stays there"


def test_a_narrow_window(page: Page) -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        page.open("sentence=8")
        assert page.run("return document.documentElement.scrollWidth") <= 390
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_report_of_one_model_without_gold_or_sentences(
    driver: Any, sample: Sample, tmp_path: Path
) -> None:
    analysis = sample.analyses[0].model_copy(
        update={"alignment": None, "shuffled": None, "bleu": None}
    )
    path = tmp_path / "report.html"
    assert write_page([analysis], {}, path) == 0
    driver.get_log("browser")
    driver.get(path.as_uri())
    page = Page(driver, path, tmp_path)
    assert "without sentences" in page.find("#explorer").text
    assert len(page.find_all("#overview .cards .card")) == 2
    assert page.errors() == []


def test_a_missing_view_of_one_model(driver: Any, sample: Sample, tmp_path: Path) -> None:
    views = {"ReLA-g": sample.views["ReLA-g"][:2], "softmax": sample.views["softmax"][:1]}
    page = Page(driver, tmp_path / "report.html", tmp_path)
    write_page(sample.analyses, views, page.path)
    page.open("sentence=2")
    assert "not kept" in page.find_all(".pane")[1].text
    assert page.errors() == []


def test_negative_weights_are_drawn_in_another_colour(
    driver: Any, sample: Sample, tmp_path: Path
) -> None:
    view = make_view(0, "a b c", "d e f", sparse=True)
    view.weights["cross"][0, 0] = 0
    view.weights["cross"][0, 0, 1] = [-1, 0, 1, 0.5]
    page = Page(driver, tmp_path / "report.html", tmp_path)
    write_page(sample.analyses[:1], {"ReLA-g": [view]}, page.path)
    page.open("layer=1&head=1&units=tokens&reading=normal&kind=cross")
    assert page.cells() == [(1, 0), (1, 2), (1, 3)]
    fills = page.run(
        "return [...document.querySelectorAll('.cells rect')].map(r => r.getAttribute('fill'))"
    )
    assert len(set(fills)) == 3
    assert "±1" in page.find(".heat-map").text
    assert page.errors() == []
