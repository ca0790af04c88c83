"""`LinkedTranslator`: translations with links to their source, and with its markup."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from relakit.align.aligner import Aligner
from relakit.align.alignment import Alignment
from relakit.align.hypotheses import align_hypotheses
from relakit.align.markup import MarkedText, find_markup
from relakit.align.markup_placing import Sentence
from relakit.align.markup_writing import MarkedTranslation, put_back
from relakit.decode.settings import WINDOW, SearchOptions
from relakit.decode.translator import Hypothesis, Translator

if TYPE_CHECKING:
    from typing_extensions import Unpack  # pydantic brings it, and Python from 3.11 on has it


@dataclass(frozen=True)
class LinkedHypothesis:
    """A translation, with what was asked for besides."""

    hypothesis: Hypothesis
    source: str
    """What was translated: without markup if that is kept"""
    text: str
    """The translation; with the markup of the source if that is kept"""
    alignment: Alignment | None = None
    """Between the words of ``source`` and ``hypothesis.text``, or their tokens"""
    lost: tuple[str, ...] = ()
    """The markup that is not in ``text``"""
    pieces: tuple[str, ...] = ()
    """All markup of the source"""


@dataclass(frozen=True)
class _Line:
    marked: MarkedText
    fitted: str
    """What is translated of its text"""

    @property
    def is_whole(self) -> bool:
        return self.fitted == self.marked.text


class LinkedTranslator:
    """Translates, aligns what it wrote, and carries markup over."""

    def __init__(
        self,
        translator: Translator,
        *,
        links: Aligner | None = None,
        markup: Aligner | None = None,
    ) -> None:
        """Put a translator and aligners together; `aligner_of` makes one.

        Args:
            translator: what translates.
            links: give the alignment of each translation, between words that stand between spaces,
                or between tokens, as the aligner has it.
            markup: take markup out of each line before it is translated, and put it into the
                translation. Where it goes depends on links between words: the aligner's level must
                be ``"word"``.
        """
        if markup is not None and markup.level != "word":
            raise ValueError(f"markup needs links between words, got an aligner of {markup.level}s")
        self.translator = translator
        self._links = links
        self._markup = markup

    def stream(
        self,
        lines: Iterable[str],
        *,
        fit: Callable[[Iterator[str]], Iterator[str]] = iter,
        window: int = WINDOW,
        prefixes: Iterable[str] | None = None,
        **options: "Unpack[SearchOptions]",
    ) -> Iterator[list[LinkedHypothesis]]:
        """Translate lines as they come, in their order.

        Args:
            lines: one sentence each.
            fit: what is done to lines that are too long, such as `fit_lines`, when markup is taken
                out; it gives a line for a line. The markup of a line that is cut off is lost.
            window: as for `Translator.translate_stream`.
            prefixes: one for each line, without markup.
            **options: as for `Translator.translate_nbest`.
        """
        waiting: deque[_Line] = deque()
        found = self.translator.translate_stream(
            self._texts(lines, fit, waiting), window=window, prefixes=prefixes, **options
        )
        while hypotheses := list(islice(found, window)):
            yield from self._finish([waiting.popleft() for _ in hypotheses], hypotheses)

    def _texts(
        self,
        lines: Iterable[str],
        fit: Callable[[Iterator[str]], Iterator[str]],
        waiting: deque[_Line],
    ) -> Iterator[str]:
        """What is translated; ``waiting`` gets the lines that were read."""
        read: deque[MarkedText] = deque()

        def without_markup() -> Iterator[str]:
            for line in lines:
                read.append(find_markup(line) if self._markup else MarkedText(line, line))
                yield read[-1].text

        for text in fit(without_markup()):
            waiting.append(_Line(read.popleft(), text))
            yield text

    def _finish(
        self, lines: Sequence[_Line], hypotheses: Sequence[list[Hypothesis]]
    ) -> Iterator[list[LinkedHypothesis]]:
        alignments: Sequence[Sequence[Alignment | None]]
        if self._links is None:
            alignments = [[None] * len(several) for several in hypotheses]
        else:
            sources = [line.fitted for line in lines]
            alignments = align_hypotheses(self._links, sources, hypotheses)
        marked = self._with_markup(lines, hypotheses)
        for line, several, *more in zip(lines, hypotheses, alignments, marked, strict=True):
            yield [
                LinkedHypothesis(
                    hypothesis, line.fitted, done.text, alignment, done.lost, line.marked.pieces
                )
                for hypothesis, alignment, done in zip(several, *more, strict=True)
            ]

    def _with_markup(
        self, lines: Sequence[_Line], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[MarkedTranslation]]:
        found = [
            [MarkedTranslation(hypothesis.text, line.marked.pieces) for hypothesis in several]
            for line, several in zip(lines, hypotheses, strict=True)
        ]
        numbers = [n for n, line in enumerate(lines) if line.marked.pieces and line.is_whole]
        if self._markup is None:
            return found
        alignments = align_hypotheses(
            self._markup,
            [lines[number].fitted for number in numbers],
            [hypotheses[number] for number in numbers],
            tokenized=False,
        )
        for number, several in zip(numbers, alignments, strict=True):
            marked = lines[number].marked
            source = Sentence.split(marked.text)
            found[number] = [
                put_back(marked, source, Sentence.split(one.text), links.scores)
                for one, links in zip(hypotheses[number], several, strict=True)
            ]
        return found
