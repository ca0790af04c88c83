"""A large report: how much it holds, its size, and how soon it is open. -s shows the numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_page import Page
from report_samples import make_view, sample_analysis

from relakit.analysis.results import SentenceView
from relakit.data.generated import generate_pairs
from relakit.report import write_page

# In the group of the other tests that share the browser.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

SENTENCES = 700
WORDS = 20  # about 25 tokens


def large_views(count: int) -> Iterator[SentenceView]:
    """One at a time: together they would take 300 MB."""
    words = [word for pair in generate_pairs(400, seed=5) for word in pair.source_text.split()]
    for index in range(count):
        start = index * 17 % (len(words) - 2 * WORDS)
        source, target = words[start : start + WORDS], words[start + 5 : start + 5 + WORDS]
        yield make_view(index, " ".join(source), " ".join(target), sparse=True, layers=6, heads=8)


def seconds_to_the_first_picture(page: Page) -> float:
    page.open()
    mark = page.run("return performance.getEntriesByName('first picture')[0].startTime")
    return float(mark) / 1000


def test_more_sentences_than_fit_with_six_times_eight_heads(driver: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    analysis = sample_analysis("ReLA-g", list(large_views(10)), sparse=True)
    kept = write_page([analysis], {"ReLA-g": large_views(SENTENCES)}, path)
    size = path.stat().st_size
    driver.get_log("browser")
    page = Page(driver, path, tmp_path)
    seconds = seconds_to_the_first_picture(page)
    print(
        f"{kept} of {SENTENCES} sentences, {size / 1e6:.1f} MB, first picture after {seconds:.2f} s"
    )
    assert 500 <= kept < SENTENCES
    assert size < 20_000_000
    assert f"{kept:,}" in page.find("#sentence-count").text
    assert len(page.find_all("#sentence-list li")) == kept
    page.press("j", "k")
    assert page.errors() == []
