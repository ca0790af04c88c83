"""Time of relakit's modules relative to PyTorch's, forward and backward together.

All are timed in turn, round after round, in one process: only the ratios mean something. A ratio is
the time of `torch.nn.MultiheadAttention` divided by the time of the other; above 1 is faster.

    python benchmarks/attention_overhead.py --help
"""

import argparse
import statistics
import time

from rich.console import Console
from rich.progress import track
from rich.table import Table

import relakit
import torch
from torch import nn

EMBED, HEADS = 512, 8


def time_step(module: nn.Module, x: torch.Tensor) -> float:
    """Seconds for one forward and backward pass of self-attention without weights."""
    start = time.perf_counter()
    module(x, x, x, need_weights=False)[0].sum().backward()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[32, 128, 512])
    parser.add_argument("--tokens", type=int, default=2048, help="tokens in a batch")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    modules: dict[str, nn.Module] = {
        "nn.MultiheadAttention": nn.MultiheadAttention(EMBED, HEADS, batch_first=True)
    }
    for name in ("softmax", "rela-g", "sparsemax", "entmax15"):
        modules[name] = relakit.MultiheadAttention(EMBED, HEADS, batch_first=True, attention=name)
    baseline = next(iter(modules))

    table = Table(
        title=f"{baseline} = 1 (higher is faster); d = {EMBED}, {HEADS} heads, "
        f"{options.tokens} tokens, {options.threads} threads, median of {options.rounds} rounds"
    )
    table.add_column("length", justify="right")
    for name in modules:
        table.add_column(name, justify="right")
    for length in options.lengths:
        x = torch.randn(max(1, options.tokens // length), length, EMBED, requires_grad=True)
        for module in modules.values():
            time_step(module, x)  # warm up
        ratios: dict[str, list[float]] = {name: [] for name in modules}
        for _ in track(range(options.rounds), description=f"length {length}", transient=True):
            seconds = {name: time_step(module, x) for name, module in modules.items()}
            for name, value in seconds.items():
                ratios[name].append(seconds[baseline] / value)
        table.add_row(
            str(length), *(f"{statistics.median(values):.2f}" for values in ratios.values())
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
