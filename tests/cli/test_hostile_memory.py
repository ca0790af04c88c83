"""Inputs that are made to take all memory take less than a gigabyte, in one process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from model_folders import write_model
from peak_memory import PRINT_PEAK, needs_proc

PROGRAM = """
import json, sys
from relakit.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["relakit", *arguments]
    try:
        main()
    except SystemExit as end:
        print("status", end.code or 0)
"""
GIB = 1 << 20  # in KiB


@needs_proc
def test_peak_memory_of_hostile_inputs(tmp_path: Path) -> None:
    model, broken = write_model(tmp_path / "model"), write_model(tmp_path / "broken")
    config = json.loads((broken / "config.json").read_text())
    config["model"]["encoder_layers"] = 100_000_000
    (broken / "config.json").write_text(json.dumps(config))
    line, pairs, output = tmp_path / "line", tmp_path / "pairs.tsv", tmp_path / "output"
    line.write_text("dog " * 250_000 + "\n" + "x" * 1_000_000 + "\n")
    pairs.write_text("a dog\tein Hund\na\tein\n" + "dog " * 30_000 + "\t" + "Hund " * 30_000 + "\n")
    commands = [
        ["translate", model, "--input", line, "--output", output, "--max-length", "5"],
        ["translate", broken, "--input", line],
        ["analyze", model, "--source", pairs, "--out", tmp_path / "report", "--no-translate"],
        ["train", "demo", "--set", "model.dim=1000000000"],
    ]
    arguments = json.dumps([[str(part) for part in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + PRINT_PEAK, arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    printed = [line.split() for line in done.stdout.splitlines()]
    assert [int(words[1]) for words in printed if words[0] == "status"] == [0, 1, 0, 1], done.stderr
    assert output.read_text().count("\n") == 2
    assert int(printed[-1][1]) < GIB
