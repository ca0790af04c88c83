"""Time of the C++ norm relative to the same formula in PyTorch, for ReLA-g's gated RMSNorm.

Both take turns in one process, so only the ratios are meaningful. A ratio is the time of the
formula divided by the time of the kernels; above 1, the kernels are faster. The input has the
layout that attention produces: heads before positions.

    python benchmarks/norm.py --help
"""

import argparse
import os
from collections.abc import Callable
from typing import Final

import torch
from rich.console import Console

import relakit
from relakit.amounts import number_with_noun
from relakit.bench.rounds import (
    CaseRounds,
    Field,
    FixedRounds,
    RepeatedCall,
    Turn,
    seconds_per_call,
    take_turns,
)
from relakit.bench.tables import make_table, median_text, number_text, quartiles_text

SHAPES: Final = ((8, 128, 512), (32, 64, 512), (1, 4, 64))
"""Batch, positions, features."""
HEADS: Final = 8
BACKENDS: Final = {"formula": "reference", "kernels": ""}
"""RELAKIT_BACKEND for each contender."""


class WithBackend:
    """A call that runs with RELAKIT_BACKEND set to a given value."""

    def __init__(self, backend: str, call: Callable[[], object]) -> None:
        self._backend = backend
        self._calls = RepeatedCall(call)

    def warm_up(self, case: str) -> None:
        os.environ["RELAKIT_BACKEND"] = self._backend
        self._calls.warm_up(case)

    def run(self, case: str, number: int) -> Turn:
        os.environ["RELAKIT_BACKEND"] = self._backend
        return self._calls.run(case, number)


def make_calls(shape: tuple[int, int, int], dtype: torch.dtype) -> dict[str, Callable[[], object]]:
    """The passes over one input, by name."""
    batch, positions, features = shape
    norm = relakit.GatedRMSNorm(features)
    attention = torch.randn(batch, HEADS, positions, features // HEADS).to(dtype)
    z = attention.transpose(1, 2).requires_grad_()
    upstream = torch.randn(batch, positions, features).to(dtype)

    def forward() -> object:
        with torch.no_grad():
            return norm(z, heads_apart=True)

    def both() -> None:
        torch.autograd.backward(norm(z, heads_apart=True), upstream)

    return {"forward": forward, "both": both}


def compare(name: str, call: Callable[[], object], rounds: int) -> list[str]:
    """Ratio, quartiles and microseconds, formatted for a table."""
    case = CaseRounds(name)
    contenders = {label: WithBackend(backend, call) for label, backend in BACKENDS.items()}
    take_turns(Field(dict(contenders)), case, FixedRounds(rounds))
    ratio = case.ratio("formula", "kernels", seconds_per_call)
    seconds = case.values("kernels", seconds_per_call)
    microseconds = None if seconds is None else 1e6 * seconds.median
    return [median_text(ratio), quartiles_text(ratio), number_text(microseconds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for shape in SHAPES:
        label = ", ".join(map(str, shape))
        for name, call in make_calls(shape, getattr(torch, options.dtype)).items():
            rows.append([label, name, *compare(f"{label}, {name}", call, options.rounds)])
    threads = number_with_noun(options.threads, "thread")
    title = f"formula / kernels, {options.dtype}, {threads}, {options.rounds} rounds"
    headings = ["batch, positions, features", "pass", "ratio", "quartiles", "kernels, µs"]
    Console(width=100, highlight=False).print(make_table(title, headings, rows, left=("pass",)))


if __name__ == "__main__":
    main()
