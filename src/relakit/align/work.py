"""Aligning as work that any process can do: see `relakit.shards`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from relakit.align.choice import AlignmentChoice
from relakit.align.formats import format_line
from relakit.align.layer_files import has_layer, read_layer_about
from relakit.align.pair_text import pair_of_texts
from relakit.align.settings import (
    SYMMETRIZATION,
    AlignmentFormat,
    Level,
    Symmetrization,
    WordRule,
)
from relakit.analysis.word_map import Span
from relakit.data.parallel_files import NumberedPair
from relakit.shards.work import Advance, ShardResult, WorkDescription

if TYPE_CHECKING:
    from relakit.analysis.pairs import AnalysisPair
    from relakit.data.tokenizer import Tokenizer

TOO_LONG: Final = "too long"
"""What pairs are counted under that have no links for their length."""


class AlignSettings(BaseModel):
    """Everything that links depend on, besides the pairs and the models' weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Path
    choice: AlignmentChoice
    reverse: Path | None = None
    """The model of the other direction"""
    reverse_choice: AlignmentChoice | None = None
    symmetrization: Symmetrization = SYMMETRIZATION
    format: AlignmentFormat = "pharaoh"
    level: Level = "word"
    words: WordRule = "spaces"
    max_tokens: int | None = None

    @property
    def use_layer(self) -> bool:
        """Whether an alignment layer is read where there is one."""
        return self.choice.chosen.by != "given"  # else the user asks for these heads

    def check_layers(self) -> None:
        """Raise OSError or ValueError if a layer that would be read is broken."""
        for folder in (self.model, self.reverse):
            if folder is not None and self.use_layer and has_layer(folder):
                read_layer_about(folder)

    def description(self) -> WorkDescription:
        """With absolute paths: who does the work may do it elsewhere."""
        folders = {"model": self.model.absolute()}
        if self.reverse is not None:
            folders["reverse"] = self.reverse.absolute()
        settings = self.model_copy(update=folders).model_dump(mode="json", exclude_none=True)
        return WorkDescription("align", "relakit.align.work:build", settings)


def build(settings: Mapping[str, Any]) -> "AlignWork":
    """The work that `AlignSettings.description` describes."""
    return AlignWork(AlignSettings.model_validate(dict(settings)))


class AlignWork:
    """Turns pairs into lines of links, one for each pair."""

    def __init__(self, settings: AlignSettings) -> None:
        from relakit.align.aligner import Aligner, TwoWayAligner  # torch takes a while to load

        self._settings = settings
        forward = Aligner.load(
            settings.model,
            choice=settings.choice,
            use_layer=settings.use_layer,
            level=settings.level,
            max_tokens=settings.max_tokens,
        )
        self._tokenizers = forward.tokenizers
        self._aligner: Aligner | TwoWayAligner = forward
        if settings.reverse is not None:
            backward = Aligner.load(
                settings.reverse,
                choice=settings.reverse_choice,
                use_layer=settings.use_layer,
                level=settings.level,
                max_tokens=settings.max_tokens,
            )
            self._aligner = TwoWayAligner(forward, backward, settings.symmetrization)

    def run(self, pairs: Sequence[NumberedPair], advance: Advance) -> ShardResult:
        """A line for each pair."""

        read = [pair_of_texts(*pair.texts, words=self._settings.words) for pair in pairs]
        lines = []
        long = 0
        for pair, alignment in zip(read, self._aligner.align(read), strict=True):
            has_words = bool(pair.source_words and pair.target_words)
            long += has_words and alignment.null_rate is None
            lines.append(format_line(alignment, self._words(pair), self._settings.format))
            advance(1)
        content = "".join(f"{line}\n" for line in lines).encode()
        return ShardResult(content, {TOO_LONG: long} if long else {})

    def _words(self, pair: "AnalysisPair") -> tuple[list[str], list[str]]:
        def texts(text: str, words: Sequence[Span], tokenizer: "Tokenizer") -> list[str]:
            spans = tokenizer.encode(text).spans if self._settings.level == "token" else words
            return [text[start:end] for start, end in spans]

        return (
            texts(pair.source, pair.source_words, self._tokenizers.source),
            texts(pair.target, pair.target_words, self._tokenizers.target),
        )
