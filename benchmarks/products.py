"""How near a translator's matrix products come to what the processor can do.

With 256 rows (64 sentences, beam 4) arithmetic is the limit: multiply-adds per second, beside
torch.mm on the same shape, as a share of what a loop in registers achieves in float32. With 4 rows
(one sentence) memory is the limit: bytes of weights per second, as a share of the speed at which a
large array is read. In that case the weights of many layers take turns, more than caches hold.

    python benchmarks/products.py --help
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from rich.console import Console

from relakit.amounts import number_with_noun
from relakit.bench.machine import describe_machine
from relakit.bench.results import write_csv
from relakit.bench.tables import make_table
from relakit.ops.native.extension import choose_isa, load_extension

SIZES: Final = {"small": (256, 1024), "base": (512, 2048)}
"""Features, and features inside a feed-forward layer."""
VOCABULARY: Final = 8000
MANY_ROWS, FEW_ROWS = 256, 4
PANEL: Final = 64
LOOPS: Final = 200_000
"""Loops of multiply-adds in registers, which set the limit for arithmetic."""
COLD_BYTES: Final = 1 << 28
"""Bytes of weights that take turns: more than a cache holds."""


@dataclass(frozen=True)
class Product:
    """A shape, and what was measured with it."""

    size: str
    layer: str
    rows: int
    inputs: int
    outputs: int
    contender: str
    speed: float
    """10^9 multiply-adds per second; with few rows, 10^9 bytes of weights per second"""
    share: float
    """Share of what the machine can do in float32: multiply-adds, or bytes from memory"""


def shapes(size: str) -> dict[str, tuple[int, int]]:
    """Numbers of inputs and outputs of a decoder's layers."""
    dim, inner = SIZES[size]
    return {
        "query, key, value": (dim, 3 * dim),
        "attention's output": (dim, dim),
        "feed-forward, inner": (dim, inner),
        "feed-forward, outer": (inner, dim),
        "vocabulary": (dim, VOCABULARY),
    }


def packed(weight: torch.Tensor, isa: str, *, in_bytes: bool) -> Any:
    """A layer in the form that the translator uses."""
    outputs, inputs = weight.shape
    extension = load_extension()
    return extension.PackedLinear(isa, weight.data_ptr(), 0, outputs, inputs, in_bytes, 0.0)


def calls(rows: int, inputs: int, outputs: int) -> dict[str, list[Callable[[], object]]]:
    """Calls by contender: one call, or with few rows one call for each of many layers."""
    isa, threads = choose_isa(), torch.get_num_threads()
    x = torch.randn(rows, inputs)
    y = torch.empty(rows, math.ceil(outputs / PANEL) * PANEL)
    weight = torch.randn(outputs, inputs)
    found: dict[str, list[Callable[[], object]]] = {}

    def ours(layer: Any) -> Callable[[], object]:
        return lambda: layer.multiply(isa, threads, x.data_ptr(), rows, y.data_ptr())

    def theirs(transposed: torch.Tensor) -> Callable[[], object]:
        return lambda: torch.mm(x, transposed)

    for name, size in (("fp32", 4), ("int8", 1)):
        copies = max(1, COLD_BYTES // weight.numel() // size) if rows == FEW_ROWS else 1
        layers = [packed(weight, isa, in_bytes=name == "int8") for _ in range(copies)]
        found[name] = [ours(layer) for layer in layers]
    copies = len(found["fp32"])
    found["torch.mm"] = [theirs(weight.t().contiguous()) for _ in range(copies)]
    return found


def best_seconds(
    contenders: dict[str, list[Callable[[], object]]], rounds: int
) -> dict[str, float]:
    """The shortest time of a call for each contender; the contenders take turns."""
    best = dict.fromkeys(contenders, math.inf)
    for number in range(rounds + 1):
        for name, its_calls in contenders.items():
            start = time.perf_counter()
            for call in its_calls:
                call()
            seconds = (time.perf_counter() - start) / len(its_calls)
            if number:  # the first turn warms up
                best[name] = min(best[name], seconds)
    return best


def limits(rounds: int) -> tuple[float, float]:
    """10^9 multiply-adds per second in float32, and 10^9 bytes read per second."""
    array = torch.ones(COLD_BYTES // 4)
    native, isa = load_extension(), choose_isa()
    operations = native.multiply_and_add(isa, LOOPS)  # two per multiply-add
    found = best_seconds(
        {
            "registers": [lambda: native.multiply_and_add(isa, LOOPS)],
            "memory": [lambda: array.sum()],
        },
        rounds,
    )
    threads = torch.get_num_threads()  # the loop uses only one
    arithmetic = threads * operations / 2 / found["registers"] / 1e9
    return arithmetic, COLD_BYTES / found["memory"] / 1e9


def measure(size: str, rounds: int) -> list[Product]:
    """All layers of a size, with many rows and with few."""
    arithmetic, memory = limits(rounds)
    found = []
    for rows in (MANY_ROWS, FEW_ROWS):
        for layer, (inputs, outputs) in shapes(size).items():
            repeated = 20 * rounds if rows == MANY_ROWS else rounds
            for name, seconds in best_seconds(calls(rows, inputs, outputs), repeated).items():
                if rows == MANY_ROWS:
                    speed, limit = rows * inputs * outputs / seconds / 1e9, arithmetic
                else:
                    byte_count = inputs * outputs * (1 if name == "int8" else 4)
                    speed, limit = byte_count / seconds / 1e9, memory
                found.append(
                    Product(size, layer, rows, inputs, outputs, name, speed, speed / limit)
                )
    return found


def show(found: list[Product]) -> None:
    """Print a table for many rows, and one for few."""
    names = list(dict.fromkeys(product.contender for product in found))
    headings = ["size", "layer", *(text for name in names for text in (name, "share"))]
    for rows, unit in ((MANY_ROWS, "multiply-adds"), (FEW_ROWS, "bytes of weights")):
        lines: dict[tuple[str, str], list[str]] = {}
        for product in found:
            if product.rows == rows:
                line = lines.setdefault((product.size, product.layer), [])
                line += [f"{product.speed:.1f}", f"{product.share:.0%}"]
        title = f"{rows} rows: 10^9 {unit} per second, and share of the limit in float32"
        table = make_table(
            title, headings, [[*key, *line] for key, line in lines.items()], left=("size", "layer")
        )
        Console(width=100, highlight=False).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=tuple(SIZES), action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--csv", type=Path, help="for the numbers")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with torch.inference_mode():
        found = [p for size in options.size or SIZES for p in measure(size, options.rounds)]
    machine, threads = describe_machine(), number_with_noun(options.threads, "thread")
    print(f"{machine.cpu}, {machine.rela_instructions}, torch {machine.torch}, {threads}")
    show(found)
    if options.csv is not None:
        write_csv(options.csv, [asdict(product) for product in found])


if __name__ == "__main__":
    main()
