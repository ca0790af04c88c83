"""`Translator`: from sentences to translations."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from relakit.data.tokenizer import END, Tokenizer
from relakit.decode.beam import Ended, beam_search
from relakit.decode.choose_engine import choose_engine
from relakit.decode.settings import (
    DEVICE,
    PRECISION,
    WINDOW,
    Precision,
    SearchSettings,
    known_precision,
)
from relakit.model import ModelAbout, Transformer, load_model
from relakit.model.directory import TOKENIZER_FILE
from relakit.ops.torch_private import cpu_computes_bf16


@dataclass(frozen=True)
class Hypothesis:
    """A translation."""

    text: str
    tokens: list[int]
    """Its ids, without the end-of-sentence token."""
    score: float
    """Log-probability divided by the length penalty; what hypotheses are ordered by."""
    log_probability: float
    """Of all its tokens and of its end."""


class Translator:
    """Translates with a model and its tokenizer.

    The model's weights are read when it is made: make a new one when they have changed.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        about: ModelAbout | None = None,
        in_bytes: bool = False,
    ) -> None:
        """``in_bytes``: weights of one byte each; see `Translator.load`."""
        model.config.check_tokenizer(tokenizer.size)
        self.model = model
        self.tokenizer = tokenizer
        self.about = about or ModelAbout()
        self._engine = choose_engine(model, in_bytes=in_bytes)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: torch.device | str = DEVICE,
        precision: Precision = PRECISION,
    ) -> "Translator":
        """Read a model directory.

        Args:
            folder: holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``.
            device: where to compute.
            precision: of weights and computation: ``"fp32"``, ``"bf16"``, ``"int8"`` for linear
                layers with weights of one byte, on the CPU, or ``"auto"`` for bf16 where the
                device computes with it and fp32 elsewhere.
        """
        dtype = choose_dtype(precision, torch.device(device))
        model, about = load_model(folder, device=device)
        tokenizer = Tokenizer.load(Path(folder) / TOKENIZER_FILE)
        return cls(model.to(dtype), tokenizer, about=about, in_bytes=precision == "int8")

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int = SearchSettings.beam,
        length_penalty: float = SearchSettings.length_penalty,
        max_length: int | None = SearchSettings.max_length,
        batch_tokens: int = SearchSettings.batch_tokens,
    ) -> list[str]:
        """The best translation of each text. An empty text, or one of spaces, has an empty one.

        Args:
            texts: one sentence each.
            beam: hypotheses that are followed at once; 1 is greedy search.
            length_penalty: alpha in log-probability / ((5 + length) / 6) ** alpha.
            max_length: most tokens of a translation; None: twice those of its source, plus 20.
            batch_tokens: source tokens, padding included, that are translated at once.
        """
        found = self.translate_nbest(
            texts,
            nbest=1,
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
            batch_tokens=batch_tokens,
        )
        return [hypotheses[0].text for hypotheses in found]

    def translate_nbest(
        self,
        texts: Sequence[str],
        *,
        nbest: int | None = None,
        beam: int = SearchSettings.beam,
        length_penalty: float = SearchSettings.length_penalty,
        max_length: int | None = SearchSettings.max_length,
        batch_tokens: int = SearchSettings.batch_tokens,
    ) -> list[list[Hypothesis]]:
        """The ``nbest`` translations of each text, best first; None: all of the beam.

        Other arguments as for `translate`. A text may have fewer: an empty one has one, and a short
        one may not have that many hypotheses.
        """
        if isinstance(texts, str):
            raise ValueError("texts must be a list of sentences, got a single string")
        settings = SearchSettings(
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
            nbest=nbest,
            batch_tokens=batch_tokens,
        )
        return self._translate(texts, settings)

    def translate_stream(
        self,
        lines: Iterable[str],
        *,
        window: int = WINDOW,
        nbest: int | None = None,
        beam: int = SearchSettings.beam,
        length_penalty: float = SearchSettings.length_penalty,
        max_length: int | None = SearchSettings.max_length,
        batch_tokens: int = SearchSettings.batch_tokens,
    ) -> Iterator[list[Hypothesis]]:
        """Translate lines as they come, in their order.

        Args:
            lines: one sentence each.
            window: lines that are read, sorted by length and translated together; with 1 every line
                is answered before the next is read.
            nbest: as for `translate_nbest`.
            beam: as for `translate`, like the others.
            length_penalty: see there.
            max_length: see there.
            batch_tokens: see there.
        """
        if window < 1:
            raise ValueError(f"the window must be at least 1, got {window}")
        settings = SearchSettings(
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
            nbest=nbest,
            batch_tokens=batch_tokens,
        )

        def found() -> Iterator[list[Hypothesis]]:
            iterator = iter(lines)
            while texts := list(islice(iterator, window)):
                yield from self._translate(texts, settings)

        return found()

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        *,
        nbest: int | None = 1,
        beam: int = SearchSettings.beam,
        length_penalty: float = SearchSettings.length_penalty,
        max_length: int | None = SearchSettings.max_length,
        min_length: int = SearchSettings.min_length,
        batch_tokens: int = SearchSettings.batch_tokens,
    ) -> list[list[Ended]]:
        """`translate_nbest` for token ids, without special tokens, in and out.

        ``min_length``: fewest tokens of a translation.
        """
        settings = SearchSettings(
            beam=beam,
            length_penalty=length_penalty,
            max_length=max_length,
            min_length=min_length,
            nbest=nbest,
            batch_tokens=batch_tokens,
        )
        return self.search(sources, settings)

    def _translate(self, texts: Sequence[str], settings: SearchSettings) -> list[list[Hypothesis]]:
        sources = self.tokenizer.encode_batch(texts)
        return [self._with_text(ended) for ended in self.search(sources, settings)]

    def search(
        self, sources: Sequence[Sequence[int]], settings: SearchSettings
    ) -> list[list[Ended]]:
        """The best hypotheses of each sentence of token ids, with every setting of the search."""
        found = [[Ended([], 0.0, 0.0)] for _ in sources]  # what an empty sentence gets
        lengths = [len(source) for source in sources]
        was_training = self.model.training
        self.model.eval()
        try:
            for indices in plan_batches(lengths, settings.batch_tokens):
                results = self._search_batch([sources[i] for i in indices], settings)
                for index, result in zip(indices, results, strict=True):
                    found[index] = result
        finally:
            self.model.train(was_training)
        return found

    def _search_batch(
        self, sources: Sequence[Sequence[int]], settings: SearchSettings
    ) -> list[list[Ended]]:
        longest = max(len(source) for source in sources) + 1
        limits = [settings.limit(len(source)) for source in sources]
        # The table of positions grows here, outside of inference mode: the model keeps it, and a
        # tensor made in inference mode could not take part in training.
        self.model.embedding.position_vectors(max(longest, *limits) + 1)
        return beam_search(self._engine, [[*source, END] for source in sources], limits, settings)

    def _with_text(self, found: list[Ended]) -> list[Hypothesis]:
        texts = self.tokenizer.decode_batch([ended.tokens for ended in found])
        return [
            Hypothesis(text, ended.tokens, ended.score, ended.log_probability)
            for text, ended in zip(texts, found, strict=True)
        ]


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Indices of sentences to translate together, the longest first; without those of length 0.

    The padded size of a batch, with an end-of-sentence token for each, is at most ``batch_tokens``,
    but a batch has at least one sentence.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if lengths[index] == 0:
            break
        if not batches or (len(batches[-1]) + 1) * longest > batch_tokens:
            batches.append([])
            longest = lengths[index] + 1
        batches[-1].append(index)
    return batches


def choose_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The dtype to compute in."""
    known_precision(precision)
    if precision in ("fp32", "int8"):  # with int8, whatever is not in bytes is in float32
        return torch.float32
    if precision == "bf16":
        return torch.bfloat16
    return torch.bfloat16 if _computes_bf16(device) else torch.float32


def _computes_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # Without such instructions bfloat16 is slower than float32.
    return cpu_computes_bf16()
