"""A small prepared corpus and fake peers, for the tests of whole speed benchmarks."""

import sys
from pathlib import Path

from fake_peer_scripts import write_fake_peers

from relakit.data.generated import write_corpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.data.text_folder import find_splits
from toolkits.peers import PeerPlace

VOCABULARY = 400


def make_corpus(folder: Path) -> Path:
    """Prepared splits train and test."""
    write_corpus(folder / "text", sizes={"train": 200, "test": 40})
    settings = PrepareSettings(vocab_size=VOCABULARY)
    prepare(find_splits(folder / "text", "en", "de"), folder / "prepared", settings=settings)
    return folder / "prepared"


def fake_place(folder: Path, **behaviours: str) -> PeerPlace:
    """Peers that are run by this Python."""
    scripts = write_fake_peers(folder / "scripts", **behaviours)
    return PeerPlace(python=Path(sys.executable), scripts=scripts)
