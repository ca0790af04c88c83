"""`LinkedTranslator`: translations with links to their source, and with its markup."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from relakit.align.aligner import Aligner
from relakit.align.alignment import Alignment
from relakit.align.hypotheses import align_hypotheses
from relakit.align.markup_placing import Sentence
from relakit.align.markup_writing import MarkedTranslation, put_back
from relakit.align.source_lines import SourceLine, source_lines
from relakit.decode.settings import WINDOW, SearchOptions
from relakit.decode.translator import Hypothesis, Translator, check_texts

if TYPE_CHECKING:
    from typing_extensions import Unpack  # comes with pydantic; part of Python since 3.11


@dataclass(frozen=True)
class LinkedHypothesis:
    """A translation, with whatever else was asked for."""

    hypothesis: Hypothesis
    source: str
    """The text that was translated; without markup if markup is kept"""
    text: str
    """The translation; with the markup of the source if markup is kept"""
    alignment: Alignment | None = None
    """Between the words of ``source`` and ``hypothesis.text``, or their tokens"""
    lost: tuple[str, ...] = ()
    """The markup that is not in ``text``"""
    reordered: tuple[str, ...] = ()
    """Placeholders that take their values by order, if their order is not that of the source: see
    `MarkedTranslation`"""
    pieces: tuple[str, ...] = ()
    """All markup of the source"""

    @property
    def has_no_alignment(self) -> bool:
        """Whether links were asked for, but there were too many tokens to compute them."""
        has_words = bool(self.source.strip() and self.hypothesis.text)
        return has_words and self.alignment is not None and self.alignment.null_rate is None


class LinkedTranslator:
    """Translates, aligns the translations, and carries markup over."""

    def __init__(
        self,
        translator: Translator,
        *,
        links: Aligner | None = None,
        markup: Aligner | None = None,
    ) -> None:
        """Combine a translator with aligners; `aligner_of` makes an aligner.

        Args:
            translator: what translates.
            links: gives the alignment of each translation, between words separated by spaces or
                between tokens, depending on the aligner's level.
            markup: if given, markup is taken out of each line before it is translated, and put into
                the translation. Where it goes depends on links between words, so the aligner's
                level must be ``"word"``.
        """
        if markup is not None and markup.level != "word":
            raise ValueError(f"markup needs links between words, got an aligner of {markup.level}s")
        self.translator = translator
        self._links = links
        self._markup = markup

    @property
    def max_tokens(self) -> int | None:
        """Most tokens of a source or translation that gets links; None if links are not wanted."""
        return None if self._links is None else self._links.max_tokens

    def translate(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        **options: "Unpack[SearchOptions]",
    ) -> list[list[LinkedHypothesis]]:
        """The ``nbest`` translations of each text, as `Translator.translate_nbest` gives them.

        Args:
            texts: one sentence each; with markup if markup is kept.
            prefixes: what each translation begins with, without markup.
            **options: as for `Translator.translate_nbest`.
        """
        check_texts(texts, prefixes)
        lines = source_lines(texts, keep_markup=self._markup is not None)
        return list(self.stream(lines, prefixes=prefixes, **options))

    def stream(
        self,
        lines: Iterable[SourceLine],
        *,
        window: int = WINDOW,
        prefixes: Iterable[str] | None = None,
        **options: "Unpack[SearchOptions]",
    ) -> Iterator[list[LinkedHypothesis]]:
        """Translate lines as they come, in order; see `Translator.translate_stream`.

        If a line is not translated whole, its markup is lost.
        """
        waiting: deque[SourceLine] = deque()

        def texts() -> Iterator[str]:
            for line in lines:
                waiting.append(line)
                yield line.text

        found = self.translator.translate_stream(
            texts(), window=window, prefixes=prefixes, **options
        )
        error = None
        while error is None:
            hypotheses, error = _up_to(window, found)
            if not hypotheses:
                break
            yield from self._finish([waiting.popleft() for _ in hypotheses], hypotheses)
        if error is not None:  # not before: nothing that was translated may be lost
            raise error

    def _finish(
        self, lines: Sequence[SourceLine], hypotheses: Sequence[list[Hypothesis]]
    ) -> Iterator[list[LinkedHypothesis]]:
        alignments: Sequence[Sequence[Alignment | None]]
        if self._links is None:
            alignments = [[None] * len(several) for several in hypotheses]
        else:
            sources = [line.text for line in lines]
            alignments = align_hypotheses(self._links, sources, hypotheses)
        marked = self._with_markup(lines, hypotheses)
        for line, several, *more in zip(lines, hypotheses, alignments, marked, strict=True):
            yield [
                LinkedHypothesis(
                    hypothesis,
                    line.text,
                    done.text,
                    alignment,
                    done.lost,
                    done.reordered,
                    line.marked.pieces,
                )
                for hypothesis, alignment, done in zip(several, *more, strict=True)
            ]

    def _with_markup(
        self, lines: Sequence[SourceLine], hypotheses: Sequence[Sequence[Hypothesis]]
    ) -> list[list[MarkedTranslation]]:
        found = [
            [
                MarkedTranslation("".join(line.marked.as_written(one.text)), line.marked.pieces)
                for one in several
            ]
            for line, several in zip(lines, hypotheses, strict=True)
        ]
        numbers = [n for n, line in enumerate(lines) if line.marked.pieces and line.is_whole]
        if self._markup is None:
            return found
        alignments = align_hypotheses(
            self._markup,
            [lines[number].text for number in numbers],
            [hypotheses[number] for number in numbers],
            words="punctuation",
        )
        for number, several in zip(numbers, alignments, strict=True):
            marked = lines[number].marked
            source = Sentence.split(marked.text)
            found[number] = [
                put_back(marked, source, Sentence.split(one.text), links.scores)
                for one, links in zip(hypotheses[number], several, strict=True)
            ]
        return found


def _up_to(
    count: int, found: Iterator[list[Hypothesis]]
) -> tuple[list[list[Hypothesis]], Exception | None]:
    """The next few, and the error if one comes before all of them."""
    taken: list[list[Hypothesis]] = []
    try:
        taken.extend(islice(found, count))
    except Exception as error:
        return taken, error
    return taken, None
