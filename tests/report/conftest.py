"""A report of two models, and a browser to open it in."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_page import Page, Sample
from report_samples import long_view, make_view, sample_analysis, sample_views

from relakit.report import write_page

HOSTILE = (
    '</script><script>window.harmed=1</script> <img src=x onerror="window.harmed=1"> '
    "&amp; \"quoted\" 'too' {{blocks}} $x_{ \\ 😀 \u2028 ]]>"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="session")
def sample() -> Sample:
    """A sparse and a dense model on six sentences, a hostile one and a long one."""
    analyses, views = [], {}
    for name, sparse in (("ReLA-g", True), ("softmax", False)):
        usual = sample_views(6, sparse=sparse)
        analyses.append(sample_analysis(name, usual, sparse=sparse))
        hostile = make_view(6, HOSTILE, HOSTILE[::-1], sparse=sparse)
        views[name] = [*usual, hostile, long_view(7, sparse=sparse)]
    return Sample(analyses, views)


@pytest.fixture(scope="session")
def report(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_page(sample.analyses, sample.views, path, title="Attention <i>& more</i>")
    return path


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, driven by Selenium; both are named, so that nothing is looked for or loaded."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        reason = f"needs {' and '.join(missing)} (Debian: chromium chromium-driver)"
        if os.environ.get("RELAKIT_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    folder = tmp_path_factory.mktemp("browser")
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(str(programs["chromedriver"])))
    yield driver
    driver.quit()


@pytest.fixture
def page(driver: Any, report: Path, tmp_path: Path) -> Page:
    """The report, opened at its first place."""
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    driver.get_log("browser")
    driver.get_log("performance")
    page = Page(driver, report, tmp_path)
    page.open()
    return page
