"""Padded batches for training, and the groups of sentences that are decoded together.

A file of batches is a safetensors file with the integer arrays ``source.0``, ``target.0``,
``source.1``, ... of shape [sentences, tokens]: right-padded with PAD, each sentence ending in END,
no BEGIN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

PAD, UNK, BEGIN, END = range(4)

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Source and target ids, [sentences, tokens] each."""

    source: Ids
    target: Ids

    @property
    def decoder_input(self) -> Ids:
        """The target shifted right by one, after BEGIN; END is never an input."""
        shifted = np.where(self.target == END, PAD, self.target)[:, :-1]
        begin = np.full((len(self.target), 1), BEGIN, dtype=np.int64)
        return np.concatenate([begin, shifted], axis=1)

    @property
    def target_tokens(self) -> int:
        return int((self.target != PAD).sum())


def read_batches(path: str | Path) -> list[Batch]:
    arrays = {name: ids.astype(np.int64) for name, ids in load_file(path).items()}
    count = len(arrays) // 2
    expected = {f"{side}.{i}" for i in range(count) for side in ("source", "target")}
    if count == 0 or set(arrays) != expected:
        raise ValueError(f"{path}: expected arrays source.0, target.0, ..., found {list(arrays)}")
    batches = [Batch(arrays[f"source.{i}"], arrays[f"target.{i}"]) for i in range(count)]
    for i, batch in enumerate(batches):
        if batch.source.ndim != 2 or len(batch.source) != len(batch.target):
            raise ValueError(
                f"{path}: batch {i} has sources of shape {batch.source.shape} and targets of "
                f"shape {batch.target.shape}; both must be [sentences, tokens]"
            )
    return batches


def write_batches(path: str | Path, batches: Sequence[Batch]) -> None:
    arrays = {}
    for i, batch in enumerate(batches):
        arrays[f"source.{i}"] = np.ascontiguousarray(batch.source)
        arrays[f"target.{i}"] = np.ascontiguousarray(batch.target)
    save_file(arrays, path)


def padded(sentences: Sequence[Sequence[int]]) -> Ids:
    """Sentences of different lengths as one array [sentences, longest], right-padded."""
    ids = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence)] = sentence
    return ids


@dataclass(frozen=True)
class Decoding:
    """A ``decode`` request: sentences without END, and how to search."""

    sentences: list[list[int]]
    beam: int
    batch_size: int
    max_length: int
    """The most tokens to generate for a sentence, including END."""
    exact_length: int | None
    """Generate exactly this many tokens for every sentence, none of them END."""
    length_penalty: float

    @classmethod
    def of_request(cls, request: Mapping[str, Any]) -> "Decoding":
        sentences = request.get("sentences")
        if not sentences or not all(sentences):
            raise ValueError("'decode' needs 'sentences': lists of ids, none of them empty")
        exact_length = request.get("exact_length")
        max_length = request.get("max_length", 256) if exact_length is None else exact_length
        decoding = cls(
            sentences=sentences,
            beam=int(request.get("beam", 4)),
            batch_size=int(request.get("batch_size", 64)),
            max_length=int(max_length),
            exact_length=None if exact_length is None else int(exact_length),
            length_penalty=float(request.get("length_penalty", 0.6)),
        )
        if min(decoding.beam, decoding.batch_size, decoding.max_length) < 1:
            raise ValueError(f"beam, batch size and length must be at least 1: {request}")
        return decoding

    def groups(self) -> list[list[int]]:
        """The indices of the sentences in each batch: longest first, to keep padding low."""
        order = sorted(range(len(self.sentences)), key=lambda i: -len(self.sentences[i]))
        return [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]

    def source(self, group: Sequence[int]) -> Ids:
        return padded([[*self.sentences[i], END] for i in group])


def decoded(seconds: float, generated: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The answer to ``decode``: hypotheses without END, and how many tokens were generated."""
    outputs, tokens = [], 0
    for ids in generated:
        ended = END in ids
        output = [int(i) for i in (ids[: list(ids).index(END)] if ended else ids) if i != PAD]
        outputs.append(output)
        tokens += len(output) + ended
    return {"seconds": seconds, "target_tokens": tokens, "outputs": outputs}
