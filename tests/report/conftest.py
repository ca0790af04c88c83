"""A report of two models."""

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
