"""What `relakit translate` prints for a line, and what it says about lost markup."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import typer

from relakit.known_names import known_name

if TYPE_CHECKING:
    from relakit.align.linked_translator import LinkedHypothesis
    from relakit.align.settings import Level
    from relakit.data.tokenizer_pair import Tokenizers

OutputFormat: TypeAlias = Literal["text", "json"]
OUTPUT_FORMATS: Final[tuple[OutputFormat, ...]] = get_args(OutputFormat)
OUTPUT_FORMAT: Final[OutputFormat] = "text"
SCORE_DIGITS: Final = 4
NAMED: Final = 20
"""How many lost pieces of one line are named; the others are counted."""


def known_format(name: str) -> OutputFormat:
    """The name, if there is such a format."""
    return known_name("--format", name, OUTPUT_FORMATS)


@dataclass(frozen=True)
class Printed:
    """What is printed for each translation."""

    format: OutputFormat
    as_nbest: bool
    """Print the line's number and the score, too"""
    scores: bool
    level: "Level | None"
    """What the links connect, if they are printed"""
    keep_markup: bool

    def lines(
        self, index: int, hypotheses: "Sequence[LinkedHypothesis]", tokenizers: "Tokenizers"
    ) -> Iterator[str]:
        """What is printed for one line of the input; ``index`` is its number, from 0."""
        for one in hypotheses:
            if self.format == "json":
                content = self._content(index, one, tokenizers)
                yield json.dumps(content, ensure_ascii=False) + "\n"
            else:
                yield self._text(index, one) + "\n"

    def _text(self, index: int, one: "LinkedHypothesis") -> str:
        score = f"{one.hypothesis.score:.{SCORE_DIGITS}f}"
        text = one.text
        if self.as_nbest:
            text = f"{index} ||| {text} ||| {score}"
        elif self.scores:
            text = f"{score}\t{text}"
        if one.alignment is None:
            return text
        from relakit.align.formats import NO_WORDS, format_line

        return f"{text} ||| {format_line(one.alignment, NO_WORDS, 'pharaoh')}"

    def _content(
        self, index: int, one: "LinkedHypothesis", tokenizers: "Tokenizers"
    ) -> dict[str, Any]:
        score = round(one.hypothesis.score, SCORE_DIGITS)
        content: dict[str, Any] = {"index": index, "text": one.text, "score": score}
        if self.keep_markup:
            content["lost"] = list(one.lost)
            content["reordered"] = list(one.reordered)
            # The texts that links refer to: they know nothing of markup.
            content |= {"plain_source": one.source, "plain_text": one.hypothesis.text}
        if one.alignment is not None:
            from relakit.align.formats import json_content, json_tokens

            content["alignment"] = json_content(one.alignment)
            if self.level == "token":
                source = tokenizers.source.spelled(tokenizers.source.encode(one.source).ids)
                target = tokenizers.target.spelled(one.hypothesis.tokens)
                content |= json_tokens((source, target))
        return content


@dataclass
class LinkReport:
    """Says on stderr what markup was lost, and which lines have no links."""

    name: Path | str
    """The name of the input"""
    max_tokens: int | None
    """Most tokens for which links are computed, if they are asked for"""
    _lost: int = field(default=0, init=False)
    _pieces: int = field(default=0, init=False)

    def add(self, index: int, hypotheses: "Sequence[LinkedHypothesis]") -> None:
        """Report on the translations of a line."""
        for number, one in enumerate(hypotheses, start=1):
            self._pieces += len(one.pieces)
            self._lost += len(one.lost)
            which = "" if number == 1 else f", translation {number:,}"
            where = f"{self.name}, line {index + 1:,}{which}"
            if one.lost:
                more = len(one.lost) - NAMED
                others = f" and {more:,} more" if more > 0 else ""
                _tell(f"{where}: lost {' '.join(one.lost[:NAMED])}{others}")
            if one.reordered:
                _tell(
                    f"{where}: {' '.join(one.reordered[:NAMED])} are in another order than in the "
                    "source, and get each other's values; number or name them, such as %1$s or {0}"
                )
            if one.has_no_alignment:
                _tell(
                    f"{where}: no links, because it or its translation has more than "
                    f"{self.max_tokens:,} tokens"
                )

    def end(self) -> None:
        """Say how much was lost in total."""
        if self._lost:
            _tell(
                f"{self.name}: lost {self._lost:,} of {self._pieces:,} tags, placeholders and "
                "entities"
            )


def _tell(message: str) -> None:
    typer.echo(f"relakit: {message}", err=True)
