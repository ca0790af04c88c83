"""Peers: started, asked, ended; and what is said when one of them misbehaves."""

import sys
import time
from pathlib import Path

import pytest
from fake_peer_scripts import write_fake_peers

from relakit.bench.peers import Peer, PeerPlace, Peers, check_peers, number_of, worker_environment
from relakit.bench.turns import ContenderError


def start(tmp_path: Path, behaviour: str) -> Peer:
    scripts = write_fake_peers(tmp_path / "scripts", marian=behaviour)
    place = PeerPlace(python=Path(sys.executable), scripts=scripts)
    return Peer("marian", place, threads=1, log=tmp_path / "log")


def test_requests_are_answered(tmp_path: Path) -> None:
    peer = start(tmp_path, "works")
    assert peer.ask("setup-train", batches="x") == {"ok": True, "about": "marian 1.0"}
    answer = peer.ask("decode", sentences=[[5], [6]], exact_length=4)
    assert answer["outputs"] == [[7] * 4] * 2
    peer.close()
    peer.close()


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("fails at setup", "^RuntimeError: out of luck$"),
        ("babbles", "answered setup-decode with no JSON object"),
    ],
)
def test_answers_that_are_none(tmp_path: Path, behaviour: str, reason: str) -> None:
    peer = start(tmp_path, behaviour)
    with pytest.raises(ContenderError, match=reason):
        peer.ask("setup-decode", model=__file__, precision="fp32")
    peer.close()


def test_a_peer_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    peer = start(tmp_path, "dies")
    with pytest.raises(ContenderError, match="ended at decode with code 3: its last words"):
        peer.ask("decode", sentences=[[5]])
    with pytest.raises(ContenderError, match="ended at decode with code 3"):
        peer.ask("decode", sentences=[[5]])
    peer.close()


def test_a_peer_that_hangs_is_ended(tmp_path: Path) -> None:
    peer = start(tmp_path, "hangs")
    began = time.monotonic()
    with pytest.raises(ContenderError, match=r"no answer to decode within 0\.2 seconds"):
        peer.ask("decode", patience=0.2)
    peer.close()
    assert time.monotonic() - began < 30


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
    with pytest.raises(ContenderError, match=r"not installed: there is no .*python; make "):
        Peer("marian", place, threads=1, log=tmp_path / "log")
    place = PeerPlace(python=Path(sys.executable), scripts=tmp_path)
    assert "marian_worker.py" in str(place.why_missing("marian"))


def test_environment() -> None:
    given = {"PATH": "x", "PYTHONPATH": "y", "OMP_NUM_THREADS": "8"}
    expected = {"PATH": "x", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert worker_environment(given, 2) == expected


def test_unknown_peers() -> None:
    check_peers(["marian"], ("joeynmt", "marian"))
    with pytest.raises(ValueError, match="unknown peer 'fairseq'; choose from joeynmt, marian"):
        check_peers(["fairseq"], ("joeynmt", "marian"))


@pytest.mark.parametrize("answer", [{}, {"seconds": "1"}, {"seconds": True}])
def test_answers_without_a_number(answer: dict[str, object]) -> None:
    with pytest.raises(ContenderError, match="no number 'seconds'"):
        number_of(answer, "seconds")
