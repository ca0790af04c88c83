"""Every test starts from the same random state, on one thread. What many tests run on: each
instruction set, and one browser for all pages."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from extra_packages import skip_unless_required
from hypothesis import settings

from relakit.ops.native import extension

# Torch decides how fast an example is, and it is slow the first time: no deadline. In CI a failure
# has to come back when the run is repeated.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

torch.set_num_threads(1)

try:
    ISAS = extension.load_extension().usable_isas()
except ImportError:
    ISAS = []

BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=ISAS)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each instruction set that the C++ kernels can use here, in turn."""
    monkeypatch.setenv(extension.ISA_VARIABLE, request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium, driven by Selenium; both are named, so that nothing is looked for or loaded."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        reason = f"needs {' and '.join(missing)} (Debian: chromium chromium-driver)"
        skip_unless_required("RELAKIT_REQUIRE_BROWSER", reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    folder = tmp_path_factory.mktemp("browser")
    for flag in (*BROWSER_FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(str(programs["chromedriver"])))
    yield driver
    driver.quit()
