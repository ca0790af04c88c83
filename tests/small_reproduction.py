"""The reproduction's corpus "demo", made so small that a run on it takes a second or two."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from relakit.reproduce.corpora import CORPORA, Corpus
from relakit.reproduce.places import Places
from relakit.reproduce.runs import Run

RUN = Run(scale="tiny", corpus="demo", row="rela-g", seed=2)
UPDATES = 12
RECIPE = f"""
[data]
vocab_size = 400

[data.generated]
train = 300
valid = 60
test = 60

[model]
size = "tiny"
dim = 16
heads = 2
encoder_layers = 2
decoder_layers = 2
feed_forward = 16

[training]
updates = {UPDATES}
batch_tokens = 600
update_tokens = 600
warmup = 10
checkpoint_every = 4
keep = 2

[validation]
every = 6
bleu = false
"""


def small_corpora(folder: Path) -> Mapping[str, Corpus]:
    """All corpora of the reproduction, with a small "demo"; its recipe is written to a folder."""
    path = folder / "small.toml"
    path.write_text(RECIPE, encoding="utf-8")
    demo = replace(CORPORA["demo"], recipes=MappingProxyType({"tiny": str(path)}))
    return MappingProxyType({**CORPORA, "demo": demo})


def places_in(folder: Path) -> Places:
    return Places(data=folder / "data", runs=folder / "runs", results=folder / "results")
