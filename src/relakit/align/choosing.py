"""Choose where to read links in models on disk, by what is at hand."""

from collections.abc import Sequence
from pathlib import Path

from relakit.align.aligner import Aligner, check_opposite, exchanged
from relakit.align.choice import AlignmentChoice, ChosenOn
from relakit.align.select import (
    Alignable,
    select_by_agreement,
    select_by_gold,
    select_by_same_words,
)
from relakit.analysis.pairs import AnalysisPair


def choose(
    model: Path,
    reverse: Path | None,
    pairs: Sequence[AnalysisPair],
    files: Sequence[str],
    *,
    max_tokens: int | None = None,
) -> tuple[AlignmentChoice, AlignmentChoice | None]:
    """The best heads of a model, and those of one of the other direction if there is one.

    By gold links if the pairs have them, else by agreement of two models, else by words that are
    the same on both sides.

    Args:
        model: its directory.
        reverse: that of the model of the other direction.
        pairs: those without words on a side, and those that are too long, do not count.
        files: where they are from, for the record.
        max_tokens: as for `Aligner`.
    """
    forward = _load(model, max_tokens)
    if reverse is None:
        usable = [pair for pair in pairs if _is_usable(forward, pair)]
        return _by_itself(forward, usable, files), None
    backward = _load(reverse, max_tokens)
    check_opposite(forward, backward)
    usable = [p for p in pairs if _is_usable(forward, p) and _is_usable(backward, exchanged(p))]
    if any(pair.gold is not None for pair in usable):
        return (
            _by_itself(forward, usable, files),
            _by_itself(backward, [exchanged(pair) for pair in usable], files),
        )
    alignable = Alignable(forward.model, forward.tokenizers, usable, tuple(files))
    return select_by_agreement(alignable, backward.model, backward.tokenizers)


def _by_itself(
    aligner: Aligner, pairs: Sequence[AnalysisPair], files: Sequence[str]
) -> AlignmentChoice:
    alignable = Alignable(aligner.model, aligner.tokenizers, pairs, tuple(files))
    if any(pair.gold is not None for pair in pairs):
        return select_by_gold(alignable)
    return select_by_same_words(alignable)


def _load(folder: Path, max_tokens: int | None) -> Aligner:
    # Which pairs fit does not depend on where links are read.
    anywhere = AlignmentChoice(layer=0, heads=(0,), reading="normal", chosen=ChosenOn(by="given"))
    return Aligner.load(folder, choice=anywhere, use_layer=False, max_tokens=max_tokens)


def _is_usable(aligner: Aligner, pair: AnalysisPair) -> bool:
    return bool(pair.source_words and pair.target_words) and aligner.fits(pair)
