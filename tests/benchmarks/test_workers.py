"""Workers: started, asked, ended; and what is said when one of them misbehaves."""

import sys
import time
from pathlib import Path

import pytest
from fake_peer_scripts import write_fake_peers

from relakit.bench.rounds import ContenderError
from workers import Worker, number_of, worker_environment


def start(tmp_path: Path, behaviour: str) -> Worker:
    scripts = write_fake_peers(tmp_path / "scripts", marian=behaviour)
    script = scripts / "marian_worker.py"
    return Worker(Path(sys.executable), script, threads=1, log=tmp_path / "log")


def test_requests_are_answered(tmp_path: Path) -> None:
    worker = start(tmp_path, "works")
    assert worker.ask("setup-train", batches="x") == {"ok": True, "about": "marian 1.0"}
    answer = worker.ask("decode", sentences=[[5], [6]], exact_length=4)
    assert answer["outputs"] == [[7] * 4] * 2
    worker.close()
    worker.close()


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("fails at setup", "^RuntimeError: out of luck$"),
        ("babbles", "answered setup-decode with no JSON object"),
    ],
)
def test_answers_that_are_none(tmp_path: Path, behaviour: str, reason: str) -> None:
    worker = start(tmp_path, behaviour)
    with pytest.raises(ContenderError, match=reason):
        worker.ask("setup-decode", model=__file__, precision="fp32")
    worker.close()


def test_a_worker_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    worker = start(tmp_path, "dies")
    with pytest.raises(ContenderError, match="ended at decode with code 3: its last words"):
        worker.ask("decode", sentences=[[5]])
    with pytest.raises(ContenderError, match="ended at decode with code 3"):
        worker.ask("decode", sentences=[[5]])
    worker.close()


def test_a_worker_that_hangs_is_ended(tmp_path: Path) -> None:
    worker = start(tmp_path, "hangs")
    began = time.monotonic()
    with pytest.raises(ContenderError, match=r"no answer to decode within 0\.2 seconds"):
        worker.ask("decode", patience=0.2)
    worker.close()
    assert time.monotonic() - began < 30


def test_environment() -> None:
    given = {"PATH": "x", "PYTHONPATH": "y", "OMP_NUM_THREADS": "8"}
    expected = {"PATH": "x", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert worker_environment(given, 2) == expected


@pytest.mark.parametrize("answer", [{}, {"seconds": "1"}, {"seconds": True}])
def test_answers_without_a_number(answer: dict[str, object]) -> None:
    with pytest.raises(ContenderError, match="no number 'seconds'"):
        number_of(answer, "seconds")


def test_a_python_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ContenderError, match=r"cannot start .*nowhere: "):
        Worker(tmp_path / "nowhere", tmp_path / "x.py", threads=1, log=tmp_path / "log")
