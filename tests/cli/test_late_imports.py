"""What takes long to import is imported when it is needed: not for help, and not for an error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from model_folders import write_model

PROGRAM = """
import json, sys
from relakit.cli.main import main
heavy = ("torch", "transformers", "matplotlib", "sacrebleu", "spacy", "tensorboard")
loaded = {}
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["relakit", *arguments]
    try:
        main()
    except SystemExit as end:
        loaded[" ".join(arguments)] = [end.code or 0, [m for m in heavy if m in sys.modules]]
print(json.dumps(loaded), file=sys.stderr)
"""

HELP = [
    [],
    ["train"],
    ["translate"],
    ["analyze"],
    ["score"],
    ["filter"],
    ["analyze-text"],
    ["evaluate"],
    ["reproduce"],
    ["train-aligner"],
    ["bench", "attention"],
]
ERRORS = [
    ["demo", "--pears"],
    ["doctor", "--yaml"],
    ["generate", "{none}", "--pairs", "0"],
    ["prepare", "{out}", "--train", "{none}", "{none}"],
    ["prepare", "{out}", "--folder", "{none}", "--source-lang", "en", "--target-lang", "de"],
    ["prepare", "{out}", "--train", "{text}", "{text}", "--tokenizer", "{text}"],
    ["train", "dmo"],
    ["train", "{none}.toml"],
    ["train", "demo", "--set", "model.dim=1000000000"],
    ["train", "demo", "--set", "model.attention.power=x"],
    ["train", "demo", "--set", "training.threads=100000", "--out", "{out}"],
    ["train", "demo", "--set", "data.folder={none}", "--out", "{out}"],
    ["train", "demo", "--set", "data.prepared={none}", "--out", "{out}"],
    ["train", "demo", "--out", "{model}"],
    ["train", "--resume", "--out", "{none}"],
    ["average", "{none}", "--out", "{out}"],
    ["translate", "{none}"],
    ["translate", "{model}", "--threads", "100000"],
    ["translate", "{model}", "--precision", "fp8"],
    ["translate", "{model}", "--beam", "100000"],
    ["translate", "{model}", "--alignment"],
    ["translate", "{model}", "--keep-markup"],
    ["translate", "{model}", "--format", "xml"],
    ["translate", "{small}"],
    ["translate", "{model}", "--device", "gpu"],
    ["translate", "{model}", "--input", "{none}"],
    ["translate", "{model}", "--input", "{text}", "--output", "{model}"],
    ["translate", "{model}", "--input", "{text}", "--prefix-file", "{none}"],
    ["translate", "{model}", "--input", "{text}", "--max-tokens", "1", "--too-long", "error"],
    ["evaluate", "{model}", "--source", "{text}", "--reference", "{text}", "--output", "/"],
    ["evaluate", "{model}", "--source", "{text}", "--reference", "{text}", "--baseline", "{none}"],
    ["analyze", "{model}", "--source", "{text}", "--target", "{text}", "--max-tokens", "1",
     "--too-long", "error", "--out", "{out}"],
    ["demo", "--out", "{text}"],
    ["demo", "--out", "{model}"],
    ["evaluate", "{none}", "--source", "{text}", "--reference", "{none}"],
    ["evaluate", "--hypothesis", "{none}", "--reference", "{text}"],
    ["analyze", "{none}", "--source", "{text}", "--target", "{text}", "--out", "{out}"],
    ["analyze", "{model}", "--source", "{none}", "--out", "{out}"],
    ["analyze", "{model}", "--source", "{text}", "--target", "{text}", "--gold", "{text}",
     "--out", "{out}"],
    ["analyze-text", "{none}", "--text", "{text}", "--out", "{out}"],
    ["analyze-text", "{model}", "--text", "{text}", "--out", "{out}"],
    ["analyze-text", "{model}", "--text", "{none}", "--out", "{out}"],
    ["score", "{none}", "--source", "{text}"],
    ["score", "{model}", "--source", "{text}"],
    ["score", "{model}", "--source", "{text}", "--target", "{model}"],
    ["score", "{model}", "--source", "{text}", "--target", "{text}", "--reverse", "{model}"],
    ["filter", "{none}", "--source", "{text}", "--keep", "0.5", "--output", "{out}"],
    ["filter", "{model}", "--source", "{text}", "--output", "{out}"],
    ["filter", "{model}", "--source", "{text}", "--keep", "2", "--output", "{out}"],
    ["filter", "{model}", "--source", "{text}", "--keep", "1", "--by", "x", "--output", "{out}"],
    ["filter", "--scores", "{text}", "--source", "{text}", "--target", "{text}", "--keep", "1",
     "--output", "{out}"],
    ["filter", "{model}", "--calibration", "{text}", "--source", "{text}", "--target", "{text}",
     "--output", "{out}"],
    ["train-aligner", "{none}", "--source", "{text}", "--target", "{text}"],
    ["train-aligner", "{model}", "--source", "{none}", "--target", "{text}"],
    ["train-aligner", "{model}", "--source", "{text}", "--target", "{text}", "--device", "gpu"],
    ["train-aligner", "{model}", "--source", "{text}", "--target", "{text}", "--links", "{text}"],
    ["train-aligner", "{model}", "--source", "{text}", "--target", "{text}", "--reverse",
     "{model}"],
    ["reproduce", "table99"],
    ["reproduce", "table2", "--scale", "huge"],
    ["bench", "attention", "--length", "x"],
    ["bench", "attention", "--contender", "x"],
    ["bench", "attention", "--backend", "x"],
    ["bench", "attention", "--threads", "100000"],
    ["bench", "attention", "--resume"],
]  # fmt: skip


@pytest.mark.parametrize(
    ("commands", "status"), [([[*c, "--help"] for c in HELP], {0}), (ERRORS, {1, 2})]
)
def test_heavy_modules(commands: list[list[str]], status: set[int], tmp_path: Path) -> None:
    """In one process, another than this one: no command loads what a later one would be free of."""
    model, small = write_model(tmp_path / "model"), write_model(tmp_path / "small")
    config = json.loads((small / "config.json").read_text())
    config["model"]["encoder_layers"] = 7
    (small / "config.json").write_text(json.dumps(config))
    text = tmp_path / "text"
    text.write_text("one\ntwo words\n")
    places = {"none": tmp_path / "none", "out": tmp_path / "out", "model": model}
    filled = [
        [part.format(**places, text=text, small=small) for part in command] for command in commands
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(filled)],
        capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "80"},
    )  # fmt: skip
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert len(loaded) == len(commands), "each ended"
    assert {code for code, _ in loaded.values()} <= status, done.stderr
    assert {command: modules for command, (_, modules) in loaded.items() if modules} == {}
