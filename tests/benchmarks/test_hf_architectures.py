"""The script that tries every architecture of transformers."""

import csv
import os
import sys
from pathlib import Path

import pytest

if "RELAKIT_REQUIRE_HF" not in os.environ:
    pytest.importorskip("transformers", reason="the extra relakit[hf] is not installed")

import hf_architectures


def test_it_says_what_works_and_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "table.csv"
    names = ["bert", "bloom", "gpt_oss"]
    monkeypatch.setattr(sys, "argv", ["hf_architectures.py", *names, "--out", str(out)])
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    hf_architectures.main()
    with out.open(newline="") as file:
        answers = {row["architecture"]: row["answer"] for row in csv.DictReader(file)}
    assert answers == {
        "bert": "works",
        "bloom": "refused",
        "gpt_oss": "refused at the first call",
    }
