"""The folder that every row of a fault table starts from: one of everything, whole and small."""

import shutil
from pathlib import Path

from fault_rows import run

RECIPE = """
[data]
prepared = "prepared"
[model]
size = "tiny"
dim = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 16
[training]
updates = 4
batch_tokens = 400
update_tokens = 400
checkpoint_every = 2
threads = 1
device = "cpu"
[validation]
bleu = false
"""


def build(folder: Path) -> Path:
    """Make ``corpus``, ``prepared``, ``run``, ``model``, texts, a recipe and a tokenizer."""
    folder.mkdir(parents=True)
    (folder / "stdin.txt").write_text("the dog\n")
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "text.en").write_text("the dog\na house\nold men\n")
    (folder / "text.de").write_text("der Hund\nein Haus\nalte Leute\n")
    (folder / "pairs.tsv").write_text("the dog\tder Hund\na house\tein Haus\n")
    (folder / "gold").write_text("0-0 1-1\n0-0 1-1\n0-0 1?1\n")
    (folder / "tags").write_text("DET NOUN\nDET NOUN\nADJ NOUN\n")
    for command in (
        "generate corpus --pairs 60 --split valid=6 --split test=6",
        "prepare prepared --folder corpus --source-lang en --target-lang de --vocab-size 300",
        "train recipe.toml --out run",
    ):
        answer = run(command.split(), folder)
        assert answer.code == 0, answer.errors
    shutil.copytree(folder / "run/model", folder / "model")
    shutil.copy(folder / "model/tokenizer.json", folder / "tokenizer.json")
    return folder
