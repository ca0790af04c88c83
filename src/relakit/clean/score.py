"""Scores of all pairs of a corpus, in a file. No torch here: whatever computes loads it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relakit.align.choice import read_choice
from relakit.align.directions import check_opposite_languages
from relakit.align.layer_files import has_layer, read_layer_about
from relakit.align.settings import ALONE, CHOICE_FILE, COMPUTED_ALONE, LAYER_FILE
from relakit.amounts import number_with_noun
from relakit.analysis.attention_weights import SUM_TO_ONE
from relakit.analysis.long_pairs import check_pair_memory, longest_pair
from relakit.analysis.pair_scores import SCORED_KINDS
from relakit.analysis.settings import BATCH_TOKENS
from relakit.clean.columns import header_line
from relakit.clean.counted import BLANK, CROPPED
from relakit.clean.parquet import ENDING, check_parquet, write_parquet
from relakit.data.languages import LANGUAGES_FILE, LanguagePair
from relakit.data.parallel_files import ParallelFiles
from relakit.model.description import ModelDescription, model_digests, read_description
from relakit.shards.cutting import SHARD_PAIRS
from relakit.shards.run import Job, Writer
from relakit.shards.work import WorkDescription

BUILDER: Final = "relakit.clean.score_work:build"
SCORED_WITH: Final = (
    "MODEL",
    "--reverse",
    "--max-tokens",
    "the model of languages",
    "the way of scoring",
)
"""What scores depend on, besides the pairs."""
SCORING: Final = 3
"""Changed whenever a column gets a different meaning."""


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """What pairs are scored with."""

    model: Path
    """A model directory, from source to target."""
    reverse: Path | None = None
    """A model directory from target to source, for dual cross-entropy, and for unsupported words
    if both models have an alignment layer."""
    languages: LanguagePair | None = None
    """The languages of source and target; None: what the model directory says."""
    max_tokens: int | None = None
    """Most tokens on a side; only the beginning of a longer one is scored. None: as many as fit
    into 256 MiB of attention weights."""
    batch_tokens: int = BATCH_TOKENS
    """How many padded tokens are computed at once; scores do not depend on it."""


class ScoreModels:
    """What the model directories say about how pairs can be scored.

    Raises:
        OSError, ValueError: a model directory or a setting is broken.
    """

    def __init__(self, settings: ScoreSettings) -> None:
        self._settings = settings
        self._forward = read_description(settings.model)
        self._forward.check_tokenizers()
        self._backward = None
        if settings.reverse is not None:
            self._backward = read_description(settings.reverse)
            self._backward.check_tokenizers()
            _check_directions(self._forward, self._backward)
            _has_layer(settings.reverse)  # raises if it is damaged
        self.has_links: Final = self._has_links(settings.model)
        """Whether there is an alignment layer, or a choice of which heads align."""
        self.languages: Final = settings.languages or self._forward.languages()
        self.max_tokens: Final = self._limit(settings.max_tokens)
        if settings.batch_tokens < 1:
            raise ValueError(f"--batch-tokens must be at least 1, got {settings.batch_tokens}")

    @property
    def has_null_attention(self) -> bool:
        """Whether cross-attention may be zero, and need not sum to 1."""
        return self._forward.config.attention_spec("cross").activation not in SUM_TO_ONE

    @property
    def facts(self) -> Mapping[str, Any]:
        """What scores depend on, by the names in `SCORED_WITH`."""
        model, reverse = self._settings.model, self._settings.reverse
        content = None if self.languages is None else self.languages.content
        values = (
            model_digests(model),
            {} if reverse is None else model_digests(reverse),
            self.max_tokens,
            None if content is None else _digest_of(content),
            SCORING,
        )
        return dict(zip(SCORED_WITH, values, strict=True))

    def notes(self) -> Iterator[str]:
        """What users should know about columns that say nothing."""
        folder = self._forward.folder
        if not self.has_null_attention:
            name = self._forward.config.attention("cross")
            yield (
                f"{folder} has {name} cross-attention, whose weights always sum to 1: null rates "
                "are 0 and attention mass is 1, by definition"
            )
        if not self.has_links:
            yield (
                f"{folder} has neither {LAYER_FILE} nor {CHOICE_FILE}: alignment_null_rate is "
                "empty, and words are linked that have any weight between them in any head; "
                f"relakit align {folder} --select chooses heads"
            )
        if self.languages is None:
            yield (
                f"{folder} has no {LANGUAGES_FILE}: source_language and target_language are empty; "
                "--languages-from SOURCE TARGET learns them from text"
            )

    def _has_links(self, folder: Path) -> bool:
        has_choice = read_choice(folder, self._forward.config) is not None
        return _has_layer(folder) or has_choice

    def _limit(self, max_tokens: int | None) -> int:
        described = [one for one in (self._forward, self._backward) if one is not None]
        if max_tokens is None:
            return min(longest_pair(one.config, SCORED_KINDS) for one in described)
        if max_tokens < 1:
            raise ValueError(f"--max-tokens must be at least 1, got {max_tokens}")
        for one in described:
            check_pair_memory(str(one.folder), one.config, max_tokens, SCORED_KINDS)
        return max_tokens


class ScoreJob:
    """A corpus to score. Problems with models and settings are found here, before any work.

    Raises:
        OSError, ValueError: a model directory or a setting is broken.
    """

    def __init__(
        self, files: ParallelFiles, settings: ScoreSettings, *, shard_pairs: int = SHARD_PAIRS
    ) -> None:
        """``shard_pairs``: pairs done at a time; finished shards are kept on interruption."""
        self._models = ScoreModels(settings)
        self.max_tokens: Final = self._models.max_tokens
        self.facts: Final = self._models.facts
        languages = self._models.languages
        described = {
            "model": str(settings.model.absolute()),
            "reverse": None if settings.reverse is None else str(settings.reverse.absolute()),
            "languages": None if languages is None else languages.content,
            "max_tokens": self.max_tokens,
            "batch_tokens": settings.batch_tokens,
            "model_digests": self.facts["MODEL"],
            "reverse_digests": self.facts["--reverse"],
        }
        self.job: Final = Job(
            WorkDescription("score", BUILDER, described),
            files,
            header_line().encode(),
            self.facts,
            shard_pairs,
        )

    @staticmethod
    def writer(output: Path | None) -> Writer | None:
        """What writes this output: a tab-separated table, or Parquet if it ends in .parquet.

        Raises:
            ValueError: Parquet cannot be written here.
        """
        if output is None or not output.name.endswith(ENDING):
            return None
        check_parquet(output)
        return write_parquet

    def notes(self) -> Iterator[str]:
        """What users should know about columns that say nothing."""
        return self._models.notes()

    def counted(self, counts: Mapping[str, int]) -> Iterator[str]:
        """What users should know about pairs, from what was counted while they were scored."""
        if counts.get(BLANK):
            pairs = number_with_noun(counts[BLANK], "pair")
            yield f"{pairs} with a blank side: nothing but the line is in their rows"
        if counts.get(CROPPED):
            pairs = number_with_noun(counts[CROPPED], "pair")
            yield (
                f"{pairs} with more than {number_with_noun(self.max_tokens, 'token')} on a side: "
                "scored by the beginning (--max-tokens)"
            )
        if counts.get(ALONE):
            yield COMPUTED_ALONE


def _has_layer(folder: Path) -> bool:
    """Whether there is an alignment layer; ValueError if its description is damaged."""
    if not has_layer(folder):
        return False
    read_layer_about(folder)
    return True


def _check_directions(forward: ModelDescription, backward: ModelDescription) -> None:
    """Raise ValueError if the second model is known not to translate in the other direction."""
    try:
        check_opposite_languages(forward.about, backward.about)
    except ValueError as error:
        raise ValueError(f"--reverse {backward.folder}: {error}") from None


def _digest_of(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
