"""Packed sentences read back, as the page's script does."""

import base64
import json
import math
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from relakit.analysis.links import READINGS
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.report.packing import LEVELS, SIGNED_LEVELS


def unpack_text(
    text: str,
) -> tuple[dict[str, Any], npt.NDArray[np.float64], npt.NDArray[np.int16]]:
    """Of a text: the header, the weights, and which keys each query sees."""
    content = zlib.decompress(base64.b64decode(text), wbits=-zlib.MAX_WBITS)
    start = 4 + int.from_bytes(content[:4], "little")
    header: dict[str, Any] = json.loads(content[4:start])
    layers, heads, queries, keys = header["shapes"]["self"]
    scales = np.frombuffer(content, "<f4", layers * heads, start).reshape(layers, heads)
    start += scales.nbytes
    seen = np.frombuffer(content, "<i2", layers * queries * 2, start).reshape(layers, queries, 2)
    start += seen.nbytes
    steps = SIGNED_LEVELS if header["signed"]["self"] else LEVELS
    cells = np.frombuffer(content, "i1" if steps == SIGNED_LEVELS else "u1", -1, start)
    levels = cells.reshape(layers, heads, queries, keys)
    return header, levels / steps * scales[..., None, None], seen


def unpack_view(
    text: str,
) -> tuple[dict[str, Any], dict[AttentionKind, npt.NDArray[np.float64]], npt.NDArray[np.int16]]:
    """The header, the weights by kind, and what `links_of_heads` found."""
    content = zlib.decompress(base64.b64decode(text), wbits=-zlib.MAX_WBITS)
    start = 4 + int.from_bytes(content[:4], "little")
    header: dict[str, Any] = json.loads(content[4:start])
    shapes = {kind: tuple(header["shapes"][kind]) for kind in ATTENTION_KINDS}
    scales: dict[AttentionKind, npt.NDArray[np.float32]] = {}
    for kind in ATTENTION_KINDS:
        count = math.prod(shapes[kind][:2])
        scales[kind] = np.frombuffer(content, "<f4", count, start).reshape(shapes[kind][:2])
        start += 4 * count
    layers, heads = shapes["cross"][:2]
    links_shape = (len(READINGS), layers, heads + 1, len(header["targetWords"]))
    count = math.prod(links_shape)
    links = np.frombuffer(content, "<i2", count, start).reshape(links_shape)
    start += links.nbytes
    weights: dict[AttentionKind, npt.NDArray[np.float64]] = {}
    for kind in ATTENTION_KINDS:
        is_signed = header["signed"][kind]
        count = math.prod(shapes[kind])
        cells = np.frombuffer(content, "i1" if is_signed else "u1", count, start)
        start += count
        steps = SIGNED_LEVELS if is_signed else LEVELS
        weights[kind] = cells.reshape(shapes[kind]) / steps * scales[kind][..., None, None]
    return header, weights, links
