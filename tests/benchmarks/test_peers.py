"""Peers: which there are, where they live, and that all of them end."""

import sys
from pathlib import Path

import pytest
from fake_peer_scripts import write_fake_peers

from relakit.bench.rounds import ContenderError
from toolkits.peers import PeerPlace, Peers, check_peers


def test_all_peers_end_together(tmp_path: Path) -> None:
    scripts = write_fake_peers(tmp_path / "scripts", marian="works", joeynmt="works")
    place = PeerPlace(python=Path(sys.executable), scripts=scripts)
    with Peers(place, threads=1, folder=tmp_path) as peers:
        started = [peers.start("marian"), peers.start("joeynmt"), peers.start("marian")]
        for peer in started:
            peer.ask("setup-train", batches="x")
    for peer in started:
        assert peer._process.poll() == 0


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    place = PeerPlace(python=tmp_path / "python", scripts=tmp_path)
    with (
        Peers(place, threads=1, folder=tmp_path) as peers,
        pytest.raises(ContenderError, match=r"not installed: there is no .*python; make "),
    ):
        peers.start("marian")
    place = PeerPlace(python=Path(sys.executable), scripts=tmp_path)
    assert "marian_worker.py" in str(place.why_missing("marian"))


def test_unknown_peers() -> None:
    check_peers(["marian"], ("joeynmt", "marian"))
    with pytest.raises(ValueError, match="unknown peer 'fairseq'; choose from joeynmt, marian"):
        check_peers(["fairseq"], ("joeynmt", "marian"))
