"""A filter for OpusFilter: ``NullAttentionFilter``, which asks a translation model about each pair.

Needs the extra ``relakit[opusfilter]``. docs/opusfilter.md has a configuration to start from.
"""

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

try:
    from opusfilter import CLEAN_HIGH, CLEAN_LOW, ConfigurationError, FilterABC
except ImportError as error:
    raise ImportError(
        "relakit.opusfilter needs the package opusfilter; install it with "
        "pip install 'relakit[opusfilter]'"
    ) from error

import numpy as np

from relakit.align.layer_files import has_layer
from relakit.clean.calibration import NoiseCalibration
from relakit.clean.columns import COLUMNS, Cell, Column
from relakit.clean.measures import PROBABILITY
from relakit.clean.score import ScoreModels, ScoreSettings
from relakit.clean.settings import THRESHOLD
from relakit.data.parallel_files import NumberedPair
from relakit.shards.cutting import cut_into_shards

if TYPE_CHECKING:
    from relakit.clean.features import PairFeatures
    from relakit.clean.scorer import PairScorer

__all__ = ["NullAttentionFilter"]

Pair: TypeAlias = Sequence[str]
"""A sentence and its translation, as OpusFilter reads them."""
Score: TypeAlias = float | dict[str, float]

_READERS: Final = {column.name: column.read for column in COLUMNS if column.kind != "text"}
_PARAMETERS: Final = {
    "--batch-tokens": "batch_tokens",
    "--max-tokens": "max_tokens",
    "--reverse": "reverse",
}
"""What the options of `relakit score` are called here."""
_FILTERED: Final = ("low", "high")
"""Ratios, for which typical values are good, are left to OpusFilter's own filters."""
_UNLIKELY: Final = 100.0
"""In nats: stands for what cannot be computed, as score files cannot hold infinity."""


@dataclass(frozen=True)
class _Range:
    """The thresholds between which a column tells good pairs from bad ones."""

    direction: str
    accepts_all: float
    rejects_all: float
    blank: float
    """The score of a pair with a blank side, or whose score is not known: as bad as can be."""

    def accepts(self, score: float, threshold: float) -> bool:
        return score < threshold if self.direction == CLEAN_LOW else score >= threshold


def _range(column: Column) -> _Range:
    if column.name.endswith("null_rate"):
        return _Range(CLEAN_LOW, 1 + 1e-6, 0.0, 1.0)
    if column.name == "attention_mass":
        return _Range(CLEAN_HIGH, 0.0, math.inf, 0.0)
    if column.good == "high":
        return _Range(CLEAN_HIGH, -math.inf, math.inf, -_UNLIKELY)
    return _Range(CLEAN_LOW, math.inf, 0.0, _UNLIKELY)


_RANGES: Final = {
    **{column.name: _range(column) for column in COLUMNS if column.good in _FILTERED},
    PROBABILITY: _Range(CLEAN_HIGH, 0.0, 1 + 1e-6, 0.0),
}
"""What pairs can be filtered by: columns, and the probability of a calibration."""
_OF_ATTENTION: Final = ("null_rate", "attention_mass")
"""Columns that say nothing if attention is never null."""
_OF_LINKS: Final = ("alignment_null_rate", "uncovered_words")
"""Columns that say nothing then, either, unless an alignment layer gives the links."""
_OF_REVERSE: Final = ("reverse_", "dual_")
"""Columns with these prefixes need a model for the opposite direction."""


class NullAttentionFilter(FilterABC):  # type: ignore[misc]  # it has no types
    """Filters sentence pairs by what `relakit score` computes for them.

    Pairs are computed in batches, and a pair's score does not depend on its neighbours. A pair with
    a blank side is always rejected.
    """

    def __init__(
        self,
        model: str,
        by: str | None = None,
        threshold: float | None = None,
        reverse: str | None = None,
        calibration: str | None = None,
        columns: Sequence[str] | None = None,
        max_tokens: int | None = None,
        batch_tokens: int = ScoreSettings.batch_tokens,
        **kwargs: Any,
    ) -> None:
        """Check everything that can be checked before the first pair, when the model is loaded.

        Args:
            model: a model directory, from the first file's language to the second's. Relative paths
                start at OpusFilter's output directory.
            by: the column to filter by, or ``probability``; docs/cleaning.md explains them. None:
                ``probability`` if there is a calibration, else ``cross_entropy``.
            threshold: scores must be below it or, where high scores are good, not below it.
                Required to filter, not to score; a probability has a default.
            reverse: a model directory for the opposite direction, for dual cross-entropy; if both
                models have an alignment layer, also for unsupported words.
            calibration: a file that ``relakit filter --calibrate`` wrote with these models.
            columns: a score then holds these columns by name; None: a score is the number ``by``.
            max_tokens: per side; a side with more is scored by its beginning. None: as many as fit
                into 256 MiB of attention.
            batch_tokens: padded tokens computed at once; scores do not depend on it.
            kwargs: OpusFilter's own parameters, ``name`` and ``workdir``.

        Raises:
            ConfigurationError: a parameter is wrong, or a model directory is broken.
        """
        _refuse_unknown(kwargs)
        super().__init__(**kwargs)
        usual = "cross_entropy" if calibration is None else PROBABILITY
        self.by = _known("by", usual if by is None else by, _RANGES)
        self.threshold = _number("threshold", threshold)
        if self.threshold is None and self.by == PROBABILITY:
            self.threshold = THRESHOLD
        self.columns = _chosen(columns, self.by)
        self._range = _RANGES[self.by]
        self._settings = ScoreSettings(
            model=self._folder("model", model),
            reverse=None if reverse is None else self._folder("reverse", reverse),
            max_tokens=None if max_tokens is None else _count("max_tokens", max_tokens),
            batch_tokens=_count("batch_tokens", batch_tokens),
        )
        try:
            self._models = ScoreModels(self._settings)
            self._calibration = None
            if calibration is not None:
                self._calibration = self._fitting(self._path("calibration", calibration, "file"))
        except (OSError, ValueError) as problem:
            raise ConfigurationError(_in_parameters(str(problem))) from None
        self._check_columns()

    @property
    def score_direction(self) -> str:
        """Whether low or high scores are good."""
        return self._range.direction

    @property
    def accept_threshold(self) -> float:
        """A threshold that accepts all pairs with a score."""
        return self._range.accepts_all

    @property
    def reject_threshold(self) -> float:
        """A threshold that rejects everything."""
        return self._range.rejects_all

    def score(self, pairs: Iterable[Pair]) -> Iterator[Score]:
        """One number per pair, or several by name; reads some pairs ahead."""
        return (score for _, score, _ in self._scored(pairs))

    def accept(self, score: Score) -> bool:
        """Whether a pair with this score is good enough.

        Raises:
            ConfigurationError: there is no threshold.
        """
        if self.threshold is None:
            raise ConfigurationError(
                f"threshold: name one to filter by {self.by}; a score step shows which values occur"
            )
        value = score[self.by] if isinstance(score, dict) else score
        return self._range.accepts(value, self.threshold)

    def decisions(self, pairs: Iterable[Pair]) -> Iterator[bool]:
        """For each pair, whether it is accepted."""
        return (is_accepted for _, is_accepted in self._judged(pairs))

    def filter(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs that are accepted. The base class would ask about one pair at a time."""
        return (pair for pair, is_accepted in self._judged(pairs) if is_accepted)

    def filterfalse(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs that are not accepted."""
        return (pair for pair, is_accepted in self._judged(pairs) if not is_accepted)

    def _judged(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, bool]]:
        for pair, score, is_blank in self._scored(pairs):
            yield pair, not is_blank and self.accept(score)

    def _scored(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, Score, bool]]:
        """Each pair, its score, and whether a side is blank."""
        for shard in cut_into_shards(_numbered(pairs)):
            features = [scored.features for scored in self._scorer.score(shard.pairs)]
            probabilities = self._probabilities(features)
            for pair, one, probability in zip(shard.pairs, features, probabilities, strict=True):
                yield pair.texts, self._value(one, probability), one is None

    def _value(self, features: "PairFeatures | None", probability: float) -> Score:
        cells = {
            name: probability if name == PROBABILITY else _cell(name, features)
            for name in self.columns or (self.by,)
        }
        return cells if self.columns else cells[self.by]

    def _probabilities(self, features: Sequence["PairFeatures | None"]) -> list[float]:
        """The probability that each pair is clean; 0 where that is not known."""
        known = [place for place, one in enumerate(features) if one is not None]
        found = np.zeros(len(features))
        if self._calibration is not None and known:
            rows = [one for one in features if one is not None]
            columns = {
                name: np.array([read(row) for row in rows], dtype=float)
                for name, read in _READERS.items()
            }
            found[known] = self._calibration.judge(columns).probability
        return [float(one) for one in found]

    @cached_property
    def _scorer(self) -> "PairScorer":
        from relakit.clean.scorer import PairScorer  # torch takes a while to load

        return PairScorer.load(
            self._settings.model,
            reverse=self._settings.reverse,
            languages=self._models.languages,
            max_tokens=self._models.max_tokens,
            batch_tokens=self._settings.batch_tokens,
        )

    def _fitting(self, path: Path) -> NoiseCalibration:
        """Read a calibration of these models; ValueError if it belongs to others."""
        calibration = NoiseCalibration.read(path)
        problem = calibration.why_not_for(self._models.facts)
        if problem is not None:
            raise ValueError(f"calibration {path} {problem}")
        return calibration

    def _folder(self, name: str, given: object) -> Path:
        return self._path(name, given, "model directory")

    def _path(self, name: str, given: object, what: str) -> Path:
        if not isinstance(given, str | Path) or not str(given):
            raise ConfigurationError(f"{name} must be a {what}, got {given!r}")
        return Path(getattr(self, "workdir", ""), given)

    def _check_columns(self) -> None:
        """Raise ConfigurationError for columns that would be empty, or the same for all pairs."""
        folder = self._settings.model
        for name in self.columns or (self.by,):
            if name == PROBABILITY and self._calibration is None:
                raise ConfigurationError(
                    f"{name} needs a calibration; name a file that relakit filter --calibrate wrote"
                )
            if name == "alignment_null_rate" and not self._models.has_links:
                raise ConfigurationError(
                    f"{name} needs a choice of heads or an alignment layer, which {folder} does "
                    f"not have; relakit align {folder} --select chooses heads"
                )
            if name.startswith(_OF_REVERSE) and self._settings.reverse is None:
                raise ConfigurationError(
                    f"{name} needs a model of the other direction; name it as reverse"
                )
            if name.endswith("_language") and self._models.languages is None:
                raise ConfigurationError(
                    f"{name} needs languages.json, which {folder} does not have; a model that is "
                    "trained by this relakit has one"
                )
        silent = _OF_ATTENTION if has_layer(folder) else (*_OF_ATTENTION, *_OF_LINKS)
        if self.by in silent and not self._models.has_null_attention:
            raise ConfigurationError(
                f"by: {self.by} is the same for all pairs, as the cross-attention of {folder} is "
                "never null; choose cross_entropy or another column"
            )


def _numbered(pairs: Iterable[Pair]) -> Iterator[NumberedPair]:
    for number, pair in enumerate(pairs, start=1):
        if len(pair) != 2:
            raise ConfigurationError(
                f"NullAttentionFilter compares two files, a source and a target, got {len(pair)}"
            )
        yield NumberedPair(number, *pair)


def _cell(name: str, features: "PairFeatures | None") -> float:
    cell: Cell = None if features is None else _READERS[name](features)
    if cell is None:  # a blank side, or the end of a cropped one; other columns were refused
        return _RANGES[name].blank if name in _RANGES else 0.0
    assert isinstance(cell, int | float)
    return cell


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for misspelt parameters, which OpusFilter would ignore."""
    kind = inspect.Parameter.VAR_KEYWORD
    theirs = inspect.signature(FilterABC.__init__).parameters.values()
    ours = inspect.signature(NullAttentionFilter.__init__).parameters.values()
    known = [one.name for one in (*ours, *theirs) if one.kind != kind and one.name != "self"]
    for name in given:
        _known("NullAttentionFilter", name, known, what="parameter")


def _known(name: str, given: object, known: Iterable[str], what: str = "column") -> str:
    if not isinstance(given, str) or given not in known:
        names = ", ".join(known)
        raise ConfigurationError(f"{name}: there is no {what} {given!r}; choose from {names}")
    return given


def _chosen(columns: object, by: str) -> tuple[str, ...]:
    """The columns of a score, including ``by``; none if a score is a plain number."""
    if columns is None:
        return ()
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise ConfigurationError(f"columns must be a list of names, got {columns!r}")
    names = [_known("columns", name, [*_READERS, PROBABILITY]) for name in columns]
    return tuple(dict.fromkeys([*names, by]))


def _number(name: str, given: object) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if given is None or (is_number and given == given):  # not NaN
        return given  # type: ignore[return-value]
    raise ConfigurationError(f"{name} must be a number, got {given!r}")


def _count(name: str, given: object) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    raise ConfigurationError(f"{name} must be a whole number of at least 1, got {given!r}")


def _in_parameters(message: str) -> str:
    for option, parameter in _PARAMETERS.items():
        message = message.replace(option, parameter, 1)
    return f"NullAttentionFilter: {message}"
