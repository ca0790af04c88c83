"""The examples are scripts beside each other, and run as such, but in this process."""

import random
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"

sys.path.insert(0, str(EXAMPLES))


@pytest.fixture
def run_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a script with arguments; returns what it prints."""

    def run(script: str, *arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        threads = torch.get_num_threads()
        try:
            runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        finally:
            torch.set_num_threads(threads)
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some hundred short texts, apart by two blank lines."""
    choose = random.Random(1).choice
    words = ["the", "old", "man", "sees", "a", "small", "dog", "and", "his", "cat"]
    texts = [" ".join(choose(words) for _ in range(30)) + "." for _ in range(200)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n\n".join(texts), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def labelled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts whose label is the word that they contain, among others."""
    choose = random.Random(1).choice
    lines = []
    for number in range(200):
        label = choose(["dog", "cat"])
        words = [choose(["a", "the", "old", "small", "sees", "and"]) for _ in range(6)]
        words.insert(number % 7, label)
        lines.append(f"{label}\t{' '.join(words)} {number}\n")
    path = tmp_path_factory.mktemp("labelled") / "labelled.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path
