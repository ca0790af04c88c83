"""Pairs with labels from a file, and what is said about lines that cannot be used."""

import gzip
import re
from pathlib import Path

import pytest

from relakit.data.labelled_pairs import LabelledPair, read_labelled_pairs

COLUMNS = "every line needs 4 columns (source, target, score, label) with tabs between them, got "


def test_pairs_with_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv.gz"
    path.write_bytes(gzip.compress(b"a cat\teine Katze\t0.75\tV\r\n\tx \t-1e-3\t A \n"))
    assert list(read_labelled_pairs(path)) == [
        LabelledPair("a cat", "eine Katze", "V", 0.75),
        LabelledPair("", "x ", "A", -0.001),
    ]
    assert next(read_labelled_pairs(path)).texts == ("a cat", "eine Katze")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("a\tb\t0.5", f"{COLUMNS}3"),
        ("a\tb\t0.5\tV\tmore", f"{COLUMNS}5"),
        ("", f"{COLUMNS}1"),
        ("a\tb\t0.5\t ", "the label, the fourth column, is empty"),
        ("a\tb\tgood\tV", "the score, the third column, must be a number, got 'good'"),
        ("a\tb\tnan\tV", "the score, the third column, must be a number, got 'nan'"),
        ("a\tb\t\tV", "the score, the third column, must be a number, got ''"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(f"a\tb\t0.5\tV\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}, line 2: {problem}')}"):
        list(read_labelled_pairs(path))


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is empty$"):
        list(read_labelled_pairs(path))
