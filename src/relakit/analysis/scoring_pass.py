"""One pass over sentence pairs: a model's scores for each pair."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from relakit.analysis.attention_pass import AttentionBatch, attention_batches
from relakit.analysis.attention_weights import SUM_TO_ONE
from relakit.analysis.long_pairs import longest_pair
from relakit.analysis.pair_batches import WINDOW, TokenPair
from relakit.analysis.pair_scores import SCORED_KINDS, PairScores
from relakit.analysis.settings import BATCH_TOKENS
from relakit.analysis.sparsity import null_counts
from relakit.broken_model import BrokenModelError
from relakit.data.tokenizer_pair import Tokenizers
from relakit.model import Transformer


def score_pairs(
    model: Transformer,
    tokenizer: Tokenizers,
    pairs: Iterable[tuple[str, str]],
    *,
    batch_tokens: int = BATCH_TOKENS,
    window: int = WINDOW,
    max_tokens: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> PairScores:
    """Force-decode sentence pairs and score each one separately.

    Pairs are read as they are needed, and only the scores are kept. A pair's scores do not depend
    on the other pairs, apart from rounding.

    Args:
        model: reads the given target while its attention is recorded, without dropout.
        tokenizer: the model's tokenizer.
        pairs: source and target.
        batch_tokens: how many padded tokens are computed at once.
        window: how many pairs are read before they are computed.
        max_tokens: the limit per side; only the beginning of a longer side is scored. None: as many
            as fit into 256 MiB of attention weights.
        progress: called from time to time with the number of finished pairs.

    Raises:
        ValueError: model and tokenizer do not belong together, there are no pairs, or
            ``max_tokens`` is less than 1.
        BrokenModelError: a score is NaN or infinite.
    """
    model.config.check_tokenizer(tokenizer)
    most = longest_pair(model.config, SCORED_KINDS) if max_tokens is None else max_tokens
    if most < 1:
        raise ValueError(f"max_tokens must be at least 1, got {most}")
    cropped: set[int] = set()
    batches = attention_batches(
        model,
        _encoded(tokenizer, pairs, most, cropped),
        kinds=SCORED_KINDS,
        losses=True,
        batch_tokens=batch_tokens,
        window=window,
    )
    has_mass = model.config.attention_spec("cross").activation not in SUM_TO_ONE
    parts: list[_Part] = []
    done = 0
    for batch in batches:
        parts.append(_Part.of(batch, cropped))
        done += len(batch.indices)
        if progress is not None:
            progress(done)
    if not parts:
        raise ValueError("there are no pairs to score")
    return _in_order(parts, has_mass)


def _encoded(
    tokenizer: Tokenizers, pairs: Iterable[tuple[str, str]], most: int, cropped: set[int]
) -> Iterator[TokenPair]:
    """At most ``most`` tokens of each side; adds the numbers of cropped targets to ``cropped``."""
    for number, pair in enumerate(pairs):
        source, target = (
            one.encode_batch([one.beginning(text, most)])[0]
            for one, text in zip((tokenizer.source, tokenizer.target), pair, strict=True)
        )
        if len(target) > most:
            cropped.add(number)
        yield source[:most], target[:most]


@dataclass(frozen=True)
class _Part:
    """The scores of one batch."""

    indices: Tensor
    null: Tensor
    queries: Tensor
    cross_entropy: Tensor
    mass: Tensor

    @classmethod
    def of(cls, batch: AttentionBatch, cropped: Collection[int]) -> "_Part":
        layers, valid = batch.layers["cross"], batch.valid("cross")
        sizes = batch.target_sizes
        assert batch.token_losses is not None
        # A cropped target has no end, so the loss of its end, which comes last, does not count.
        counted = [
            tokens.losses[:-1] if index in cropped else tokens.losses
            for index, tokens in zip(batch.indices, batch.token_losses, strict=True)
        ]
        weight = [layer.abs().mul(valid).sum((2, 3), dtype=torch.float64) for layer in layers]
        return cls(
            indices=torch.tensor(batch.indices),
            null=null_counts(layers, valid).int(),
            queries=sizes,
            cross_entropy=torch.stack([losses.sum() / len(losses) for losses in counted]),
            mass=torch.stack(weight, dim=1).mean(-1) / sizes[:, None],
        )


def _in_order(parts: list[_Part], has_mass: bool) -> PairScores:
    order = torch.cat([part.indices for part in parts]).argsort()
    cross_entropy = torch.cat([part.cross_entropy for part in parts])[order]
    mass = torch.cat([part.mass for part in parts])[order]
    broken = (~(cross_entropy.isfinite() & mass.isfinite().all(1))).nonzero()
    if len(broken):
        raise BrokenModelError(where=f"pair {int(broken[0]) + 1:,}")
    return PairScores(
        null_queries=torch.cat([part.null for part in parts])[order].numpy(),
        queries=torch.cat([part.queries for part in parts])[order].numpy(),
        cross_entropy=cross_entropy.numpy(),
        mass=mass.numpy() if has_mass else None,
    )
