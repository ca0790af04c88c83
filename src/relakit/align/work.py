"""Aligning as work that any process can do: see `relakit.shards`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from relakit.align.choice import AlignmentChoice
from relakit.align.formats import NO_WORDS, Words, format_line
from relakit.align.layer_files import read_layer_about
from relakit.align.pair_text import pair_of_texts
from relakit.align.settings import (
    ALONE,
    SYMMETRIZATION,
    AlignmentFormat,
    Level,
    Symmetrization,
    WordRule,
)
from relakit.analysis.settings import BATCH_TOKENS
from relakit.data.parallel_files import NumberedPair
from relakit.model.description import check_same_model
from relakit.shards.work import Advance, ShardResult, WorkDescription
from relakit.threads import limited_threads

if TYPE_CHECKING:
    from relakit.align.alignment import Alignment
    from relakit.analysis.pairs import AnalysisPair

TOO_LONG: Final = "too long"
"""What pairs are counted under that are too long to get links."""


class AlignSettings(BaseModel):
    """Everything that links depend on, besides the pairs and the models' weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Path
    choice: AlignmentChoice | None = None
    """The heads to read; None: read the model's alignment layer"""
    reverse: Path | None = None
    """The model of the other direction"""
    reverse_choice: AlignmentChoice | None = None
    """The same for ``reverse``"""
    symmetrization: Symmetrization = SYMMETRIZATION
    format: AlignmentFormat = "pharaoh"
    level: Level = "word"
    words: WordRule = "spaces"
    max_tokens: int | None = None

    def check_layers(self) -> None:
        """Raise OSError or ValueError if a layer that would be read is broken."""
        for folder, choice in ((self.model, self.choice), (self.reverse, self.reverse_choice)):
            if folder is not None and choice is None:
                read_layer_about(folder)

    @property
    def models(self) -> dict[str, Path]:
        """The model directories, by the names of their fields."""
        folders = {"model": self.model, "reverse": self.reverse}
        return {name: folder for name, folder in folders.items() if folder is not None}

    def description(self, digests: Mapping[str, Mapping[str, str]]) -> WorkDescription:
        """Describe the work, with absolute paths, as it may be done elsewhere.

        ``digests``: those of each of `models`, as `model_digests` gives them.
        """
        folders = {name: folder.absolute() for name, folder in self.models.items()}
        settings = self.model_copy(update=folders).model_dump(mode="json", exclude_none=True)
        described = {"settings": settings, "digests": digests}
        return WorkDescription("align", "relakit.align.work:build", described)


def build(settings: Mapping[str, Any]) -> "AlignWork":
    """The work that `AlignSettings.description` describes.

    Raises:
        OSError, ValueError: a model is broken, or not the one that was described.
    """
    read = AlignSettings.model_validate(settings["settings"])
    try:
        return AlignWork(read)
    finally:  # after loading, so that nobody can replace a model between check and loading
        for name, folder in read.models.items():
            check_same_model(folder, settings["digests"][name])


class AlignWork:
    """Turns pairs into lines of links, one for each pair."""

    def __init__(self, settings: AlignSettings) -> None:
        # Torch takes a while to load.
        from relakit.align.aligner import Aligner, TwoWayAligner

        self._settings = settings

        def load(folder: Path, choice: AlignmentChoice | None) -> Aligner:
            return Aligner.load(
                folder,
                choice=choice,
                use_layer=choice is None,
                level=settings.level,
                max_tokens=settings.max_tokens,
            )

        forward = load(settings.model, settings.choice)
        self._tokenizers = forward.tokenizers
        self._aligner: Aligner | TwoWayAligner = forward
        aligners = [forward]
        if settings.reverse is not None:
            backward = load(settings.reverse, settings.reverse_choice)
            self._aligner = TwoWayAligner(forward, backward, settings.symmetrization)
            aligners.append(backward)
        with limited_threads(1):
            self._is_batched = all(aligner.is_same_alone() for aligner in aligners)
        self._batch_tokens = BATCH_TOKENS if self._is_batched else 1

    def run(self, pairs: Sequence[NumberedPair], advance: Advance) -> ShardResult:
        """Make a line of links for each pair."""
        read = [pair_of_texts(*pair.texts, words=self._settings.words) for pair in pairs]
        lines = []
        long = 0
        with limited_threads(1):  # with several threads, sums depend on how many there are
            aligned = self._aligner.align(read, batch_tokens=self._batch_tokens)
            for pair, alignment in zip(read, aligned, strict=True):
                long += pair.has_words and alignment.null_rate is None
                lines.append(self._line(pair, alignment))
                advance(1)
        content = "".join(f"{line}\n" for line in lines).encode()
        counts = {TOO_LONG: long, ALONE: 0 if self._is_batched else len(pairs)}
        return ShardResult(content, {name: count for name, count in counts.items() if count})

    def _line(self, pair: "AnalysisPair", alignment: "Alignment") -> str:
        format = self._settings.format
        if format == "text":
            return format_line(alignment, self._words(pair), format)
        tokens = None
        if format == "json" and self._settings.level == "token":
            source, target = self._tokenizers.source, self._tokenizers.target
            tokens = (
                source.spelled(source.encode(pair.source).ids),
                target.spelled(target.encode(pair.target).ids),
            )
        return format_line(alignment, NO_WORDS, format, tokens=tokens)

    def _words(self, pair: "AnalysisPair") -> Words:
        spans = pair.source_words, pair.target_words
        if self._settings.level == "token":
            source, target = self._tokenizers.source, self._tokenizers.target
            spans = tuple(source.encode(pair.source).spans), tuple(target.encode(pair.target).spans)
        return (
            [pair.source[start:end] for start, end in spans[0]],
            [pair.target[start:end] for start, end in spans[1]],
        )
