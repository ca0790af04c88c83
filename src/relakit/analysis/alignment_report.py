"""How well a model's cross-attention aligns words: every layer and head against gold links."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from relakit.analysis.alignment import READINGS, AlignmentScore, Reading
from relakit.writing import write_whole

EndWeight: TypeAlias = Literal["ignored", "competes"]
"""What weight on the source's end-of-sentence token does. It is no link in either case; if it
competes, a target word that attends to it more than to any word has no link at all."""

FORMAT: Final = "relakit alignment"
VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class AlignmentSettings:
    """What the scores of a report depend on, besides model and data."""

    end: EndWeight = "ignored"

    def __post_init__(self) -> None:
        if self.end not in get_args(EndWeight):
            raise ValueError(
                f"end must be one of {', '.join(get_args(EndWeight))}, got {self.end!r}"
            )


@dataclass(frozen=True)
class AttentionScores:
    """Alignment scores of all layers and heads. Layers and heads are numbered from 0."""

    heads: tuple[tuple[AlignmentScore, ...], ...]
    """By layer, then head"""
    layers: tuple[AlignmentScore, ...]
    """Of each layer's attention averaged over its heads"""

    @property
    def best_heads(self) -> tuple[int, ...]:
        """In each layer, the head with the lowest error rate."""
        return tuple(_lowest(layer) for layer in self.heads)

    @property
    def best_head(self) -> tuple[int, int]:
        """Layer and head with the lowest error rate of all."""
        best = self.best_heads
        layer = _lowest([scores[head] for scores, head in zip(self.heads, best, strict=True)])
        return layer, best[layer]

    @property
    def best_layer(self) -> int:
        """The layer whose average attention has the lowest error rate."""
        return _lowest(self.layers)

    @property
    def aol(self) -> float:
        """AoL: mean over layers of the error rate of the layer's average attention."""
        return math.fsum(score.aer for score in self.layers) / len(self.layers)

    @property
    def aoh(self) -> float:
        """AoH: mean over layers of the error rate of the layer's best head."""
        best = zip(self.heads, self.best_heads, strict=True)
        return math.fsum(scores[head].aer for scores, head in best) / len(self.heads)


def _lowest(scores: tuple[AlignmentScore, ...] | list[AlignmentScore]) -> int:
    """The first of the scores with the lowest error rate."""
    return min(range(len(scores)), key=lambda index: scores[index].aer)


@dataclass(frozen=True, kw_only=True)
class AlignmentReport:
    """What `evaluate_alignment` found."""

    settings: AlignmentSettings
    attention: str
    """The model's cross-attention, a name in `relakit.ATTENTIONS`"""
    pairs: int
    """Sentence pairs that were aligned"""
    normal: AttentionScores
    """Of attention in the step that predicts a token"""
    shifted: AttentionScores
    """Of attention in the step that has the token as input"""

    def scores(self, reading: Reading) -> AttentionScores:
        if reading not in READINGS:
            raise ValueError(f"unknown reading {reading!r}; choose one of {', '.join(READINGS)}")
        return self.normal if reading == "normal" else self.shifted

    @property
    def best_reading(self) -> Reading:
        """The one that has the best head."""
        return min(READINGS, key=lambda reading: self.best_score(reading).aer)

    def best_score(self, reading: Reading) -> AlignmentScore:
        """The score of the reading's best head."""
        scores = self.scores(reading)
        layer, head = scores.best_head
        return scores.heads[layer][head]

    def to_json(self) -> str:
        """With all that follows from the counts, for people and other tools."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "settings": asdict(self.settings),
            "attention": self.attention,
            "pairs": self.pairs,
            "best_reading": self.best_reading,
            **{reading: _scores_document(self.scores(reading)) for reading in READINGS},
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "AlignmentReport":
        """The report that `to_json` wrote; scores are computed anew from the counts.

        Raises:
            ValueError: it is something else, or damaged.
        """
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError(f'there is no "format": "{FORMAT}"')
        if document.get("version") != VERSION:
            raise ValueError(
                f"it has version {document.get('version')!r}, this relakit reads version {VERSION}"
            )
        try:
            return cls(
                settings=AlignmentSettings(**document["settings"]),
                attention=str(document["attention"]),
                pairs=int(document["pairs"]),
                normal=_parse_scores(document["normal"]),
                shifted=_parse_scores(document["shifted"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"it is damaged: {type(error).__name__}: {error}") from None

    def write(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        write_whole(path, self.to_json().encode())

    @classmethod
    def read(cls, path: Path) -> "AlignmentReport":
        """Read what `write` wrote.

        Raises:
            ValueError: the file, and why it is no report.
        """
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is no alignment report: {error}") from None


def _scores_document(scores: AttentionScores) -> dict[str, Any]:
    return {
        "best_head": scores.best_head,
        "best_layer": scores.best_layer,
        "best_heads": scores.best_heads,
        "aol": scores.aol,
        "aoh": scores.aoh,
        "layers": [_score_document(score) for score in scores.layers],
        "heads": [[_score_document(score) for score in layer] for layer in scores.heads],
    }


def _score_document(score: AlignmentScore) -> dict[str, float | None]:
    rates = {"aer": score.aer, "precision": score.precision, "recall": score.recall}
    # JSON has no NaN.
    numbers = {name: None if math.isnan(rate) else rate for name, rate in rates.items()}
    return {**numbers, **asdict(score)}


def _parse_scores(document: Mapping[str, Any]) -> AttentionScores:
    heads = tuple(tuple(map(_parse_score, layer)) for layer in document["heads"])
    layers = tuple(map(_parse_score, document["layers"]))
    if not layers or len(layers) != len(heads) or not all(heads):
        raise ValueError(f"it has {len(layers)} layers, and heads of {len(heads)}")
    return AttentionScores(heads, layers)


def _parse_score(counts: Mapping[str, Any]) -> AlignmentScore:
    return AlignmentScore(
        **{field.name: int(counts[field.name]) for field in fields(AlignmentScore)}
    )
