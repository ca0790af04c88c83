"""Choose where to read links in models, by whatever data is at hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from relakit.align.aligner import fits_into
from relakit.align.choice import AlignmentChoice
from relakit.align.directions import check_opposite_languages
from relakit.align.select import (
    Alignable,
    select_by_agreement,
    select_by_gold,
    select_by_same_words,
)
from relakit.analysis.long_pairs import longest_pair
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.long_lines import default_max_tokens
from relakit.decode.settings import DEVICE, known_device
from relakit.files.reading import file_digest
from relakit.model import ModelAbout, Transformer
from relakit.model.description import WEIGHTS_FILE, read_description
from relakit.model.directory import build_model
from relakit.nn.arguments import check_usable


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, with everything that belongs to it."""

    folder: Path
    model: Transformer
    tokenizers: Tokenizers
    about: ModelAbout
    weights_sha256: str
    """Digest of the weights that were read"""

    @classmethod
    def load(cls, folder: Path, device: str = DEVICE) -> "LoadedModel":
        """Read a model directory.

        Raises:
            OSError, ValueError: it is broken, or the device cannot be used.
        """
        known_device(device)
        check_usable(torch.device(device))
        described = read_description(folder)
        described.check_tokenizers()
        digest = file_digest(folder / WEIGHTS_FILE)
        model, about = build_model(described, device=device)
        return cls(folder, model, described.tokenizers, about, digest)

    def check_unchanged(self) -> None:
        """Raise ValueError if the directory holds other weights by now."""
        found = file_digest(self.folder / WEIGHTS_FILE)
        if found != self.weights_sha256:
            raise ValueError(
                f"{self.folder} has got other weights since it was read (SHA-256 {found[:12]}..., "
                f"it was {self.weights_sha256[:12]}...), so what was learnt does not fit them; "
                "give the command again"
            )

    @property
    def max_tokens(self) -> int:
        """Most tokens on a side: what can be translated, and 256 MiB of all layers' attention."""
        return min(default_max_tokens(self.about.longest_sentence), longest_pair(self.model.config))


def choose(
    forward: LoadedModel,
    backward: LoadedModel | None,
    pairs: Sequence[AnalysisPair],
    files: Sequence[str],
    *,
    max_tokens: int | None = None,
) -> tuple[AlignmentChoice, AlignmentChoice | None]:
    """The best heads of a model, and of the model of the other direction if there is one.

    They are chosen by gold links if the pairs have them, else by agreement of the two models, else
    by words that are the same on both sides.

    Args:
        forward: the model from source to target.
        backward: the model of the other direction.
        pairs: those without words on a side, and those that are too long, are ignored.
        files: where the pairs come from, for the record.
        max_tokens: most tokens on a side; None: as many as each model takes.
    """
    if backward is not None:
        check_opposite_languages(forward.about, backward.about)
    usable = _usable(forward, backward, pairs, max_tokens)
    if backward is None:
        return _by_itself(forward, usable, files), None
    if any(pair.gold is not None for pair in usable):
        return (
            _by_itself(forward, usable, files),
            _by_itself(backward, [pair.reversed() for pair in usable], files),
        )
    alignable = Alignable(
        forward.model, forward.tokenizers, usable, tuple(files), str(forward.folder)
    )
    return select_by_agreement(alignable, backward.model, backward.tokenizers, str(backward.folder))


def _by_itself(
    loaded: LoadedModel, pairs: Sequence[AnalysisPair], files: Sequence[str]
) -> AlignmentChoice:
    alignable = Alignable(loaded.model, loaded.tokenizers, pairs, tuple(files), str(loaded.folder))
    if any(pair.gold is not None for pair in pairs):
        return select_by_gold(alignable)
    return select_by_same_words(alignable)


def _usable(
    forward: LoadedModel,
    backward: LoadedModel | None,
    pairs: Sequence[AnalysisPair],
    max_tokens: int | None,
) -> list[AnalysisPair]:
    return [
        pair
        for pair in pairs
        if pair.has_words
        and fits_into(forward.tokenizers, pair, max_tokens or forward.max_tokens)
        and (
            backward is None
            or fits_into(backward.tokenizers, pair.reversed(), max_tokens or backward.max_tokens)
        )
    ]
