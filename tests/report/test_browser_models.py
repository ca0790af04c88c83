"""The report in a browser, with models and sentences that are out of the ordinary."""

import dataclasses
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report_page import Page, Sample
from report_samples import make_view, sample_analysis, sample_views, with_first_temperature

from relakit.analysis import ModelAnalysis
from relakit.report import write_page

# In the group of the other tests that share the browser.
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def new_page(driver: Any, tmp_path: Path) -> Page:
    """A page that is still to be written."""
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(tmp_path / "downloads")},
    )
    (tmp_path / "downloads").mkdir()
    driver.get_log("browser")
    return Page(driver, tmp_path / "report.html", tmp_path / "downloads")


def thick_links(page: Page) -> set[tuple[int, int]]:
    links = page.run(
        "return [...document.querySelectorAll('.links [data-best]')].map(p => "
        "[+p.dataset.source, +p.dataset.target])"
    )
    return {(source, target) for source, target in links}


def test_models_of_different_depth_and_heads(new_page: Page) -> None:
    sizes = {"large": (4, 6), "small": (2, 3)}
    views = {
        name: sample_views(2, sparse=True, layers=layers, heads=heads)
        for name, (layers, heads) in sizes.items()
    }
    analyses = [sample_analysis(name, views[name], sparse=True) for name in sizes]
    write_page(analyses, views, new_page.path)

    def pressed() -> list[str]:
        tiles = new_page.find_all('.tile[aria-pressed="true"]')
        return [tile.get_attribute("data-head") for tile in tiles]

    for sort in ("number", "null", "sparsity", "aer"):
        new_page.open(f"model=large&compare=small&layer=4&head=5&sort={sort}")
        assert pressed() == ["4", "2"], "the nearest head there is"
        titles = [pane.text.split("\n")[0] for pane in new_page.find_all(".pane")]
        assert ["layer 4, head 5" in titles[0], "layer 2, head 3" in titles[1]] == [True, True]
    new_page.click('[data-model="0"] .tile[data-head="6"]')
    assert pressed() == ["6", "3"], "the mean of heads in both"
    new_page.open("model=small&compare=large&layer=1&head=mean")
    assert pressed() == ["3", "6"]
    new_page.open("model=small&compare=large&layer=1&head=1")
    new_page.click('[data-model="0"] .tile[data-head="4"]')
    place = new_page.address()
    assert (place["model"], place["compare"], place["head"]) == ("large", "small", "5")
    assert new_page.errors() == []


def test_the_temperatures_that_are_shown(new_page: Page, sample: Sample) -> None:
    rela, softmax = sample.analyses
    colder = with_first_temperature(rela, "0.5")
    mixed = rela.model_copy(update={"kinds": (*rela.kinds[:2], softmax.kinds[2])})
    analyses = [
        colder.model_copy(update={"name": "colder"}),
        mixed.model_copy(update={"name": "mixed"}),
    ]
    write_page(analyses, {}, new_page.path)
    new_page.driver.get(new_page.path.as_uri())
    figures = next(e.text for e in new_page.find_all(".figure") if "Figure 5" in e.text)
    assert "at temperature 0.5 (colder), 1 (mixed)." in figures
    rows = [row.text.split() for row in new_page.find_all('[data-table="diversity"] tbody tr')]
    assert [row[:2] for row in rows] == [
        *(["colder", t] for t in ("0.5", "0.25", "0.1")),
        *(["mixed", t] for t in ("1", "0.5", "0.25", "0.1")),
    ]
    assert [row[-1] == "–" for row in rows[3:]] == [False, True, True, True]
    assert new_page.errors() == []


def test_outputs_before_the_norm(new_page: Page, sample: Sample) -> None:
    """Lines of the models that have the number; no figure if none has."""
    rela, softmax = sample.analyses
    kinds = tuple(
        kind.model_copy(update={"output_rms": None, "closed_gates": None}) for kind in rela.kinds
    )
    older = rela.model_copy(update={"name": "older", "kinds": kinds})

    def lines(*analyses: ModelAnalysis) -> dict[str, list[int]]:
        write_page(analyses, {}, new_page.path)
        new_page.driver.get("about:blank")  # or the browser stays, with another fragment
        new_page.driver.get(new_page.path.as_uri())
        return {
            figure.find_element("css selector", "h3").text: [
                len(chart.find_elements("css selector", "path.line"))
                for chart in figure.find_elements("css selector", ".chart")
            ]
            for figure in new_page.find_all(".figure")
            if "Figure" not in figure.text and "First sink" not in figure.text
        }

    assert lines(rela, softmax) == {"RMS(z)": [2, 2, 2], "Closed gates": [1, 1, 1]}
    assert lines(softmax, older) == {"RMS(z)": [1, 1, 1]}
    assert lines(older) == {}
    assert new_page.errors() == []


def test_links_are_those_of_the_exact_weights(new_page: Page, sample: Sample) -> None:
    view = make_view(0, "a b c", "d e", sparse=True)
    view.weights["cross"][:] = 0
    # In steps of 1/255 the first two are the same; so are those of the mean of heads.
    view.weights["cross"][:, :, 0] = 0.5, 0.5003, 0.1, 1
    write_page(sample.analyses[:1], {"ReLA-g": [view]}, new_page.path)
    for head in ("2", "mean"):
        new_page.open(f"layer=1&head={head}&kind=cross&reading=normal")
        assert thick_links(new_page) == {(1, 0)}
        new_page.open(f"layer=1&head={head}&kind=cross&reading=shifted")
        assert thick_links(new_page) == set()
    view.weights["cross"][:, :, 2] = 0.5, 0.1, 0.5003, 1
    write_page(sample.analyses[:1], {"ReLA-g": [view]}, new_page.path)
    new_page.open("layer=3&head=4&kind=cross&reading=shifted")
    assert thick_links(new_page) == {(2, 1)}


def test_control_characters_leave_saved_pictures_valid(new_page: Page, sample: Sample) -> None:
    text = "nul\x00 esc\x1b[1m back\x08space \udc80 \uffff 😀"
    view = make_view(0, text, text, sparse=True)
    analysis = sample.analyses[0].model_copy(update={"name": "a\x07b"})
    write_page([analysis], {"a\x07b": [view]}, new_page.path)
    new_page.open("layer=1&head=1&kind=cross")
    for part in ("heat-map", "links"):
        root = ElementTree.fromstring(new_page.save(f'[data-save="{part}-SVG"]'))
        texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"nul\ufffd", "back\ufffdspace", "😀"} <= set(texts)
        assert any(text.startswith("a\ufffdb: cross") for text in texts)
        assert new_page.save(f'[data-save="{part}-PNG"]').startswith(b"\x89PNG")
    assert new_page.errors() == []


@pytest.mark.parametrize("texts", [("a", "b"), ("", ""), ("a b", ""), ("", "a b")])
def test_sentences_of_hardly_any_words(
    new_page: Page, sample: Sample, texts: tuple[str, str]
) -> None:
    view = make_view(0, *texts, sparse=False)
    assert write_page(sample.analyses[:1], {"ReLA-g": [view]}, new_page.path) == 1
    new_page.open("kind=cross&layer=1&head=1&units=tokens")
    assert len(new_page.cells()) == view.weights["cross"][0, 0].size
    assert new_page.find("#sentence-count").text == "1 sentence"
    assert new_page.errors() == []


def test_tags_of_target_words(new_page: Page, sample: Sample) -> None:
    from selenium.webdriver import ActionChains

    view = make_view(0, "the dog", "a longerword", sparse=False)
    view = dataclasses.replace(view, target_tags=("DET", "NOUN"))
    write_page(sample.analyses[:1], {"ReLA-g": [view]}, new_page.path)
    cases = {
        ("cross", "words", "normal"): (1, 0, "longerword (NOUN) → the"),
        ("cross", "words", "shifted"): (2, 1, "longerword (NOUN) → dog"),
        ("cross", "tokens", "normal"): (2, 1, "word (NOUN) → dog"),
        ("decoder", "words", "normal"): (2, 1, "longerword (NOUN) → a (DET)"),
        ("encoder", "words", "normal"): (0, 1, "the → dog"),
    }
    for (kind, units, reading), (row, column, expected) in cases.items():
        new_page.open(f"kind={kind}&units={units}&reading={reading}&layer=1&head=1")
        cell = new_page.find_all(".cells rect")[new_page.cells().index((row, column))]
        new_page.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cell)
        ActionChains(new_page.driver).move_to_element(cell).perform()
        assert expected in new_page.find("#tooltip").text.splitlines()
    assert "a/DET longerword/NOUN" in new_page.find("#sentence-text").text


def test_a_sentence_that_is_too_long_is_counted(new_page: Page, sample: Sample) -> None:
    text = " ".join(f"w{number}" for number in range(500))
    views = [make_view(0, "a b", "c d", sparse=True), make_view(1, text, text, sparse=True)]
    assert write_page(sample.analyses[:1], {"ReLA-g": views}, new_page.path) == 1
    new_page.open()
    assert new_page.find("#sentence-count").text == "1 of 2 sentences"


def test_inputs_are_shown(new_page: Page, sample: Sample) -> None:
    inputs = {"source": "test.de", "beam_size": "4", "hostile": "<b>bold</b>"}
    analysis = sample.analyses[0].model_copy(update={"inputs": inputs})
    write_page([analysis], {}, new_page.path)
    new_page.driver.get(new_page.path.as_uri())
    new_page.run("document.querySelector('#settings details').open = true")
    lines = new_page.find("#settings dl").text.splitlines()
    for name, value in (("Source", "test.de"), ("Beam size", "4"), ("Hostile", "<b>bold</b>")):
        assert lines[lines.index(name) + 1] == value
    assert new_page.errors() == []
