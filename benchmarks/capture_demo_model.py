"""Make `src/relakit/bench/demo_heads.safetensors`: queries, keys and values of a trained model.

Trains the ReLA-g model of `examples/sequence_task.py` and stores some rows of every head, for
`relakit bench attention --zeros demo`. Needed only when the example changes.

    python benchmarks/capture_demo_model.py --help
"""

import argparse
import sys
from pathlib import Path

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors.torch import save
from torch import Tensor, nn

import relakit
from relakit.bench.inputs import DEMO_FILE
from relakit.files.writing import write_whole
from relakit.ops.call import AttentionCall
from relakit.ops.listeners import add_listener, remove_listener

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from sequence_task import PAD, Batch, Reverser, make_batch, train

HEADS, LAYERS, DIM = 4, 2, 64


def train_model(steps: int) -> Reverser:
    torch.manual_seed(0)
    model = Reverser(DIM, HEADS, LAYERS)
    relakit.convert_attention(model, "rela-g")
    bar = [TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()]
    with Progress(*bar, TextColumn("{task.fields[loss]}")) as progress:
        train(model, steps, 64, progress, "rela-g")
    return model.eval()


@torch.no_grad()
def calls_by_module(model: Reverser, batch: Batch) -> dict[str, AttentionCall]:
    """The attention call of each module for one batch."""
    calls: dict[str, AttentionCall] = {}
    running = ""

    def remember(name: str) -> None:
        nonlocal running
        running = name

    modules = {
        name: module
        for name, module in model.transformer.named_modules()
        if isinstance(module, nn.MultiheadAttention)
    }
    hooks = [
        module.register_forward_pre_hook(lambda *_, name=name: remember(name))
        for name, module in modules.items()
    ]

    def listener(call: AttentionCall) -> None:
        calls[running] = call

    add_listener(listener)
    try:
        model(batch.source, batch.target_input)
    finally:
        remove_listener(listener)
        for hook in hooks:
            hook.remove()
    return calls


def kind_of(name: str) -> str:
    if name.endswith("multihead_attn"):
        return "cross"
    return name.partition(".")[0]


def pick_rows(tensors: list[Tensor], is_token: Tensor, rows: int) -> list[Tensor]:
    """Rows at the same random positions, never padding: ``[heads, rows, dim]`` for each tensor."""
    positions = is_token.nonzero()
    positions = positions[torch.randperm(len(positions))[:rows]]
    return [x[positions[:, 0], :, positions[:, 1]].transpose(0, 1) for x in tensors]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=1000, help="training steps")
    parser.add_argument("--rows", type=int, default=96, help="rows to store per head")
    parser.add_argument("--out", type=Path, default=DEMO_FILE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = train_model(options.steps)
    batch = make_batch(500, torch.Generator().manual_seed(2))
    is_source, is_target = batch.source != PAD, batch.target != PAD

    heads: dict[str, list[Tensor]] = {}
    for name, call in calls_by_module(model, batch).items():
        kind = kind_of(name)
        queries_are = is_source if kind == "encoder" else is_target
        keys_are = is_target if kind == "decoder" else is_source
        (query,) = pick_rows([call.query], queries_are, options.rows)
        key, value = pick_rows([call.key, call.value], keys_are, options.rows)
        for part, tensor in (("query", query), ("key", key), ("value", value)):
            heads.setdefault(f"{kind}.{part}", []).append(tensor)
    tensors = {name: torch.cat(parts).half().contiguous() for name, parts in heads.items()}

    write_whole(options.out, save(tensors))
    for name, tensor in tensors.items():
        print(f"{name}: {tuple(tensor.shape)}")
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
