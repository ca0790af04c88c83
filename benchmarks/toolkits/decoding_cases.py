"""What is translated: sentences of a corpus, in batches of one size or in groups of one length."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.tokenizer import Tokenizer
from toolkits.settings import DecodingSettings


@dataclass(frozen=True, kw_only=True)
class DecodingBatch:
    """Sentences that are translated together."""

    sentences: list[list[int]]
    """Ids without special tokens."""
    exact_length: int | None
    """Tokens that every translation must have, not counting its end; None: the model decides."""

    @property
    def max_length(self) -> int:
        """The most tokens a translation may have, not counting its end."""
        if self.exact_length is not None:
            return self.exact_length
        return 2 * max(map(len, self.sentences)) + 20


@dataclass(frozen=True, kw_only=True)
class DecodingCase:
    """Batches that are measured together."""

    name: str
    batches: list[DecodingBatch]
    is_group: bool = False
    """Whether these are sentences of similar length."""

    @property
    def sentences(self) -> int:
        return sum(len(batch.sentences) for batch in self.batches)

    @property
    def source_length(self) -> float:
        """Mean number of tokens in a source."""
        tokens = sum(len(s) for batch in self.batches for s in batch.sentences)
        return tokens / self.sentences


@dataclass(frozen=True)
class Sentences:
    """Sources, and how long their references are."""

    sources: list[list[int]] = field(default_factory=list)
    reference_lengths: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: PreparedCorpus, split: str, tokenizer: Tokenizer) -> "Sentences":
        """A split of a corpus, in the tokens of a model's own tokenizer, which may differ."""
        pairs = corpus.split(split)
        sides = []
        for side in (pairs.source, pairs.target):
            texts = corpus.tokenizer.decode_batch([side(i).tolist() for i in range(len(pairs))])
            sides.append(tokenizer.encode_batch(texts))
        kept = [(s, len(t)) for s, t in zip(*sides, strict=True) if s and t]
        return cls([source for source, _ in kept], [length for _, length in kept])


def decoding_cases(sentences: Sentences, settings: DecodingSettings) -> list[DecodingCase]:
    """A case for every batch size, then one for every group of lengths."""
    cases = []
    for size in settings.batch_sizes:
        chosen = spread_evenly(range(len(sentences.sources)), settings.sentences_for(size))
        batches = _batches(chosen, sentences, size, settings.exact_length)
        cases.append(DecodingCase(name=f"batch {size}", batches=batches))
    lengths = [len(source) for source in sentences.sources]
    for number, group in enumerate(length_groups(lengths, settings.groups), start=1):
        chosen = spread_evenly(group, settings.group_sentences)
        shortest, longest = lengths[group[0]], lengths[group[-1]]
        cases.append(
            DecodingCase(
                name=f"group {number}, source length {shortest} to {longest}",
                batches=_batches(chosen, sentences, 1, settings.exact_length),
                is_group=True,
            )
        )
    return cases


def length_groups(lengths: Sequence[int], count: int) -> list[list[int]]:
    """Indices in ``count`` disjoint groups of (nearly) equal size, from short to long sentences."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    if count > len(order):
        raise ValueError(
            f"{len(order)} sentences cannot make {count} groups; take fewer groups or more "
            "sentences"
        )
    return [part.tolist() for part in np.array_split(order, count)] if count else []


def spread_evenly(indices: Sequence[int], count: int) -> list[int]:
    """At most ``count`` of the indices, at equal distances."""
    count = min(count, len(indices))
    return [indices[number * len(indices) // count] for number in range(count)]


def _batches(
    chosen: Sequence[int], sentences: Sentences, size: int, exact: bool
) -> list[DecodingBatch]:
    """Batches sorted by length, longest first, to keep padding low."""
    order = sorted(chosen, key=lambda i: -len(sentences.sources[i]))
    batches = []
    for start in range(0, len(order), size):
        group = order[start : start + size]
        mean = sum(sentences.reference_lengths[i] for i in group) / len(group)
        batches.append(
            DecodingBatch(
                sentences=[sentences.sources[i] for i in group],
                exact_length=max(1, round(mean)) if exact else None,
            )
        )
    return batches
