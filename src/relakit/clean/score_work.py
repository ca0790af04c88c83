"""Scoring as work on shards: pairs in, lines of a table out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relakit.align.settings import ALONE
from relakit.clean.columns import row_line
from relakit.clean.counted import BLANK, CROPPED
from relakit.clean.scorer import PairScorer
from relakit.data.languages import LanguagePair
from relakit.data.parallel_files import NumberedPair
from relakit.model.description import check_same_model
from relakit.shards.work import Advance, ShardResult


class ScoreWork:
    """Scores the pairs of a shard."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer

    def run(self, pairs: Sequence[NumberedPair], advance: Advance) -> ShardResult:
        """See `Work.run`."""
        scored = self._scorer.score(pairs, advance)
        blank = sum(pair.features is None for pair in scored)
        counts = {
            BLANK: blank,
            CROPPED: sum(pair.is_cropped for pair in scored),
            ALONE: 0 if self._scorer.is_batched else len(scored) - blank,
        }
        rows = "".join(row_line(pair.number, pair.features) for pair in scored)
        return ShardResult(rows.encode(), counts)


def build(settings: Mapping[str, Any]) -> ScoreWork:
    """Build the work that `relakit.clean.score` describes.

    Raises:
        OSError, ValueError: a model is broken, or not the one that was described.
    """
    model, languages = Path(settings["model"]), settings["languages"]
    reverse = None if settings["reverse"] is None else Path(settings["reverse"])
    try:
        return ScoreWork(
            PairScorer.load(
                model,
                reverse=reverse,
                languages=None if languages is None else LanguagePair.from_content(languages, "it"),
                max_tokens=settings["max_tokens"],
                batch_tokens=settings["batch_tokens"],
            )
        )
    finally:  # after loading, so that nobody can replace a model between check and loading
        check_same_model(model, settings["model_digests"])
        if reverse is not None:
            check_same_model(reverse, settings["reverse_digests"])
