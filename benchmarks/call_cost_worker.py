"""The worker of `call_cost.py`: times calls of relakit and of PyTorch in one checkout.

It is run by the Python of the checkout that is measured, which may be an older one, so it needs
only the standard library, torch and the public names of relakit. Requests and answers are JSON
objects, one per line:

    {"do": "setup", "threads": 1}                     -> {"about": "..."}
    {"do": "prepare", "who": "relakit", "case": {…}}  -> {"ok": true}
    {"do": "run", "who": "relakit"}                   -> {"seconds": 0.002, "calls": 7}
    {"do": "quit"}                                    -> {"ok": true}

``who`` is relakit or torch. A new case replaces the previous one. A case has the fields of
`CallCase` in `call_cost.py`.
"""

import gc
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import relakit

EMBED, HEADS = 512, 8
SHORTEST_BLOCK = 2e-3  # seconds; a shorter block would measure the clock and the scheduler
TOLERANCE = 1e-4  # largest difference from the reference, relative to the largest value

Case = dict[str, Any]
Call = Callable[[], Any]


class Worker:
    def __init__(self) -> None:
        self.case: Case = {}
        self.calls: dict[str, tuple[Call, int]] = {}

    def setup(self, request: Case) -> Case:
        torch.set_num_threads(request["threads"])
        gc.disable()  # garbage is collected before a new case, never during timing
        return {"about": f"{relakit.__file__}, torch {torch.__version__}"}

    def prepare(self, request: Case) -> Case:
        case, who = request["case"], request["who"]
        if case != self.case:
            self.case, self.calls = case, {}
            gc.collect()
        call = make_call(who, case)
        if who == "relakit":
            check(case)
        for _ in range(3):  # the first call allocates memory and builds tables
            start = time.perf_counter()
            call()
            single = time.perf_counter() - start
        self.calls[who] = call, max(1, math.ceil(SHORTEST_BLOCK / single))
        return {"ok": True}

    def run(self, request: Case) -> Case:
        call, calls = self.calls[request["who"]]
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return {"seconds": time.perf_counter() - start, "calls": calls}


def make_call(who: str, case: Case) -> Call:
    """What is timed: a forward pass without gradients, or a forward and a backward pass."""
    torch.manual_seed(1)
    if case["what"] == "function":
        forward, leaves = make_function(who, case)
    else:
        forward, leaves = make_module(who, case)
    if case["passes"] == "forward":

        def without_gradients() -> Tensor:
            with torch.no_grad():
                return forward()

        return without_gradients
    upstream = torch.randn_like(forward())

    def both() -> tuple[Tensor, ...]:
        return torch.autograd.grad(forward(), leaves, upstream)

    return both


def make_function(who: str, case: Case) -> tuple[Callable[[], Tensor], list[Tensor]]:
    """`relakit.attention`, or PyTorch's softmax attention, on three tensors."""
    shape = (case["batch"], HEADS, case["positions"], EMBED // HEADS)
    needs_grad = case["passes"] == "both"
    leaves = [torch.randn(shape, requires_grad=needs_grad) for _ in range(3)]
    query, key, value = leaves
    function = relakit.attention if who == "relakit" else F.scaled_dot_product_attention
    dropout = case["dropout"]

    def forward() -> Tensor:
        return function(query, key, value, dropout_p=dropout)

    return forward, leaves


def make_module(who: str, case: Case) -> tuple[Callable[[], Tensor], list[Tensor]]:
    """Self-attention: ReLA-g with its norm, or PyTorch's softmax."""
    needs_grad = case["passes"] == "both"
    x = torch.randn(case["batch"], case["positions"], EMBED, requires_grad=needs_grad)
    kind = relakit.MultiheadAttention if who == "relakit" else nn.MultiheadAttention
    module = kind(EMBED, HEADS, dropout=case["dropout"], batch_first=True)
    # As in practice: evaluation mode is for passes without gradients and without dropout.
    module.train(needs_grad or case["dropout"] > 0)
    need_weights = case["what"] == "module with weights"

    def forward() -> Tensor:
        output: Tensor = module(x, x, x, need_weights=need_weights)[0]
        return output

    return forward, [x, *module.parameters()]


def check(case: Case) -> None:
    """Compare relakit without dropout with its reference: a wrong result must not be timed."""
    call = make_call("relakit", {**case, "dropout": 0.0})
    found = call()
    os.environ["RELAKIT_BACKEND"] = "reference"
    try:
        expected = call()
    finally:
        del os.environ["RELAKIT_BACKEND"]
    pairs = [(found, expected)] if isinstance(found, Tensor) else zip(found, expected, strict=True)
    for x, y in pairs:
        error, largest = float((x - y).abs().max()), float(y.abs().max())
        if not error <= TOLERANCE * max(largest, 1e-3):
            raise RuntimeError(f"differs from the reference by {error:.2g} of {largest:.2g}")


def main() -> None:
    os.environ.pop("RELAKIT_BACKEND", None)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # keep what libraries print out of the answers
    worker = Worker()
    known = {"setup": worker.setup, "prepare": worker.prepare, "run": worker.run}
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "quit":
            print('{"ok": true}', file=answers, flush=True)
            return
        try:
            answer = known[request["do"]](request)
        except Exception as error:  # goes into the benchmark's report
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
