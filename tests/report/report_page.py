"""The report as the tests of the browser see it."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relakit.analysis.results import ModelAnalysis, SentenceView


@dataclass(frozen=True)
class Sample:
    """What a report was made from."""

    analyses: list[ModelAnalysis]
    views: dict[str, list[SentenceView]]


class Page:
    """The report in the browser."""

    def __init__(self, driver: Any, path: Path, downloads: Path) -> None:
        self.driver = driver
        self.path = path
        self.downloads = downloads
        self.saved_name = ""

    def open(self, place: str = "") -> None:
        """Open the report anew, at a place that the address names."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.path.as_uri()}#{place}")
        self.wait(lambda: self.drawn() > 0)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def drawn(self) -> int:
        """How many times pictures were drawn."""
        return int(self.run("return Number(document.documentElement.dataset.drawn || 0)"))

    def wait(self, condition: Any, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the page did not come to that"
            time.sleep(0.01)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def click(self, selector: str) -> None:
        """Click, and wait for the pictures."""
        before = self.drawn()
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})",
                 self.find(selector))  # fmt: skip
        self.find(selector).click()
        self.wait(lambda: self.drawn() > before)

    def press(self, *keys: str) -> None:
        """Press keys one by one, on nothing in particular, and wait for the pictures."""
        for key in keys:
            before = self.drawn()
            self.find("body").send_keys(key)
            self.wait(lambda before=before: self.drawn() > before)

    def address(self) -> dict[str, str]:
        pairs: dict[str, str] = self.run(
            "return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
        )
        return pairs

    def picture(self, pane: int = 0) -> str:
        """The heat map as text."""
        text: str = self.run(
            "return document.querySelectorAll('.heat-map')[arguments[0]].outerHTML", pane
        )
        return text

    def cells(self, pane: int = 0) -> list[tuple[int, int]]:
        """Row and column of each cell that is drawn."""
        drawn: list[list[int]] = self.run(
            """
            const svg = document.querySelectorAll('.heat-map')[arguments[0]];
            const {cell, left, top} = svg.dataset;
            return [...svg.querySelectorAll('.cells rect')].map(rect => [
                Math.floor((rect.getAttribute('y') - top) / cell),
                Math.floor((rect.getAttribute('x') - left) / cell)]);
            """,
            pane,
        )
        return [(row, column) for row, column in drawn]

    def sentences(self) -> list[int]:
        """The list of sentences, by their places in the file."""
        entries = self.find_all("#sentence-list button")
        return [int(entry.get_attribute("data-sentence")) for entry in entries]

    def order_sentences(self, name: str) -> None:
        self.run(
            "const s = document.querySelector('[aria-label=\"Order of sentences\"]');"
            "s.selectedIndex = [...s.options].findIndex(o => o.text === arguments[0]);"
            "s.dispatchEvent(new Event('change'))",
            name,
        )

    def save(self, selector: str) -> bytes:
        """Click a button that saves, and return what was saved."""
        for old in self.downloads.iterdir():
            old.unlink()
        self.run("arguments[0].click()", self.find(selector))

        def saved() -> list[Path]:
            """Empty until all of it is there: the browser writes under another name."""
            files = [*self.downloads.iterdir()]
            is_whole = len(files) == 1 and files[0].suffix in (".svg", ".png", ".pharaoh")
            return files if is_whole and files[0].stat().st_size else []

        self.wait(saved)
        self.saved_name = saved()[0].name
        return saved()[0].read_bytes()

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]
