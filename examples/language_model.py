"""A small language model from scratch, with the attention of your choice.

It reads text files, or the sources of Python's standard library if none are given, and learns to
continue them. Prints the loss on held-out texts, how much of the attention is exactly zero, how
many queries attend to nothing, the share of the first token, and a text that the model writes.

    python examples/language_model.py --attention rela-g
    python examples/language_model.py --attention softmax --text my_book.txt my_notes.txt

- Positions are rotary (queries and keys are rotated) or ALiBi (a bias lowers scores with the
  distance). A window limits how far back a query sees.
- With --packed, texts of different lengths follow one another in one row without padding, and
  `sequence_starts` keeps them apart.
- Generation appends each token's keys and values to a `relakit.KeyValueCache`.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from attention_choices import CHOICES, attention_rates
from texts import END, Split, describe, read_texts, train_tokenizer
from torch import Tensor, nn
from train_loop import print_progress, train

import relakit

LEARNING_RATE = 3e-3


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    attention: relakit.AttentionSpec
    vocabulary: int = 1024
    dim: int = 128
    heads: int = 4
    kv_heads: int = 4
    """Heads of keys and values; if there are fewer, groups of heads share them."""
    layers: int = 4
    positions: str = "rotary"
    window: int | None = None
    """How many keys a query sees; None: all up to its own."""


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    rows: int = 16
    length: int = 128
    is_packed: bool = False
    """Use one row of the same total size instead, in which texts do not see each other."""


def rotate(x: Tensor, places: Tensor) -> Tensor:
    """Rotary positions: pairs of features rotated by angles that grow with the place.

    x: ``[batch, heads, positions, head dim]``, places: ``[positions]``.
    """
    half = x.size(-1) // 2
    speeds = 10000.0 ** (-torch.arange(half) / half)
    angles = places[:, None] * speeds  # [positions, half]
    first, second = x[..., :half], x[..., half:]
    turned = (
        first * angles.cos() - second * angles.sin(),
        second * angles.cos() + first * angles.sin(),
    )
    return torch.cat(turned, -1)


def alibi(queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    """What ALiBi adds to scores: minus the distance, times a slope for each head.

    Takes the places of queries and keys; returns ``[heads, queries, keys]``.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    distance = (queries[:, None] - keys).clamp(min=0)
    return -slopes[:, None, None] * distance


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.head_dim = settings.dim // settings.heads
        shared = settings.kv_heads * self.head_dim
        self.sizes = [settings.dim, shared, shared]
        self.input = nn.Linear(settings.dim, sum(self.sizes))
        self.core = relakit.AttentionCore(settings.heads, self.head_dim, settings.attention)
        self.output = nn.Linear(settings.dim, settings.dim)

    def forward(
        self, x: Tensor, starts: Tensor | None, cache: relakit.KeyValueCache | None
    ) -> Tensor:
        """``[batch, positions, dim]`` in and out."""
        settings = self.settings
        query, key, value = (
            part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in self.input(x).split(self.sizes, -1)
        )  # [batch, heads, positions, head dim]
        places = (0 if cache is None else len(cache)) + torch.arange(x.size(1))
        if starts is not None:  # each sequence counts its own places
            places = places - starts[torch.searchsorted(starts, places, right=True) - 1]
        if settings.positions == "rotary":
            query, key = rotate(query, places), rotate(key, places)
        if cache is not None:
            key, value = cache.append(key, value)
        bias, window = None, settings.window
        if settings.positions == "alibi":
            bias = alibi(
                places, places if cache is None else torch.arange(key.size(2)), settings.heads
            )
            # Causal, in a form that a bias allows: this many keys before the query's, none after.
            window = (None if window is None else window - 1, 0)
        joined = self.core(
            query,
            key,
            value,
            bias,
            is_causal=bias is None,
            window=window,
            # With a cache, the queries are the last positions.
            align="upper_left" if cache is None else "lower_right",
            sequence_starts=starts,
        )
        return self.output(joined)


class LanguageModel(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        dim = settings.dim
        self.embedding = nn.Embedding(settings.vocabulary, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)  # it is also the output layer
        self.attentions = nn.ModuleList(Attention(settings) for _ in range(settings.layers))
        self.feed_forwards = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
            )
            for _ in range(settings.layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(settings.layers))
        self.last_norm = nn.LayerNorm(dim)

    def forward(
        self,
        tokens: Tensor,
        starts: Tensor | None = None,
        caches: list[relakit.KeyValueCache] | None = None,
    ) -> Tensor:
        """From token ids ``[batch, positions]`` to scores of the next token."""
        x = self.embedding(tokens)
        for i, attention in enumerate(self.attentions):
            x = x + attention(self.norms[i](x), starts, None if caches is None else caches[i])
            x = x + self.feed_forwards[i](x)
        return F.linear(self.last_norm(x), self.embedding.weight)


class Corpus:
    """Texts as streams of tokens, each text followed by END."""

    def __init__(self, texts: Split, vocabulary: int) -> None:
        self.tokenizer = train_tokenizer(texts.training, vocabulary)
        self.end = self.tokenizer.token_to_id(END)
        self.training = self._stream(texts.training)
        self.held_out = self._stream(texts.held_out)
        self.bytes_per_token = sum(len(t.encode()) for t in texts.held_out) / len(self.held_out)

    def _stream(self, texts: list[str]) -> Tensor:
        encodings = self.tokenizer.encode_batch(texts)
        return torch.tensor([token for e in encodings for token in [*e.ids, self.end]])

    def training_batch(self, settings: BatchSettings, generator: torch.Generator) -> Tensor:
        """Rows from random places: ``[rows, length + 1]``, or one row as long as all of them."""
        rows, length = settings.rows, settings.length
        if settings.is_packed:
            rows, length = 1, rows * length
        last = len(self.training) - length - 1
        if last < 0:
            raise ValueError(f"the text has {len(self.training):,} tokens, too few for {length:,}")
        offsets = torch.randint(last + 1, (rows, 1), generator=generator)
        return self.training[offsets + torch.arange(length + 1)]

    def held_out_rows(self, length: int, most: int) -> Tensor:
        """The first rows of the held-out texts: ``[up to most, length + 1]``."""
        length = min(length, len(self.held_out) - 1)
        rows = min(most, len(self.held_out) // (length + 1))
        return self.held_out[: rows * (length + 1)].view(rows, length + 1)

    def starts(self, row: Tensor) -> Tensor:
        """Where texts begin in a row ``[positions]``, and where the last one ends."""
        begins = (row[:-1] == self.end).nonzero().flatten() + 1
        return torch.cat([torch.tensor([0]), begins, torch.tensor([len(row)])])


def next_token_loss(scores: Tensor, tokens: Tensor) -> Tensor:
    """Cross-entropy in nats; ``scores`` are the output for ``tokens[:, :-1]``."""
    return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


def loss_on_batches(
    model: LanguageModel, corpus: Corpus, batch: BatchSettings, seed: int
) -> Callable[[], Tensor]:
    """For `train`: each call returns the loss on a new batch."""
    generator = torch.Generator().manual_seed(seed)

    def next_loss() -> Tensor:
        tokens = corpus.training_batch(batch, generator)
        starts = corpus.starts(tokens[0, :-1]) if batch.is_packed else None
        return next_token_loss(model(tokens[:, :-1], starts), tokens)

    return next_loss


@torch.no_grad()
def held_out_loss(model: Callable[[Tensor], Tensor], rows: Tensor) -> float:
    """The loss in nats per token, over ``[rows, length + 1]``."""
    losses = [next_token_loss(model(part[:, :-1]), part) * len(part) for part in rows.split(16)]
    return torch.stack(losses).sum().item() / len(rows)


def measure(model: LanguageModel, corpus: Corpus, length: int) -> dict[str, float]:
    """Loss in nats per token, bits per byte, and the rates of `attention_rates`."""
    model.eval()
    rows = corpus.held_out_rows(length, most=400)
    loss = held_out_loss(model, rows)
    with torch.no_grad(), relakit.capture(model) as records:
        model(rows[:16, :-1])
    bits = loss / corpus.bytes_per_token / torch.log(torch.tensor(2.0)).item()
    return {"loss": loss, "bits_per_byte": bits, **attention_rates(records)}


@torch.no_grad()
def write(model: LanguageModel, corpus: Corpus, prompt: str, length: int, seed: int) -> str:
    """Continue the prompt token by token; each is drawn at temperature 0.7."""
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    caches = [relakit.KeyValueCache(length) for _ in model.attentions]
    written = corpus.tokenizer.encode(prompt).ids or [corpus.end]
    tokens = torch.tensor([written])
    while len(written) < length:
        scores = model(tokens, caches=caches)[0, -1]
        token = int(torch.multinomial((scores / 0.7).softmax(-1), 1, generator=generator))
        if token == corpus.end:
            break
        written.append(token)
        tokens = torch.tensor([[token]])
    return corpus.tokenizer.decode(written)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    model, batch = ModelSettings, BatchSettings
    parser.add_argument(
        "--attention",
        choices=CHOICES,
        default="rela-g",
        metavar="NAME",
        help=f"one of {', '.join(CHOICES)}",
    )
    parser.add_argument(
        "--text",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="UTF-8, texts apart by two blank lines (default: the standard library)",
    )
    parser.add_argument("--vocabulary", type=int, default=model.vocabulary, help="of byte pairs")
    parser.add_argument("--positions", choices=["rotary", "alibi"], default=model.positions)
    parser.add_argument("--window", type=int, help="how many keys a query sees (default: all)")
    parser.add_argument(
        "--kv-heads",
        type=int,
        default=model.kv_heads,
        choices=[1, 2, 4],
        help="heads of keys and values, shared by 4 heads of queries",
    )
    parser.add_argument("--packed", action="store_true", help="texts do not see each other")
    parser.add_argument("--steps", type=int, default=400, help="updates")
    parser.add_argument("--batch-size", type=int, default=batch.rows, help="rows of an update")
    parser.add_argument("--length", type=int, default=batch.length, help="tokens of a row")
    parser.add_argument("--seed", type=int, default=1, help="of weights and batches")
    parser.add_argument("--threads", type=int, default=1, help="a model this small gains little")
    parser.add_argument("--prompt", default="def ", help="what the text at the end begins with")
    arguments = parser.parse_args()
    for name in ("window", "steps", "batch_size", "length", "threads"):
        number = getattr(arguments, name)
        if number is not None and number < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {number}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    corpus = Corpus(read_texts(arguments.text), arguments.vocabulary)
    torch.manual_seed(arguments.seed)
    model = LanguageModel(
        ModelSettings(
            attention=CHOICES[arguments.attention],
            vocabulary=arguments.vocabulary,
            kv_heads=arguments.kv_heads,
            positions=arguments.positions,
            window=arguments.window,
        )
    )
    batch = BatchSettings(
        rows=arguments.batch_size, length=arguments.length, is_packed=arguments.packed
    )
    print(
        f"{arguments.attention}: {sum(p.numel() for p in model.parameters()):,} parameters, "
        f"{len(corpus.training):,} tokens of {describe(arguments.text)}"
    )
    train(
        model,
        loss_on_batches(model, corpus, batch, arguments.seed),
        steps=arguments.steps,
        learning_rate=LEARNING_RATE,
        after_step=print_progress(arguments.steps),
    )
    result = measure(model, corpus, arguments.length)
    print(
        f"held out: loss {result['loss']:.3f} nats per token, {result['bits_per_byte']:.3f} bits "
        f"per byte\nattention: zeros {result['zeros']:.1%}, null queries {result['nulls']:.1%}, "
        f"on the first token {result['sink']:.1%}"
    )
    print(f"it writes:\n{write(model, corpus, arguments.prompt, 80, arguments.seed)}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
