"""The report of a filtered corpus in a real browser."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calibration_samples import ORIGIN, sample

from relakit.clean.calibrating import fit_calibration
from relakit.clean.calibration import NoiseCalibration
from relakit.clean.cut import cut_at
from relakit.clean.filter_files import FilterCounts
from relakit.clean.filter_page import write_filter_page
from relakit.clean.filter_samples import ABOVE, BELOW, BEST, WORST, Sample
from relakit.clean.measures import ColumnMeasure, Measure, ProbabilityMeasure

# One worker runs them all: they share the browser.
pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = '</script><script>window.harmed=1</script> <img src=x onerror="window.harmed=1"> &amp;'


def pair(line: int, group: str, value: float, **changes: Any) -> Sample:
    kept = group in (BEST, ABOVE)
    made = Sample(
        group=group, line=line, kept=kept, value=value, badness=-value,
        reason="" if kept else "looks cut off: it ends", source=f"the old dog {line}",
        target=f"der alte Hund {line}", unsupported=(), uncovered=(), worst=None,
        scores={"cross_entropy": 2.0 + line, "null_rate": 0.5}, shares={"clean": value},
    )  # fmt: skip
    return replace(made, **changes)


SAMPLES = [
    pair(30, BEST, 0.99),
    pair(2, ABOVE, 0.6, source="a b  c", target="x y z", unsupported=(1,), uncovered=(2,), worst=0),
    pair(100, BELOW, 0.4, source=HOSTILE, target=HOSTILE, unsupported=(0,)),
    pair(9, WORST, 0.01, target="nichts davon"),
]


def write(path: Path, calibration: NoiseCalibration | None) -> Path:
    draw = np.random.default_rng(1)
    badness = draw.normal(size=300)
    cut = cut_at(np.append(badness, np.nan), 0.5)
    counts = FilterCounts(kept=int(cut.kept.sum()))
    counts.reasons.update({"truncated": int((~cut.kept).sum()) - 1, "blank": 1})
    measure: Measure = (
        ColumnMeasure("cross_entropy") if calibration is None else ProbabilityMeasure(calibration)
    )
    write_filter_page(
        path, counts=counts, cut=cut, measure=measure, calibration=calibration,
        samples=SAMPLES, settings={"Corpus": ["a.en", HOSTILE], "Keep": None},
    )  # fmt: skip
    return path


class FilterPage:
    def __init__(self, driver: Any, path: Path) -> None:
        self.driver = driver
        driver.get_log("browser")
        driver.get(path.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find_all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def click(self, selector: str) -> None:
        element = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def lines(self) -> list[str]:
        return [
            row.text for row in self.find_all("#sample-table tbody tr:not(.detail) td:nth-child(2)")
        ]

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("filter-page")
    of_corpus = replace(ORIGIN, are_known=False)
    fitted = fit_calibration(*sample(contaminated=0.2), of_corpus, expected_noise=0.5)
    return {
        "calibrated": write(folder / "calibrated.html", fitted.calibration),
        "plain": write(folder / "plain.html", None),
    }


@pytest.fixture
def page(driver: Any, paths: dict[str, Path]) -> Iterator[FilterPage]:
    page = FilterPage(driver, paths["calibrated"])
    yield page
    assert page.errors() == []
    assert page.run("return window.harmed") is None


def test_all_parts_are_there(page: FilterPage) -> None:
    assert page.run("return document.documentElement.dataset.drawn") == "1"
    assert "of 301 pairs kept" in page.find_all("#summary")[0].text
    assert len(page.find_all(".histogram .bar")) == 100
    assert len(page.find_all(".histogram .cut")) == 1
    assert len(page.find_all(".kinds .chart")) == 2
    assert len(page.find_all(".curves path.line")) == 2
    tables = [table.get_attribute("data-table") for table in page.find_all("table[data-table]")]
    assert tables == ["samples", "areas", "weights"]
    assert [item.text for item in page.find_all(".reasons .name")] == ["truncated", "blank"]


def test_sorting(page: FilterPage) -> None:
    assert page.lines() == ["30", "2", "100", "9"], "from the best to the worst"
    page.click("#sample-table thead button[data-column=line]")
    assert page.lines() == ["2", "9", "30", "100"]
    page.click("#sample-table thead button[data-column=line]")
    assert page.lines() == ["100", "30", "9", "2"]
    page.click("#sample-table thead button[data-column=probability]")
    assert page.lines() == ["9", "100", "2", "30"]


def test_searching(page: FilterPage) -> None:
    search = page.find_all("#samples input[type=search]")[0]
    search.send_keys("DAVON")
    assert page.lines() == ["9"]
    assert page.find_all("#sample-count")[0].text == "1 of 4 pairs"
    search.clear()
    search.send_keys("cut off")
    assert set(page.lines()) == {"100", "9"}
    search.clear()
    search.send_keys("x")
    page.run("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", search)
    page.click("#groups button[data-value='just rejected']")
    assert page.lines() == ["100"]
    page.click("#groups button[data-value=all]")
    assert len(page.lines()) == 4


def test_opening_a_pair(page: FilterPage) -> None:
    toggle = "#sample-table tbody tr:first-child .toggle"
    assert not page.find_all("#sample-table tr.detail:not([hidden])")
    page.click(toggle)
    (detail,) = page.find_all("#sample-table tr.detail:not([hidden])")
    assert "cross_entropy" in detail.text
    assert "32" in detail.text
    assert page.find_all(toggle)[0].get_attribute("aria-expanded") == "true"
    page.click(toggle)
    assert not page.find_all("#sample-table tr.detail:not([hidden])")


def test_marked_words(page: FilterPage) -> None:
    marks = {
        (mark.get_attribute("class"), page.run("return arguments[0].firstChild.data", mark))
        for mark in page.find_all("#sample-table tbody tr:nth-child(3) mark")
    }
    assert marks == {("unsupported", "y"), ("uncovered", "c"), ("worst", "x")}
    spoken = page.run("return document.querySelector('#sample-table mark.unsupported').textContent")
    assert spoken == "y (unsupported)"
    assert page.find_all("#sample-table mark.unsupported")[0].get_attribute("title")


def test_text_stays_text(page: FilterPage) -> None:
    cell = page.run(
        "return document.querySelectorAll('#sample-table tbody tr')[4].children[4].textContent"
    )
    assert cell == HOSTILE
    assert not page.find_all("#samples img")


def test_reading_the_curves(page: FilterPage) -> None:
    before = page.find_all(".readout")[0].text
    page.run(
        "const s = document.querySelector('.curves input'); s.value = 50;"
        "s.dispatchEvent(new Event('input'))"
    )
    after = page.find_all(".readout")[0].text
    assert "recall 90 %" in before
    assert "recall 50 %" in after


def test_with_and_without_doubted_pairs(page: FilterPage) -> None:
    def area() -> float:
        rows = page.find_all("table[data-table=areas] tbody tr")
        row = next(row for row in rows if row.text.startswith("probability"))
        return float(row.find_elements("css selector", "td")[1].text)

    lower = area()
    page.click(".doubted button[data-value=undoubted]")
    assert area() > lower


def test_light_and_dark(page: FilterPage) -> None:
    before = page.run("return document.documentElement.dataset.theme")
    page.click("#theme-button")
    assert page.run("return document.documentElement.dataset.theme") != before
    page.click("#theme-button")


def test_scale_of_the_bars(page: FilterPage) -> None:
    page.click("#histogram button[data-value=logarithmic]")
    logarithmic = page.run("return document.querySelector('.histogram').outerHTML")
    page.click("#histogram button[data-value=linear]")
    assert page.run("return document.querySelector('.histogram').outerHTML") != logarithmic


def test_a_narrow_window_needs_no_scrolling_aside(page: FilterPage) -> None:
    page.run("document.body.style.width = '380px'")
    page.driver.set_window_size(400, 900)
    try:
        wide = page.run("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
    finally:
        page.driver.set_window_size(1280, 1000)


def test_without_a_calibration(driver: Any, paths: dict[str, Path]) -> None:
    page = FilterPage(driver, paths["plain"])
    assert not page.find_all("#calibration, [data-section=calibration]")
    assert page.find_all("#histogram h3")[0].text == "Pairs by cross_entropy"
    assert "cross_entropy <= 0.5" in page.find_all("#summary")[0].text
    assert page.errors() == []


def test_nothing_is_loaded(paths: dict[str, Path]) -> None:
    for path in paths.values():
        text = path.read_text()
        assert "default-src 'none'" in text
        assert HOSTILE not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
