"""Links for what a translator wrote, however it was found.

They come from forced decoding of a hypothesis' own tokens after the search, with the PyTorch model
(the first of an ensemble). So they are the same whether a translation was found in C++ or in
PyTorch, with one-byte weights, by beam search, by sampling or after a prefix.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

from relakit.align.aligner import Aligner
from relakit.align.alignment import Alignment
from relakit.align.layer import load_layer
from relakit.align.layer_files import heads_or_layer
from relakit.align.pair_text import pair_of_texts
from relakit.align.settings import Level, WordRule
from relakit.analysis.long_pairs import longest_in_matrices
from relakit.analysis.pairs import AnalysisPair
from relakit.decode.translator import Hypothesis, Translator


def aligner_of(translator: Translator, folder: Path | str, *, level: Level = "word") -> Aligner:
    """An aligner that shares a translator's (first) model, with its alignment layer if it has one.

    Args:
        translator: what translates.
        folder: the model's directory, which says where links are read.
        level: what is linked.

    Raises:
        ValueError: the directory has no layer, and does not say which heads align.
    """
    config = translator.model.config
    choice, with_layer = heads_or_layer(Path(folder), config)
    return Aligner(
        translator.model,
        translator.tokenizers,
        choice,
        layer=load_layer(Path(folder), translator.model)[0] if with_layer else None,
        about=translator.about,
        level=level,
        max_tokens=longest_in_matrices(config.heads),  # heads of one layer
    )


def align_hypotheses(
    aligner: Aligner,
    sources: Sequence[str],
    hypotheses: Sequence[Sequence[Hypothesis]],
    *,
    words: Literal["spaces", "punctuation"] = "spaces",
) -> list[list[Alignment]]:
    """The alignment of each hypothesis of each source.

    A hypothesis or source with more tokens than the aligner's ``max_tokens`` has no links, and a
    null rate of None.

    Args:
        aligner: an aligner for the model that translated.
        sources: the texts as they were translated.
        hypotheses: the hypotheses of each source.
        words: what counts as a word, see `WordRule`.
    """
    pairs = [
        _pair(aligner, source, hypothesis, words)
        for source, several in zip(sources, hypotheses, strict=True)
        for hypothesis in several
    ]
    found = aligner.align(pairs)
    return [list(islice(found, len(several))) for several in hypotheses]


def _pair(aligner: Aligner, source: str, hypothesis: Hypothesis, words: WordRule) -> AnalysisPair:
    pair = pair_of_texts(source, hypothesis.text, words=words)
    return replace(pair, target_tokens=aligner.tokenizers.target.decoded(hypothesis.tokens))
