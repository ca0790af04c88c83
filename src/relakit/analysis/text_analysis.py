"""From recorded self-attention over texts to the numbers of the paper's analysis."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from relakit.analysis.results import AnalysisSettings, ModelAnalysis
from relakit.analysis.text_results import TextAnalysis, TextTokens, TextView
from relakit.analysis.totals import KindTotals
from relakit.model.attention_outputs import OutputSums
from relakit.nn.capture import AttentionRecord, Records
from relakit.nn.variants import (
    DEFAULT_ATTENTION,
    AttentionName,
    AttentionSpec,
    resolve_attention,
)


@dataclass(frozen=True)
class RecordedText:
    """One text, and the self-attention of every layer over it."""

    read: TextTokens
    layers: Sequence[tuple[str, AttentionRecord]]
    """From the first to the last layer, with the names of their modules"""
    outputs: Sequence[OutputSums] = ()
    """Output sums of each layer, if they were measured"""

    @classmethod
    def from_records(
        cls, records: Records, tokens: Sequence[str], text: str | None = None
    ) -> "RecordedText":
        """What `relakit.capture` recorded while a model read one text.

        Args:
            records: from one pass with a batch of one; layers are in the order of their first call.
            tokens: labels for the positions.
            text: the text that was read; None: the tokens joined with spaces.
        """
        read = TextTokens(" ".join(tokens) if text is None else text, tuple(tokens))
        return cls(read, [(name, one) for name, several in records.items() for one in several])


def analyze_texts(
    texts: Iterable[RecordedText],
    *,
    name: str,
    attention: AttentionName | AttentionSpec = DEFAULT_ATTENTION,
    keep: Collection[int] = (),
    settings: AnalysisSettings | None = None,
    inputs: Mapping[str, str] | None = None,
    is_causal: bool | None = None,
) -> TextAnalysis:
    """Add up what was recorded; the texts are read once, one at a time.

    Args:
        texts: recorded with one model.
        name: the model's name in tables and figures.
        attention: what all its layers compute.
        keep: the numbers, from 0, of the texts whose attention is kept for inspection.
        settings: what the numbers depend on; None for the defaults.
        inputs: a description of what is analyzed, for readers.
        is_causal: whether a token sees only itself and those before it; None: decided by the
            masks of the first text with at least two tokens.

    Raises:
        ValueError: there is no text, or layers are not self-attention over its tokens.
    """
    spec = resolve_attention(attention)
    settings = settings or AnalysisSettings()
    totals: KindTotals | None = None
    layers: tuple[str, ...] = ()
    views = []
    if is_causal is None:
        is_causal, texts = _look_ahead(texts)
    for index, text in enumerate(texts):
        seen = [_seen_keys(record) for _, record in _checked(text, index)]
        if totals is None:
            totals = _totals(text, spec, settings, is_causal=is_causal)
            layers = tuple(layer for layer, _ in text.layers)
        _add(totals, text, len(layers), index)
        if index in keep:
            views.append(_view(index, text, seen))
    if totals is None:
        raise ValueError("there are no texts to analyze")
    analysis = ModelAnalysis(
        name=name,
        settings=settings,
        inputs=dict(inputs or {}),
        pairs=index + 1,
        source_tokens=totals.queries,
        kinds=(totals.result(),),
    )
    return TextAnalysis(analysis, layers, tuple(views))


def _checked(text: RecordedText, index: int) -> Sequence[tuple[str, AttentionRecord]]:
    """The layers, after checking that each has a square matrix of weights over the tokens."""
    tokens = len(text.read.labels)
    if not tokens:
        raise ValueError(f"text {index + 1:,} has no tokens")
    if not text.layers:
        raise ValueError(f"of text {index + 1:,} no attention was recorded")
    for name, record in text.layers:
        shape = tuple(record.weights.shape)
        if len(shape) != 4 or shape[0] != 1 or shape[2:] != (tokens, tokens):
            raise ValueError(
                f"text {index + 1:,} has {tokens:,} tokens, so the self-attention of {name} must "
                f"have the shape [1, heads, {tokens}, {tokens}], got {list(shape)}"
            )
    return text.layers


def _seen_keys(record: AttentionRecord) -> npt.NDArray[np.int32]:
    """``[queries, 2]``: the first key that a query may see in any head, and the one after the last.

    Within one text, transformers and `relakit.attention` hide only later keys and keys too far
    away, so the visible keys are contiguous.
    """
    queries, keys = record.weights.shape[-2:]
    if record.valid is None:
        return np.tile(np.array([0, keys], dtype=np.int32), (queries, 1))
    visible = record.valid.reshape(-1, queries, keys).any(0).cpu().numpy()
    first = visible.argmax(1)
    after = np.where(visible.any(1), keys - visible[:, ::-1].argmax(1), first)
    return np.stack([first, after], 1).astype(np.int32)


def _look_ahead(texts: Iterable[RecordedText]) -> tuple[bool, Iterator[RecordedText]]:
    """Whether attention is causal, and all the texts. A lone token sees itself in either case."""
    remaining = iter(texts)
    ahead: list[RecordedText] = []
    is_causal = True
    for text in remaining:
        layers = _checked(text, len(ahead))
        ahead.append(text)
        if len(text.read.labels) > 1:
            is_causal = all(_is_causal(_seen_keys(record)) for _, record in layers)
            break
    return is_causal, chain(ahead, remaining)


def _is_causal(seen: npt.NDArray[np.int32]) -> bool:
    return bool((seen[:, 1] <= np.arange(1, len(seen) + 1)).all())


def _totals(
    text: RecordedText, spec: AttentionSpec, settings: AnalysisSettings, *, is_causal: bool
) -> KindTotals:
    (first, some), *others = text.layers
    heads = some.weights.size(1)
    for name, record in others:
        if record.weights.size(1) != heads:
            raise ValueError(
                f"{first} has {heads} heads and {name} {record.weights.size(1)}; choose modules "
                "with the same number with where=..."
            )
    return KindTotals(
        "decoder" if is_causal else "encoder",
        spec,
        layers=len(text.layers),
        heads=heads,
        temperatures=settings.temperatures,
    )


def _add(totals: KindTotals, text: RecordedText, layers: int, index: int) -> None:
    if len(text.layers) != layers:
        raise ValueError(
            f"text {index + 1:,} went through {len(text.layers)} layers of attention, those before "
            f"through {layers}"
        )
    totals.queries += len(text.read.labels)
    keys = torch.tensor([len(text.read.labels)])
    for layer, (_, record) in enumerate(text.layers):
        valid: Tensor | None = None if record.valid is None else record.valid.cpu()
        totals.add_layer(layer, record.weights.cpu(), valid, keys)
    for layer, sums in enumerate(text.outputs):
        totals.outputs[layer] += sums


def _view(index: int, text: RecordedText, seen: Sequence[npt.NDArray[np.int32]]) -> TextView:
    weights = torch.cat([record.weights for _, record in text.layers])
    return TextView(index, text.read, weights.cpu().float().numpy(), np.stack(seen))
