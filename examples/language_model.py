"""A small decoder-only language model with ReLA-g: packed text, rotary positions or ALiBi, a cache.

The text: sums such as ``7+58=56`` (the result backwards, as one adds), one behind the other without
padding. After a minute on one core the model with rotary positions adds most of the numbers below
100 that it has not seen together.

- Training packs sums of different lengths into one row; `sequence_starts` keeps them apart.
- Positions are rotary (queries and keys are rotated) or ALiBi (scores fall with the distance, added
  as a bias). A window limits how far back a query sees.
- Generation appends each token's keys and values to a `relakit.KeyValueCache`.

    python examples/language_model.py --help
"""

import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import relakit

SYMBOLS = "0123456789+=\n"
LONGEST = 9  # of a sum, its end included


@dataclass(frozen=True)
class Settings:
    dim: int = 64
    heads: int = 4
    kv_heads: int = 2
    layers: int = 2
    positions: str = "rotary"
    window: int | None = None


def rotate(x: Tensor, places: Tensor) -> Tensor:
    """Rotary positions: pairs of features turned by angles that grow with the place.

    x: ``[batch, heads, positions, head dim]``, places: ``[positions]``.
    """
    half = x.size(-1) // 2
    speeds = 100.0 ** (-torch.arange(half) / half)
    angles = places[:, None] * speeds  # [positions, half]
    first, second = x[..., :half], x[..., half:]
    turned = (
        first * angles.cos() - second * angles.sin(),
        second * angles.cos() + first * angles.sin(),
    )
    return torch.cat(turned, -1)


def alibi(queries: Tensor, keys: Tensor, heads: int) -> Tensor:
    """What ALiBi adds to scores: minus the distance, times a slope for each head.

    Places of queries and keys to ``[heads, queries, keys]``.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    distance = (queries[:, None] - keys).clamp(min=0)
    return -slopes[:, None, None] * distance


class Attention(nn.Module):
    """Causal self-attention; heads of keys and values are shared."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.head_dim = settings.dim // settings.heads
        shared = settings.kv_heads * self.head_dim
        self.sizes = [settings.dim, shared, shared]
        self.input = nn.Linear(settings.dim, sum(self.sizes))
        self.norm = relakit.GatedRMSNorm(settings.dim)
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
        past = 0 if cache is None else len(cache)
        places = past + torch.arange(x.size(1))
        if starts is not None:  # each sequence counts its own
            places = places - starts[torch.searchsorted(starts, places, right=True) - 1]
        if settings.positions == "rotary":
            query, key = rotate(query, places), rotate(key, places)
        if cache is not None:
            key, value = cache.append(key, value)
        bias = None
        if settings.positions == "alibi":
            of_keys = places if cache is None else torch.arange(key.size(2))
            bias = alibi(places, of_keys, settings.heads)
        mixed = relakit.attention(
            query,
            key,
            value,
            bias,
            # Causal, in a form that goes with a bias: so many keys before a query's, none after.
            window=(None if settings.window is None else settings.window - 1, 0),
            align="lower_right",  # with a cache, the queries are the last positions
            sequence_starts=starts,
            enable_gqa=True,
        )
        return self.output(self.norm(mixed.transpose(1, 2).flatten(2)))


class LanguageModel(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        dim = settings.dim
        self.embedding = nn.Embedding(len(SYMBOLS), dim)
        self.attentions = nn.ModuleList(Attention(settings) for _ in range(settings.layers))
        self.feed_forwards = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim)
            )
            for _ in range(settings.layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(settings.layers))
        self.last = nn.Linear(dim, len(SYMBOLS))

    def forward(
        self,
        tokens: Tensor,
        starts: Tensor | None = None,
        caches: list[relakit.KeyValueCache] | None = None,
    ) -> Tensor:
        """Token numbers ``[batch, positions]`` to scores of the next token."""
        x = self.embedding(tokens)
        for i, attention in enumerate(self.attentions):
            cache = None if caches is None else caches[i]
            x = x + attention(self.norms[i](x), starts, cache)
            x = x + self.feed_forwards[i](x)
        return self.last(x)


def is_held_out(a: int, b: int) -> bool:
    """A tenth of all sums, of which digits say nothing."""
    return (100 * a + b) * 7919 % 10007 % 10 == 0


def encoded(text: str) -> list[int]:
    return [SYMBOLS.index(symbol) for symbol in text]


def make_row(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sums that are not held out, one behind the other: tokens ``[1, positions]``, and starts.

    The digits of results are written backwards, as one adds them.
    """
    sums: list[list[int]] = []
    while len(sums) < count:
        a, b = torch.randint(100, (2,), generator=generator).tolist()
        if not is_held_out(a, b):
            sums.append(encoded(f"{a}+{b}={str(a + b)[::-1]}\n"))
    starts = torch.tensor([0, *(len(s) for s in sums)]).cumsum(0)
    return torch.tensor([[token for tokens in sums for token in tokens]]), starts


def train(model: LanguageModel, steps: int, sums: int, generator: torch.Generator) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        tokens, starts = make_row(sums, generator)
        scores = model(tokens[:, :-1], torch.cat([starts[:-1], starts[-1:] - 1]))
        # Only what follows "=" can be known: sums do not follow from each other.
        answered = (tokens == SYMBOLS.index("=")).cumsum(1) > (
            tokens == SYMBOLS.index("\n")
        ).cumsum(1)
        loss = F.cross_entropy(scores[answered[:, :-1]], tokens[:, 1:][answered[:, :-1]])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % max(1, steps // 10) == 0 or step == steps - 1:
            print(f"step {step:5}  loss {loss.item():.3f}")


@torch.no_grad()
def answer(model: LanguageModel, a: int, b: int) -> str:
    """What the model writes behind ``a+b=``, token by token."""
    caches = [relakit.KeyValueCache(LONGEST) for _ in model.attentions]
    tokens = torch.tensor([encoded(f"{a}+{b}=")])
    text = ""
    for _ in range(4):
        token = model(tokens, caches=caches)[:, -1].argmax(-1, keepdim=True)
        symbol = SYMBOLS[int(token)]
        if symbol == "\n":
            break
        text += symbol
        tokens = token
    return text[::-1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--positions", choices=["rotary", "alibi"], default="rotary")
    parser.add_argument("--window", type=int, help="how many keys a query sees (default: all)")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--sums", type=int, default=64, help="sums in one row")
    parser.add_argument("--questions", type=int, default=200, help="held-out sums to ask for")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.window is not None and arguments.window < 1:
        parser.error(f"--window must be at least 1, got {arguments.window}")
    torch.manual_seed(arguments.seed)
    generator = torch.Generator().manual_seed(arguments.seed)
    model = LanguageModel(Settings(positions=arguments.positions, window=arguments.window))
    train(model, arguments.steps, arguments.sums, generator)
    model.eval()
    held_out = [(a, b) for a in range(100) for b in range(100) if is_held_out(a, b)]
    asked = held_out[:: max(1, len(held_out) // arguments.questions)]
    answers = {(a, b): answer(model, a, b) for a, b in asked}
    right = sum(text == str(a + b) for (a, b), text in answers.items())
    for (a, b), text in list(answers.items())[1::50]:
        print(f"{a}+{b}={text}{'' if text == str(a + b) else f'  (should be {a + b})'}")
    print(f"{right} of {len(answers)} held-out sums are right")


if __name__ == "__main__":
    main()
