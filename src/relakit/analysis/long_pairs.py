"""Pairs whose attention would take too much memory: it grows with the square of the length."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from relakit.amounts import number_with_noun
from relakit.analysis.pairs import AnalysisPair, Pairs
from relakit.analysis.settings import PAIR_WEIGHTS
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.long_lines import default_max_tokens, has_at_most
from relakit.limits import check_memory
from relakit.model import ModelAbout, ModelConfig
from relakit.model.memory import FLOAT_BYTES


class ReadingModel(Protocol):
    """What decides how long a pair may be: a `Translator`, or the description of its model."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def about(self) -> ModelAbout: ...

    @property
    def tokenizers(self) -> Tokenizers: ...


def count_matrices(config: ModelConfig, kinds: Sequence[AttentionKind] = ATTENTION_KINDS) -> int:
    """How many matrices of attention weights a model has for one pair."""
    layers = {"encoder": config.encoder_layers}
    return config.heads * sum(layers.get(kind, config.decoder_layers) for kind in kinds)


def longest_pair(config: ModelConfig, kinds: Sequence[AttentionKind] = ATTENTION_KINDS) -> int:
    """The most tokens per side, without special ones, that these attentions are recorded for."""
    return longest_in_matrices(count_matrices(config, kinds))


def longest_in_matrices(count: int) -> int:
    """The same, if ``count`` matrices of weights are recorded."""
    return max(1, math.isqrt(PAIR_WEIGHTS // count) - 1)


def check_pair_memory(
    name: str,
    config: ModelConfig,
    max_tokens: int,
    kinds: Sequence[AttentionKind] = ATTENTION_KINDS,
) -> None:
    """Raise ValueError if memory cannot hold a pair's attention with ``max_tokens`` per side."""
    check_weights_memory(
        f"{name} for one pair of {max_tokens:,} tokens",
        count_matrices(config, kinds) * (max_tokens + 1) ** 2,
        advice="set --max-tokens to less",
    )


def check_weights_memory(what: str, weights: int, *, advice: str) -> None:
    """Raise ValueError if this many weights, the attention of ``what``, do not fit into memory."""
    check_memory(f"recording the attention of {what}", FLOAT_BYTES * weights, advice=advice)


class ShortPairs:
    """Pairs, without those that are too long on either side for at least one of the models.

    All models get the same pairs, so that their numbers can be compared.
    """

    def __init__(
        self, pairs: Pairs, models: Mapping[str, ReadingModel], max_tokens: int | None = None
    ) -> None:
        """Read all pairs once.

        Args:
            pairs: the pairs to choose from.
            models: their tokenizers count the tokens.
            max_tokens: the limit per side; None: as many as the translator accepts, and as fit into
                256 MiB for the model with the most attention.

        Raises:
            ValueError: attention to this many tokens cannot fit into memory, or no pair is left.
        """
        self._pairs = pairs
        self.max_tokens: Final = _limit(models, max_tokens)
        self.left_out: Final = tuple(
            number
            for number, pair in enumerate(pairs, start=1)
            if not all(
                has_at_most(model.tokenizers.source, pair.source, self.max_tokens)
                and has_at_most(model.tokenizers.target, pair.target, self.max_tokens)
                for model in models.values()
            )
        )
        """The numbers, from 1, of the pairs that were left out."""
        if self.left_out and len(self) == 0:
            raise ValueError(
                f"all {len(pairs):,} pairs have more than "
                f"{number_with_noun(self.max_tokens, 'token')} on a side: give one sentence per "
                "line, or allow more with --max-tokens"
            )

    def __len__(self) -> int:
        return len(self._pairs) - len(self.left_out)

    def __iter__(self) -> Iterator[AnalysisPair]:
        left_out = frozenset(self.left_out)
        return (pair for number, pair in enumerate(self._pairs, start=1) if number not in left_out)


def _limit(models: Mapping[str, ReadingModel], max_tokens: int | None) -> int:
    if max_tokens is None:
        return min(
            min(default_max_tokens(model.about.longest_sentence), longest_pair(model.config))
            for model in models.values()
        )
    for name, model in models.items():
        check_pair_memory(name, model.config, max_tokens)
    return max_tokens
