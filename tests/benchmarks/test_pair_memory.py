"""The memory of a command and all its processes, and what is made of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pair_memory
from pair_memory import MIB, MemoryResult, MemoryWatch, family, growth, measure, write_results

TREE = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "x = b'x' * (80 << 20); print(); input()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(flush=True)
input()
child.communicate(b"\\n")
"""


def test_descendants_count() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watch = MemoryWatch(process.pid)
        watch.look()
        assert len(family(process.pid)) == 2
        process.communicate(b"\n")
    assert watch.peak > watch.largest > 80 * MIB
    before = watch.peak
    watch.look()
    assert watch.peak == before, "what has ended needs nothing"


def test_a_corpus_repeats_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_memory, "PATTERN", 4)
    source, target = pair_memory.write_corpus(tmp_path, 10)
    lines = source.read_text().splitlines()
    assert len(lines) == len(target.read_text().splitlines()) == 10
    assert lines == [*lines[:4], *lines[:4], *lines[:2]]
    assert len(set(lines)) == 4


FAKE = """
import sys
values = dict(zip(sys.argv[3::2], sys.argv[4::2]))
lines = open(values["--source"]).readlines()
header = ["line\\n"] if sys.argv[1] == "score" else []
open(values["--output"], "w").writelines([*header, *lines[{skipped}:]])
sys.exit({code})
"""


@pytest.mark.parametrize("command", pair_memory.COMMANDS)
@pytest.mark.parametrize(
    ("skipped", "code", "problem"),
    [(0, 0, None), (1, 0, "gave 2 lines for 3 pairs"), (0, 1, "ended with 1 on")],
)
def test_a_command_must_do_all_pairs(
    command: str,
    skipped: int,
    code: int,
    problem: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(FAKE.format(skipped=skipped, code=code))
    monkeypatch.setattr(pair_memory, "PROGRAM", (sys.executable, str(program)))
    corpus = tmp_path / "3.en", tmp_path / "3.de"
    for path in corpus:
        path.write_text("a\nb\nc\n")
    if problem is None:
        assert measure(command, tmp_path, corpus, 1).pairs == 3
        assert sorted(os.listdir(tmp_path)) == ["3.de", "3.en", "program.py"]
    else:
        with pytest.raises(ValueError, match=problem):
            measure(command, tmp_path, corpus, 1)


def result(pairs: int, peak: float) -> MemoryResult:
    return MemoryResult("score", pairs, peak, peak / 2)


def test_growth() -> None:
    assert growth([result(10, 100.0), result(100, 103.0), result(1000, 101.0)]) == pytest.approx(
        0.03
    )


def test_files(tmp_path: Path) -> None:
    write_results(tmp_path / "memory.json", [result(10, 100.0)], 2)
    document = json.loads((tmp_path / "memory.json").read_text())
    assert document["machine"]["cpu"]
    assert document["results"][0]["peak_mib"] == 100
    assert (tmp_path / "memory.csv").read_text().startswith("command,pairs,peak_mib")


def test_the_model_is_one_that_both_commands_take(tmp_path: Path) -> None:
    folder = pair_memory.write_model(tmp_path)
    assert {"alignment.json", "languages.json", "config.json"} <= set(os.listdir(folder))
