"""Scores by eflomal, which is a script here; its links are tested with the gold sets."""

import sys
from pathlib import Path

import pytest

from relakit.analysis import AnalysisPair
from relakit.reproduce.eflomal import eflomal_scores

# Learns which words there are; then a score is the number of words that it does not know.
ALIGN = """
while [ $# -gt 0 ]; do case "$1" in -F) scores=$2;; -p) priors=$2;; esac; shift; done
if [ -z "$scores" ]; then sed 's/.*/0-0/' source > forward; cp forward reverse; exit; fi
while read -r line; do
  count=0; for word in $line; do grep -qx "$word" "$priors" || count=$((count + 1)); done
  echo $count
done < target > forward
sed 's/.*/1.5/' source > reverse
"""
MAKE_PRIORS = "tr ' ' '\\n' < target > priors"


def install(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    program.chmod(0o755)


def test_scores_of_pairs_given_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "eflomal-align", ALIGN)
    install(tmp_path, "eflomal-makepriors", MAKE_PRIORS)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    learned = [
        AnalysisPair.from_texts("The dog.", "Der Hund."),
        AnalysisPair.from_texts("A", "Ein"),
    ]
    judged = [
        AnalysisPair.from_texts("A dog", "Ein Hund"),
        AnalysisPair.from_texts("b", "Die Katze."),
    ]
    assert eflomal_scores(learned, judged) == [(0, 1.5), (2, 1.5)]


def test_a_program_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "eflomal-align", "echo 'no memory' >&2; exit 3")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    pair = AnalysisPair.from_texts("a", "b")
    with pytest.raises(ValueError, match="eflomal-align ended with status 3: no memory"):
        eflomal_scores([pair], [pair])
