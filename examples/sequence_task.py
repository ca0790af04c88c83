"""Train a converted `nn.Transformer` on a sequence task, with softmax and with ReLA-g.

The task: read a string of digits and letters, and write its digits in reverse order. ``4 x 7 b 1``
becomes ``1 7 4``. The letters are there to be ignored, which is what exact zeros are good for.

Both models are the same `nn.Transformer` with the same seed and the same data; one line converts
the attention. Prints the accuracy on held-out strings and how sparse the attention is.

    python examples/sequence_task.py --help
"""

import argparse
import time
from collections import defaultdict
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn

import relakit
from relakit.analysis import null_rate, sparsity_rate

PAD, START, END = 0, 1, 2
DIGITS = range(3, 13)
LETTERS = range(13, 23)
VOCABULARY = 23
SHORTEST, LONGEST = 4, 12
KINDS = {
    "encoder": "encoder.*self_attn",
    "decoder": "decoder.*self_attn",
    "cross": "*multihead_attn",
}


@dataclass(frozen=True)
class Batch:
    """Token ids: sources ``[batch, keys]``, targets ``[batch, queries]``, padded with PAD."""

    source: Tensor
    target_input: Tensor
    target: Tensor


def make_batch(size: int, generator: torch.Generator) -> Batch:
    """Random strings and their digits in reverse order."""
    symbols = torch.randint(DIGITS.start, LETTERS.stop, (size, LONGEST), generator=generator)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (size, 1), generator=generator)
    symbols[torch.arange(LONGEST) >= lengths] = PAD
    source = torch.cat([symbols, torch.full((size, 1), PAD)], dim=1)
    source.scatter_(1, lengths, END)
    target = torch.full((size, LONGEST + 1), PAD)
    for row, string in enumerate(symbols.tolist()):
        digits = [symbol for symbol in reversed(string) if symbol in DIGITS]
        target[row, : len(digits) + 1] = torch.tensor([*digits, END])
    target_input = torch.cat([torch.full((size, 1), START), target[:, :-1]], dim=1)
    return Batch(source, target_input.masked_fill(target_input == END, PAD), target)


class Reverser(nn.Module):
    """Embeddings, positions and PyTorch's own `nn.Transformer`."""

    def __init__(self, dim: int, heads: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, dim)
        self.positions = nn.Embedding(LONGEST + 1, dim)
        self.transformer = nn.Transformer(
            dim, heads, layers, layers, 4 * dim, dropout=0.0, batch_first=True
        )

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Scores ``[batch, queries, vocabulary]`` of the next symbols."""
        padding = source == PAD
        length = target_input.size(1)
        hidden = self.transformer(
            self.embed(source),
            self.embed(target_input),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens) + self.positions.weight[: tokens.size(1)]


@torch.no_grad()
def reverse(model: Reverser, source: Tensor) -> Tensor:
    """Decode greedily: ``[batch, LONGEST + 1]``, padded after END."""
    written = torch.full((source.size(0), 1), START)
    ended = torch.zeros(source.size(0), dtype=torch.bool)
    for _ in range(LONGEST + 1):
        symbol = model(source, written)[:, -1].argmax(-1).masked_fill(ended, PAD)
        ended |= symbol == END
        written = torch.cat([written, symbol[:, None]], dim=1)
    return written[:, 1:]


def train(model: Reverser, steps: int, batch_size: int, progress: Progress, name: str) -> float:
    """Train with Adam and a warm-up; return the seconds it took."""
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-3, total_steps=steps)
    task = progress.add_task(name, total=steps, loss="")
    start = time.perf_counter()
    for _ in range(steps):
        batch = make_batch(batch_size, generator)
        scores = model(batch.source, batch.target_input)
        loss = F.cross_entropy(scores.flatten(0, 1), batch.target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        progress.update(task, advance=1, loss=f"loss {loss.item():.3f}")
    return time.perf_counter() - start


def measure(model: Reverser, batch: Batch) -> dict[str, float]:
    """Accuracy, and the sparsity and null rate of each kind of attention, on held-out data."""
    model.eval()
    results = {"accuracy": (reverse(model, batch.source) == batch.target).all(1).double().mean()}
    is_source, is_target = batch.source != PAD, batch.target != PAD
    for kind, pattern in KINDS.items():
        with torch.no_grad(), relakit.capture(model.transformer, where=pattern) as records:
            model(batch.source, batch.target_input)
        rates = defaultdict(list)
        is_query = (is_source if kind == "encoder" else is_target)[:, None, :, None]
        for record in (record for calls in records.values() for record in calls):
            valid = is_query if record.valid is None else is_query & record.valid
            rates["sparsity"].append(sparsity_rate(record.weights, valid))
            rates["null rate"].append(null_rate(record.weights, valid))
        results |= {f"{kind} {name}": torch.stack(heads).mean() for name, heads in rates.items()}
    return {name: float(value) for name, value in results.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--attention",
        nargs="+",
        default=["softmax", "rela-g"],
        choices=list(relakit.ATTENTIONS),
        metavar="NAME",
        help="which to compare: " + ", ".join(relakit.ATTENTIONS),
    )
    parser.add_argument("--steps", type=int, default=1000, help="training steps")
    parser.add_argument("--batch-size", type=int, default=64, help="strings in a step")
    parser.add_argument("--held-out", type=int, default=1000, help="strings to measure on")
    parser.add_argument("--seed", type=int, default=0, help="of the models' weights")
    parser.add_argument("--threads", type=int, default=1, help="a model this small gains little")
    options = parser.parse_args()
    if min(options.steps, options.batch_size, options.held_out, options.threads) < 1:
        parser.error("--steps, --batch-size, --held-out and --threads must be at least 1")
    torch.set_num_threads(options.threads)

    console = Console()
    console.print(
        "Task: write the digits of a string in reverse order and ignore its letters.\n"
        f"Model: nn.Transformer, 2+2 layers, 4 heads, d = 64; {options.steps} steps."
    )
    held_out = make_batch(options.held_out, torch.Generator().manual_seed(2))
    results = {}
    bar = [TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()]
    with Progress(*bar, TextColumn("{task.fields[loss]}"), console=console) as progress:
        for name in options.attention:
            torch.manual_seed(options.seed)
            model = Reverser(64, 4, 2)
            relakit.convert_attention(model, name)
            seconds = train(model, options.steps, options.batch_size, progress, name)
            results[name] = measure(model, held_out) | {"seconds": seconds}

    table = Table(title=f"On {options.held_out} strings that were not trained on")
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right")
    for row in next(iter(results.values())):
        show = "{:.1f}" if row == "seconds" else "{:.1%}"
        table.add_row(row, *(show.format(result[row]) for result in results.values()))
    console.print(table)
    console.print(
        "accuracy: strings without any error. sparsity: weights that are exactly 0.\n"
        "null rate: queries that attend to nothing. All rates are averages over heads."
    )


if __name__ == "__main__":
    main()
