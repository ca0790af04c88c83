"""Limits: what is refused names the limit and the memory it would need."""

import os
from pathlib import Path

import pytest

from relakit import limits
from relakit.limits import check_beam, check_memory, checked_threads, machine_memory, max_threads


def test_this_machine_has_memory() -> None:
    assert 1 << 27 < machine_memory() < 1 << 50


def test_a_container_may_have_less_than_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, none, missing = (tmp_path / name for name in ("limit", "none", "missing"))
    limit.write_text("268435456\n")
    none.write_text("max\n")
    monkeypatch.setattr(limits, "_CGROUP_LIMITS", (limit, none, missing))
    assert machine_memory() == 256 << 20


def test_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "machine_memory", lambda: 8 << 30)
    check_memory("the model", 8 << 30, advice="make it smaller")
    expected = (
        r"^the model would need about 9\.0 GiB of memory, this machine has 8\.0 GiB; make it "
        "smaller$"
    )
    with pytest.raises(ValueError, match=expected):
        check_memory("the model", 9 << 30, advice="make it smaller")
    with pytest.raises(ValueError, match=r"9\.0 GiB of memory, there are 2\.0 GiB; wait"):
        check_memory("it", 9 << 30, available=2 << 30, advice="wait")


def test_a_beam() -> None:
    check_beam(1000)
    expected = (
        "^the beam must be at most 1,000, got 100,000: with a model of the paper's size, a single "
        "translation of 70 tokens would need about 160 GiB of memory$"
    )
    with pytest.raises(ValueError, match=expected):
        check_beam(100_000)


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert checked_threads("--threads", max_threads()) == 64
    assert checked_threads("training.threads", 0, least=0) == 0
    with pytest.raises(ValueError, match=r"^--threads must be at least 1, got 0$"):
        checked_threads("--threads", 0)
    expected = (
        "^--threads must be at most 64 on this machine with 2 processors, got 100,000, whose "
        "stacks alone may take 781 GiB$"
    )
    with pytest.raises(ValueError, match=expected):
        checked_threads("--threads", 100_000)
    monkeypatch.setattr(os, "cpu_count", lambda: 96)
    assert checked_threads("--threads", 384) == 384
