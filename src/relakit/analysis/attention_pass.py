"""One pass over sentence pairs: a model's attention while it is forced to write translations.

`attention_batches` yields all attention batch by batch, `capture_cross_attention` the
cross-attention pair by pair.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relakit.analysis.forced_states import ForcedStates
from relakit.analysis.pair_batches import (
    WINDOW,
    TokenPair,
    pad_sentences,
    padded_size,
    plan_pair_batches,
    read_windows,
    wrong_sources,
)
from relakit.analysis.sentence_losses import TokenLosses, sentence_losses, token_losses
from relakit.analysis.settings import BATCH_TOKENS
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.data.tokenizer import BEGIN, END
from relakit.model import Memory, ModelConfig, Transformer
from relakit.model.attention_outputs import OutputMeter, OutputSums
from relakit.model.evaluation import inference
from relakit.nn.capture import Records, capture

BATCH_WEIGHTS: Final = 1 << 24
"""The most attention weights recorded at once (64 MiB), unless a single pair has more."""

_MODULES: Final[dict[AttentionKind, str]] = {
    "encoder": "encoder.layers.{}.attention",
    "decoder": "decoder.layers.{}.attention",
    "cross": "decoder.layers.{}.cross_attention",
}


@dataclass(frozen=True)
class AttentionBatch:
    """The attention of sentence pairs that were computed together. All tensors are on the CPU."""

    indices: Sequence[int]
    """The numbers of these pairs, from 0"""
    source_sizes: Tensor
    """``[pairs]``: source tokens of each pair, with the end-of-sentence token"""
    target_sizes: Tensor
    """``[pairs]``: target tokens of each pair, with the begin token"""
    layers: Mapping[AttentionKind, Sequence[Tensor]]
    """By layer, ``[pairs, heads, queries, keys]``, float32, without dropout. Sentences begin at the
    first query and key; masked keys have weight 0, and padding queries may have any weights."""
    outputs: Mapping[AttentionKind, Sequence[OutputSums]]
    """By layer, measured on the pairs as given: none if `is_shuffled`, none with `cross_layer`"""
    is_shuffled: bool = False
    """Whether each target has the source of another pair, whose size is in `source_sizes`. If so,
    there is no encoder attention."""
    losses: Tensor | None = None
    """``[pairs]``: the cross-entropy of each target in nats, summed over its tokens and the end of
    the sentence, float64; NaN for pairs that were not requested, None if none were"""
    token_losses: Sequence[TokenLosses] | None = None
    """For each pair, with the summands of `losses`; None unless all pairs were requested"""
    states: ForcedStates | None = None
    """On the model's device; None unless requested"""

    def query_sizes(self, kind: AttentionKind) -> Tensor:
        return self.source_sizes if kind == "encoder" else self.target_sizes

    def key_sizes(self, kind: AttentionKind) -> Tensor:
        return self.target_sizes if kind == "decoder" else self.source_sizes

    def valid(self, kind: AttentionKind) -> Tensor:
        """``[pairs, 1, queries, keys]``: True where a query that is not padding may see a key."""
        queries = _positions(self.query_sizes(kind))
        valid = queries[:, None, :, None] & _positions(self.key_sizes(kind))[:, None, None, :]
        return valid.tril() if kind == "decoder" else valid


def _positions(sizes: Tensor) -> Tensor:
    """``[sentences, longest]``: True for the tokens of each sentence."""
    return torch.arange(int(sizes.max())) < sizes[:, None]


def attention_batches(
    model: Transformer,
    pairs: Iterable[TokenPair],
    *,
    kinds: Sequence[AttentionKind] = ATTENTION_KINDS,
    shuffle_seed: int | None = None,
    losses: bool | Collection[int] = False,
    cross_layer: int | None = None,
    states: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    window: int = WINDOW,
) -> Iterator[AttentionBatch]:
    """Force-decode sentence pairs, and yield the recorded attention batch by batch.

    Pairs are sorted by length within a window, so that a batch has little padding. Memory depends
    on the window and on the longest pair, not on the number of pairs. A pair's results do not
    depend on the other pairs in its batch (`padded_size`). The output projection is skipped unless
    ``losses`` needs it.

    Args:
        model: on any device; after every batch it is in the same mode (training or not) as before.
        pairs: token ids; read window by window.
        kinds: which attention to record.
        shuffle_seed: after the batches of a window, yield its targets again, each with the source
            of another pair of the window, by a random permutation without fixed points. The encoder
            does not run again. A window of one pair is skipped. None: do not do this.
        losses: True to compute the cross-entropy of each target, too; or the numbers, from 0, of
            the pairs to compute it for.
        cross_layer: record only this layer of the cross-attention, which is then the only one in
            `AttentionBatch.layers`. If nothing else is recorded or requested, the decoder layers
            after it do not run.
        states: return the model's hidden states, too; not for shuffled targets.
        batch_tokens: how many padded tokens of the longer side are computed at once.
        window: how many pairs are read before they are computed.
    """
    for name, value in (("batch_tokens", batch_tokens), ("window", window)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    wanted = _Wanted(model.config, tuple(kinds), losses, cross_layer, states)
    return _windows(model, pairs, wanted, shuffle_seed, batch_tokens, window)


@dataclass(frozen=True)
class CrossAttention:
    """The cross-attention weights of one sentence pair, in all layers and heads."""

    index: int
    """The number of the pair, from 0."""
    weights: npt.NDArray[np.float32]
    """``[layers, heads, target tokens + 1, source tokens + 1]``. Row t belongs to the step that
    predicts target token t, the last row to the step that predicts the end of the sentence. The
    last column is the source's end-of-sentence token."""


def capture_cross_attention(
    model: Transformer,
    pairs: Iterable[TokenPair],
    *,
    batch_tokens: int = BATCH_TOKENS,
    window: int = WINDOW,
) -> Iterator[CrossAttention]:
    """Force-decode sentence pairs and yield the cross-attention of each, without dropout.

    The order is not that of the pairs: they are sorted by length within a window, so that a batch
    has little padding. Memory depends on the window and on the longest pair, not on the number of
    pairs.

    Args:
        model: on any device; after every batch it is in the same mode (training or not) as before.
        pairs: token ids; read window by window.
        batch_tokens: how many padded tokens of the longer side are computed at once.
        window: how many pairs are read before they are computed.
    """
    batches = attention_batches(
        model, pairs, kinds=("cross",), batch_tokens=batch_tokens, window=window
    )
    # Copies, so that keeping one pair does not keep its whole batch.
    return (
        CrossAttention(attention.index, attention.weights.copy())
        for batch in batches
        for attention in cross_attention_of(batch)
    )


def cross_attention_of(batch: AttentionBatch) -> Iterator[CrossAttention]:
    """The cross-attention of each pair of a batch, as views of the batch's weights."""
    weights = torch.stack(list(batch.layers["cross"]), dim=1).numpy()
    sizes = zip(batch.target_sizes.tolist(), batch.source_sizes.tolist(), strict=True)
    for index, matrices, (targets, sources) in zip(batch.indices, weights, sizes, strict=True):
        yield CrossAttention(index, matrices[:, :, :targets, :sources])


@dataclass(frozen=True)
class _Wanted:
    """What a pass has to record and return."""

    config: ModelConfig
    kinds: tuple[AttentionKind, ...]
    losses: bool | Collection[int]
    cross_layer: int | None
    states: bool

    def __post_init__(self) -> None:
        if self.cross_layer is not None and not (
            0 <= self.cross_layer < self.config.decoder_layers
        ):
            raise ValueError(
                f"cross_layer must be from 0 to {self.config.decoder_layers - 1}, got "
                f"{self.cross_layer}"
            )

    def layers(self, kind: AttentionKind) -> Sequence[int]:
        if kind == "encoder":
            return range(self.config.encoder_layers)
        if kind == "cross" and self.cross_layer is not None:
            return (self.cross_layer,)
        return range(self.config.decoder_layers)

    @property
    def decoder_layers(self) -> int:
        """How many of the decoder's layers must run."""
        if self.losses or self.cross_layer is None or "decoder" in self.kinds:
            return self.config.decoder_layers
        return self.cross_layer + 1

    @property
    def modules(self) -> list[str]:
        return [_MODULES[kind].format(n) for kind in self.kinds for n in self.layers(kind)]


def _windows(
    model: Transformer,
    pairs: Iterable[TokenPair],
    wanted: _Wanted,
    shuffle_seed: int | None,
    batch_tokens: int,
    window: int,
) -> Iterator[AttentionBatch]:
    start = 0
    for number, read in enumerate(read_windows(pairs, window)):
        shuffled = shuffle_seed is not None and len(read) > 1
        runner = _Window(model, read, start, wanted, keep_encoded=shuffled)
        for batch in runner.plan(range(len(read)), batch_tokens):
            yield runner.run(batch)
        if shuffle_seed is not None and shuffled:
            sources = wrong_sources(len(read), (shuffle_seed, number))
            for batch in runner.plan(sources, batch_tokens):
                yield runner.run_shuffled(batch, [sources[index] for index in batch])
        start += len(read)


_Losses: TypeAlias = tuple[Tensor | None, Sequence[TokenLosses] | None]
"""The losses of sentences and of their tokens, see `AttentionBatch`."""


class _Window:
    """Runs the batches of one window of pairs."""

    def __init__(
        self,
        model: Transformer,
        pairs: Sequence[TokenPair],
        start: int,
        wanted: _Wanted,
        *,
        keep_encoded: bool,
    ) -> None:
        self.model = model
        self.pairs = pairs
        self.start = start
        self.wanted = wanted
        self.sources = [len(source) + 1 for source, _ in pairs]
        self.targets = [len(target) + 1 for _, target in pairs]
        self.device = model.embedding.weight.device
        self.encoded = _EncodedSources(self.sources, model) if keep_encoded else None

    def plan(self, sources: Iterable[int], batch_tokens: int) -> list[list[int]]:
        """Group the window's targets into batches; ``sources`` has the source for each target."""
        sizes = [(self.sources[s], self.targets[t]) for t, s in enumerate(sources)]
        matrices = self.model.config.heads * len(self.wanted.modules)
        return plan_pair_batches(sizes, batch_tokens, BATCH_WEIGHTS // matrices)

    def run(self, batch: Sequence[int]) -> AttentionBatch:
        source = self._tensor([self.pairs[i][0] for i in batch], end=END)
        target = self._tensor([self.pairs[i][1] for i in batch], begin=BEGIN)
        with inference(self.model, positions=max(source.size(1), target.size(1))):
            kinds = self.wanted.kinds if self.wanted.cross_layer is None else ()
            meter = OutputMeter(self.model, kinds)
            with meter.watch(source, target), capture(self.model, self.wanted.modules) as records:
                memory = self.model.encode(source)
                forced = None
                if self.wanted.states:
                    forced = ForcedStates.of(self.model, source, target, memory)
                    states = self.model.decoder.finish(forced.last)
                else:
                    states = self.model.decode(target, memory, layers=self.wanted.decoder_layers)
            if self.encoded is not None:
                self.encoded.keep(batch, memory.states)
            losses = self._losses(batch, states)
        return self._batch(batch, batch, records, losses, meter.sums, states=forced)

    def run_shuffled(self, batch: Sequence[int], sources: Sequence[int]) -> AttentionBatch:
        assert self.encoded is not None
        target = self._tensor([self.pairs[i][1] for i in batch], begin=BEGIN)
        with inference(self.model, positions=target.size(1)):
            memory = self.encoded.memory(sources)
            with capture(self.model, self.wanted.modules) as records:
                states = self.model.decode(target, memory, layers=self.wanted.decoder_layers)
            losses = self._losses(batch, states)
        return self._batch(batch, sources, records, losses, {}, is_shuffled=True)

    def _batch(
        self,
        batch: Sequence[int],
        sources: Sequence[int],
        records: Records,
        losses: _Losses,
        outputs: Mapping[AttentionKind, Sequence[OutputSums]],
        *,
        states: ForcedStates | None = None,
        is_shuffled: bool = False,
    ) -> AttentionBatch:
        source_sizes = [self.sources[index] for index in sources]
        target_sizes = [self.targets[index] for index in batch]
        longest = max(source_sizes), max(target_sizes)
        kinds = [kind for kind in self.wanted.kinds if not (is_shuffled and kind == "encoder")]
        return AttentionBatch(
            indices=[self.start + index for index in batch],
            source_sizes=torch.tensor(source_sizes),
            target_sizes=torch.tensor(target_sizes),
            layers={kind: self._recorded(records, kind, *longest) for kind in kinds},
            outputs=outputs,
            is_shuffled=is_shuffled,
            losses=losses[0],
            token_losses=losses[1],
            states=states,
        )

    def _losses(self, batch: Sequence[int], states: Tensor) -> _Losses:
        wanted = self.wanted.losses
        if not wanted:
            return None, None
        if isinstance(wanted, bool):
            by_token = token_losses(self.model, states, [self.pairs[i][1] for i in batch])
            return torch.stack([sentence.losses.sum() for sentence in by_token]), by_token
        places = [place for place, i in enumerate(batch) if self.start + i in wanted]
        losses = torch.full((len(batch),), torch.nan, dtype=torch.float64)
        if places:
            targets = [self.pairs[batch[place]][1] for place in places]
            losses[places] = sentence_losses(self.model, states[places], targets)
        return losses, None

    def _tensor(self, sentences: Sequence[Sequence[int]], **ends: int) -> Tensor:
        return torch.from_numpy(pad_sentences(sentences, **ends)).to(self.device)

    def _recorded(
        self, records: Records, kind: AttentionKind, source: int, target: int
    ) -> list[Tensor]:
        """The weights of each layer, without rows and columns that are padding in every pair."""
        queries = source if kind == "encoder" else target
        keys = target if kind == "decoder" else source
        names = [_MODULES[kind].format(layer) for layer in self.wanted.layers(kind)]
        return [
            records[name][0].weights[..., :queries, :keys].float().cpu().contiguous()
            for name in names
        ]


class _EncodedSources:
    """The encoder's output for the sources of a window, concatenated without padding."""

    def __init__(self, sizes: Sequence[int], model: Transformer) -> None:
        weight = model.embedding.weight
        self.sizes = torch.tensor(sizes, device=weight.device)
        self.starts = self.sizes.cumsum(0) - self.sizes
        # One extra row stands for padding, which is masked.
        self.states = weight.new_zeros(sum(sizes) + 1, model.config.dim).detach()

    def keep(self, sources: Sequence[int], states: Tensor) -> None:
        """Keep the states ``[sources, padded size, dim]`` of a batch."""
        self.states[self._rows(sources)] = states.to(self.states.dtype)

    def memory(self, sources: Sequence[int]) -> Memory:
        """What the encoder would return for these sources."""
        rows = self._rows(sources)
        mask = rows < len(self.states) - 1
        return Memory(self.states[rows], mask[:, None, None, :])

    def _rows(self, sources: Sequence[int]) -> Tensor:
        """``[sources, padded size]``: the rows of `states` for these sources."""
        chosen = torch.tensor(sources, device=self.sizes.device)
        sizes, starts = self.sizes[chosen, None], self.starts[chosen, None]
        positions = torch.arange(padded_size(int(sizes.max())), device=self.sizes.device)
        return torch.where(positions < sizes, starts + positions, len(self.states) - 1)
