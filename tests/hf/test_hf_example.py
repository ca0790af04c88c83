"""The example with a Hugging Face language model runs."""

import runpy
import sys
from pathlib import Path

import pytest
import tiny_hf_models  # noqa: F401  # skips where transformers is missing
import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "hf_language_model.py"


def test_it_prints_its_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    threads = torch.get_num_threads()
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "--steps", "3", "--batch-size", "4"])
    try:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    softmax, rela, written = capsys.readouterr().out.splitlines()
    assert "zeros 0%" in softmax
    assert "zeros 0%" not in rela
    assert written.startswith("it writes: The")
