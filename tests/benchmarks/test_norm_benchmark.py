"""The norm's benchmark: both ways run, and the formula is what the reference backend computes."""

import os

import pytest
import torch

import norm


def test_both_passes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAKIT_BACKEND", "")
    for name, call in norm.make_calls((1, 4, 64), torch.float32).items():
        ratio, quartiles, microseconds = norm.compare(name, call, rounds=1)
        assert float(ratio) > 0
        assert " to " in quartiles
        assert float(microseconds) > 0


def test_each_contender_has_its_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAKIT_BACKEND", "")
    seen: list[str] = []
    for backend in norm.BACKENDS.values():
        contender = norm.WithBackend(backend, lambda: seen.append(os.environ["RELAKIT_BACKEND"]))
        contender.warm_up("x")
        assert set(seen) == {backend}
        seen.clear()
        contender.run("x", 0)
        assert set(seen) == {backend}
        seen.clear()
