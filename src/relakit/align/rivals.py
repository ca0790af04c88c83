"""Whether a new alignment layer is worth keeping: what gave links before takes the same exam."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice
from relakit.align.choosing import LoadedModel
from relakit.align.layer import load_layer
from relakit.align.layer_files import LayerScores, has_layer
from relakit.align.train_layer import SCORE_DIGITS, Exam
from relakit.analysis.aer import AlignmentScore

WORST_RATE: Final = 0.5
"""The highest error rate allowed for a layer that cannot be compared with anything."""


@dataclass(frozen=True)
class Rival:
    """What gave a model's links before."""

    what: Literal["heads", "layer"]
    aer: float
    """Alignment error rate in the exam of the new layer"""


def find_rivals(loaded: LoadedModel, heads: AlignmentChoice | None, exam: Exam) -> Iterator[Rival]:
    """Examine the layer that a model already has, and its heads.

    Args:
        loaded: the model.
        heads: None: there are none, or the links in the exam are their own.
        exam: the exam of the new layer.
    """
    if has_layer(loaded.folder):
        try:
            layer, _ = load_layer(loaded.folder, loaded.model)
        except (OSError, ValueError):
            pass  # made for other weights, or damaged: it gives no links
        else:
            aligner = Aligner(loaded.model, loaded.tokenizers, layer=layer, name=str(loaded.folder))
            yield Rival("layer", _error_rate(aligner, exam))
    if heads is not None:
        aligner = Aligner(loaded.model, loaded.tokenizers, heads, name=str(loaded.folder))
        yield Rival("heads", _error_rate(aligner, exam))


def _error_rate(aligner: Aligner, exam: Exam) -> float:
    total = AlignmentScore(0, 0, 0, 0)
    words = [lesson.words for lesson in exam.lessons]
    tokens = (lesson.tokens for lesson in exam.lessons)
    for index, found in aligner.align_tokens(tokens, words):
        total += exam.lessons[index].score(found.links)
    return round(total.aer, SCORE_DIGITS)


def why_not_kept(scores: LayerScores, rivals: Sequence[Rival]) -> str | None:
    """The reason not to keep a layer with these scores; None if there is none."""
    exam = f"in its exam on {scores.pairs:,} pairs"
    if scores.precision is None or scores.aer is None:
        return f"it finds no link {exam}"
    best = min(rivals, key=lambda rival: rival.aer, default=None)
    if best is None and scores.aer > WORST_RATE:
        return f"{exam} its alignment error rate is {scores.aer:.3f}, above {WORST_RATE}"
    if best is not None and scores.aer > best.aer:
        return (
            f"{exam} its alignment error rate is {scores.aer:.3f}, that of the {best.what} so "
            f"far {best.aer:.3f}"
        )
    return None
