"""Sentences for the page: their attention in 8 bits, deflated, encoded as text."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.analysis.attention_weights import null_query_share
from relakit.analysis.links import EndWeight, links_of_heads
from relakit.analysis.results import SentenceView
from relakit.analysis.sentence_links import SentenceLinks
from relakit.analysis.text_results import TextView
from relakit.analysis.word_map import Span
from relakit.attention_kinds import ATTENTION_KINDS
from relakit.broken_model import BrokenModelError
from relakit.report.head_clarity import head_clarity
from relakit.report.word_difference import Status, word_difference

MOST_TOKENS: Final = 400
"""A sentence or text with more tokens is not packed."""
MOST_WEIGHTS: Final = 24_000_000
"""Nor is a text with more weights in all layers and heads; the paper's model has about this many
for a pair of `MOST_TOKENS`."""
LEVELS: Final = 255
"""Steps of a head's weights, from 0 to the largest"""
SIGNED_LEVELS: Final = 127
"""The same on either side of 0, where some weights are negative"""
SELF: Final = "self"
"""The page's name for the one kind of attention of a model that reads texts"""

View: TypeAlias = SentenceView | TextView


@dataclass(frozen=True)
class PackedView:
    """One model's view of a sentence, ready for the page."""

    index: int
    source: str
    """The source sentence, or a text"""
    target: str
    null_rate: float
    """Share of cross-attention queries, over layers and heads, that are null; for texts, share of
    self-attention queries"""
    clarity: npt.NDArray[np.float64]
    """The clarity of each head of that attention"""
    text: str
    """Base64 of what page/data.js reads"""
    chrf: float | None = None
    loss: float | None = None
    own_text: str | None = None
    """The same with the model's own translation in place of the target"""
    has_words: bool = True
    """Whether it is known which tokens make up a word"""


def pack_view(view: View, end: EndWeight = "ignored") -> PackedView:
    """Quantise and compress a view.

    Links between words come from the exact weights. The model's own translation is left out if it
    has more than `MOST_TOKENS` tokens.

    Args:
        view: a sentence pair, or a text.
        end: how weight on the source's end-of-sentence token affects links.

    Raises:
        ValueError: the shapes do not fit the tokens.
        BrokenModelError: a weight is not finite.
    """
    if isinstance(view, TextView):
        return _pack_text_view(view)
    own = view.own
    return PackedView(
        index=view.index,
        source=view.source,
        target=view.target,
        null_rate=cross_null_rate(view),
        chrf=view.chrf,
        loss=view.loss,
        clarity=head_clarity(view.weights["cross"]),
        text=_packed_text(view, end),
        own_text=None if own is None or is_too_long(own) else _packed_text(own, end),
    )


def is_too_long(view: View) -> bool:
    """Whether packing it would need too much memory: several times as much as the weights."""
    if isinstance(view, TextView):
        return not fits_page(len(view.tokens), view.weights.size)
    return max(len(view.source_token_spans), len(view.target_token_spans)) > MOST_TOKENS


def fits_page(tokens: int, weights: int) -> bool:
    """Whether a page shows a text with this many tokens, and this many weights in all heads."""
    return tokens <= MOST_TOKENS and weights <= MOST_WEIGHTS


def _pack_text_view(view: TextView) -> PackedView:
    tokens = len(view.tokens)
    _check_weights(f"text {view.index + 1:,}", SELF, view.weights, (tokens, tokens))
    header = {
        "sourceWords": view.read.words,
        "sourceTokens": view.tokens,
        "sourceTokenWords": view.read.token_words,
        "gold": None,
        "output": None,
        "difference": None,
        "tags": None,
    }
    return PackedView(
        index=view.index,
        source=view.text,
        target="",
        null_rate=null_query_share(view.weights),
        clarity=head_clarity(view.weights),
        text=_packed(header, {SELF: view.weights}, view.seen),
        has_words=view.read.words is not None,
    )


def _packed_text(view: SentenceView, end: EndWeight) -> str:
    _check(view)
    links = links_of_heads(
        view.weights["cross"],
        np.array(view.source_token_words, dtype=np.int64),
        np.array(view.target_token_words, dtype=np.int64),
        source_count=len(view.source_words),
        target_count=len(view.target_words),
        end=end,
    )
    return _packed(_header(view), {kind: view.weights[kind] for kind in ATTENTION_KINDS}, links)


def _packed(
    header: Mapping[str, Any],
    weights: Mapping[str, npt.NDArray[np.float32]],
    numbers: npt.NDArray[np.integer],
) -> str:
    """What page/data.js reads: the header, the scales of all kinds, small numbers, the levels."""
    scales, cells, signed = [], [], {}
    for kind, values in weights.items():
        signed[kind] = bool((values < 0).any())
        scale, levels = quantise(values, signed=signed[kind])
        scales.append(scale.astype("<f4").tobytes())
        cells.append(levels.tobytes())
    shapes = {kind: values.shape for kind, values in weights.items()}
    text = json.dumps({**header, "shapes": shapes, "signed": signed}, ensure_ascii=False)
    packed = text.encode("utf-8", "backslashreplace")  # half of a surrogate pair becomes an escape
    # Pad with spaces, so that the numbers that follow start at a multiple of four bytes.
    packed += b" " * (-len(packed) % 4)
    parts = [len(packed).to_bytes(4, "little"), packed, *scales, numbers.astype("<i2").tobytes()]
    return _as_text(b"".join([*parts, *cells]))


def pack_links(links: SentenceLinks) -> str:
    """Links of all pairs: how many words each target has, then the source words."""
    counts = np.array([len(links.target_words), *links.target_words], dtype="<i4").tobytes()
    return _as_text(counts + links.source_words.astype("<i2").tobytes())


def cross_null_rate(view: SentenceView) -> float:
    """Share of cross-attention queries that are null, over layers and heads."""
    return null_query_share(view.weights["cross"])


def quantise(
    weights: npt.NDArray[np.float32], *, signed: bool = False
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8] | npt.NDArray[np.int8]]:
    """Each head's largest weight, and all weights as steps of it.

    A step is 0 exactly where the weight is: weights that would round to 0 get one step.

    Args:
        weights: ``[layers, heads, queries, keys]``.
        signed: keep negative weights, in fewer steps.

    Returns:
        Scales ``[layers, heads]`` and steps ``[layers, heads, queries, keys]``.
    """
    steps = SIGNED_LEVELS if signed else LEVELS
    magnitudes = np.abs(weights.astype(np.float64))
    scales = magnitudes.max((-1, -2), initial=0.0)
    # In float64, so that dividing by the smallest float32 numbers stays finite.
    shares = magnitudes / np.where(scales > 0, scales, 1.0)[..., None, None]
    levels = np.maximum(np.rint(shares * steps), magnitudes > 0)
    if signed:
        return scales.astype(np.float32), (levels * np.sign(weights)).astype(np.int8)
    return scales.astype(np.float32), levels.astype(np.uint8)


def _header(view: SentenceView) -> dict[str, Any]:
    """Everything but the weights. Texts, not spans: JavaScript counts characters differently."""
    gold = view.gold
    return {
        "sourceWords": _texts(view.source, view.source_words),
        "targetWords": _texts(view.target, view.target_words),
        "sourceTokens": _texts(view.source, view.source_token_spans),
        "targetTokens": _texts(view.target, view.target_token_spans),
        "sourceTokenWords": list(view.source_token_words),
        "targetTokenWords": list(view.target_token_words),
        "gold": None
        if gold is None
        else {"sure": sorted(gold.sure), "possible": sorted(gold.possible - gold.sure)},
        "output": view.output,
        "difference": _difference(view),
        "tags": None if view.target_tags is None else list(view.target_tags),
    }


def _difference(view: SentenceView) -> list[tuple[Status, str]] | None:
    if view.own is None:
        return None
    own = view.own
    return word_difference(view.target, own.target, view.target_words, own.target_words)


def _texts(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[start:end] for start, end in spans]


def _as_text(content: bytes) -> str:
    """Deflate without a header, as the browser's "deflate-raw" reads it, and encode as base64."""
    compressor = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    deflated = compressor.compress(content) + compressor.flush()
    return base64.b64encode(deflated).decode("ascii")


def _check(view: SentenceView) -> None:
    sources, targets = len(view.source_token_spans) + 1, len(view.target_token_spans) + 1
    sizes: dict[str, tuple[int, int]] = {
        "encoder": (sources, sources),
        "decoder": (targets, targets),
        "cross": (targets, sources),
    }
    for kind in ATTENTION_KINDS:
        _check_weights(f"pair {view.index + 1:,}", kind, view.weights[kind], sizes[kind])


def _check_weights(
    what: str, kind: str, weights: npt.NDArray[np.float32], size: tuple[int, int]
) -> None:
    if weights.ndim != 4 or weights.shape[2:] != size:
        raise ValueError(
            f"{what}: {kind} attention must have the shape [layers, heads, {size[0]}, {size[1]}], "
            f"got {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise BrokenModelError(where=f"the {kind} attention of {what}")
