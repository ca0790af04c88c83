"""Time of the C++ norm relative to the same formula in PyTorch, for ReLA-g's gated RMSNorm.

Both are timed in turn, round after round, in one process: only the ratios mean something. A ratio
is the time of the formula divided by the time of the kernels; above 1 the kernels are faster. The
input is laid out as attention leaves it, heads before positions.

    python benchmarks/norm.py --help
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

import relakit
import torch
from torch import Tensor

SHAPES = [(8, 128, 512), (32, 64, 512), (1, 4, 64)]  # batch, positions, features
HEADS = 8
BACKENDS = {"formula": "reference", "kernels": ""}  # values of RELAKIT_BACKEND


def forward(norm: relakit.RMSNorm, z: Tensor, upstream: Tensor) -> None:
    with torch.no_grad():
        norm(z, heads_apart=True)


def both_passes(norm: relakit.RMSNorm, z: Tensor, upstream: Tensor) -> None:
    norm(z, heads_apart=True).backward(upstream)


def compare(run: Callable[[], None], rounds: int, repeats: int) -> tuple[float, float]:
    """The median ratio, and the median microseconds of the kernels."""
    ratios, times = [], []
    for _ in range(rounds + 1):
        seconds = {}
        for name, backend in BACKENDS.items():
            os.environ["RELAKIT_BACKEND"] = backend
            start = time.perf_counter()
            for _ in range(repeats):
                run()
            seconds[name] = (time.perf_counter() - start) / repeats
        ratios.append(seconds["formula"] / seconds["kernels"])
        times.append(1e6 * seconds["kernels"])
    return statistics.median(ratios[1:]), statistics.median(times[1:])  # the first warms up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    table = Table(
        title=f"formula / kernels (higher: kernels are faster); {options.dtype}, "
        f"{options.threads} threads, median of {options.rounds} rounds"
    )
    for heading in ("batch, positions, features", "pass", "ratio", "kernels, µs"):
        table.add_column(heading, justify="right")
    for batch, positions, features in SHAPES:
        dtype = getattr(torch, options.dtype)
        norm = relakit.GatedRMSNorm(features)
        attention = torch.randn(batch, HEADS, positions, features // HEADS).to(dtype)
        z = attention.transpose(1, 2).requires_grad_()
        upstream = torch.randn(batch, positions, features).to(dtype)
        repeats = max(1, 200_000 // z.numel())
        for label, step in (("forward", forward), ("both", both_passes)):

            def run(step: Callable[..., None] = step) -> None:
                step(norm, z, upstream)  # noqa: B023 (called before the loop goes on)

            ratio, microseconds = compare(run, options.rounds, repeats)
            shape = f"{batch}, {positions}, {features}"
            table.add_row(shape, label, f"{ratio:.2f}", f"{microseconds:.0f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
