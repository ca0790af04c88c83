"""The example with a Hugging Face language model runs."""

import runpy
import sys
from pathlib import Path

import pytest
import tiny_hf_models  # noqa: F401  # skips where transformers is missing
import torch

from relakit.report import report_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "hf_language_model.py"


def test_it_prints_its_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    threads = torch.get_num_threads()
    monkeypatch.setattr(report_folder, "why_no_figures", lambda: "they take seconds")
    options = ["--steps", "3", "--batch-size", "4", "--report", str(tmp_path / "report")]
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *options])
    try:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    softmax, rela, written, report = capsys.readouterr().out.splitlines()
    assert "zeros 0%" in softmax
    assert "zeros 0%" not in rela
    assert written.startswith("it writes: The")
    assert report == f"the report: {tmp_path / 'report' / 'report.html'}"
    assert (tmp_path / "report" / "report.html").is_file()
