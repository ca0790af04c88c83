"""Peak memory: what it sees, and that it does not see what came before."""

from pathlib import Path

import pytest

from relakit.bench import memory
from relakit.bench.cases import Case
from relakit.bench.memory import measure_peak_mib, why_no_memory
from relakit.ops.backends import BACKENDS

pytestmark = pytest.mark.skipif(why_no_memory() is not None, reason=str(why_no_memory()))

CASE = Case(mode="forward", length=1024, zeros=90.0, heads=4)
SCORES = 4 * 1024 * 1024 * 4 / 2**20
"""MiB of the scores."""


def peak(name: str, backend: str | None = None) -> float:
    return measure_peak_mib(name, CASE, backend=backend, threads=1)


def test_two_products_hold_scores_and_weights() -> None:
    assert 2 * SCORES < peak("bmm-softmax") < 2.5 * SCORES


def test_sdpa_holds_no_scores() -> None:
    assert peak("sdpa") < 0.5 * SCORES


@pytest.mark.skipif(bool(BACKENDS["native"].unavailable()), reason="no native kernels")
def test_native_rela_holds_no_scores() -> None:
    assert peak("rela", "native") < 0.5 * SCORES


def test_an_earlier_run_leaves_no_trace() -> None:
    first = peak("sdpa")
    peak("bmm-softmax")
    assert peak("sdpa") == pytest.approx(first, abs=1.0)


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(OSError, match="the memory of nobody ended with exit code 1"):
        peak("nobody")


def test_says_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "CLEAR", tmp_path / "no" / "clear_refs")
    reason = why_no_memory()
    assert reason is not None
    assert reason.startswith("peak memory needs Linux")
