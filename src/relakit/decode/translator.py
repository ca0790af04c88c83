"""`Translator`: from sentences to translations."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from relakit.broken_model import blamed_on
from relakit.data.tokenizer import END, Tokenizer
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.beam import Ended, beam_search
from relakit.decode.choose_engine import choose_engine
from relakit.decode.ensemble import EnsembleEngine
from relakit.decode.long_lines import default_max_tokens
from relakit.decode.members import check_same_kind
from relakit.decode.prefixes import Prefix, make_prefix
from relakit.decode.search_memory import within_memory
from relakit.decode.settings import (
    DEVICE,
    PRECISION,
    WINDOW,
    Precision,
    SearchOptions,
    SearchSettings,
    known_device,
    known_precision,
)
from relakit.decode.shortlist import Shortlist, TokenIds, read_shortlist
from relakit.model import ModelAbout, ModelConfig, Transformer
from relakit.model.description import read_description
from relakit.model.directory import build_model
from relakit.model.evaluation import evaluation_mode, grow_positions
from relakit.nn.arguments import check_usable
from relakit.ops.torch_private import cpu_computes_bf16

if TYPE_CHECKING:
    from typing_extensions import Unpack  # pydantic requires it, and Python has it from 3.11 on


@dataclass(frozen=True)
class Hypothesis:
    """A translation."""

    text: str
    tokens: list[int]
    """Its ids, without the end-of-sentence token."""
    score: float
    """Log-probability divided by the length penalty; what hypotheses are ordered by."""
    log_probability: float
    """Of all its tokens and its end."""


class Translator:
    """Translates with a model and its tokenizer, or with several models that share one.

    The models' weights are read when it is created: create a new one if they change. All methods
    take the fields of `SearchSettings` as keyword arguments, such as ``beam=1``.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizers,
        *,
        others: Sequence[Transformer] = (),
        about: ModelAbout | None = None,
        in_bytes: bool = False,
        shortlist: Shortlist | None = None,
        name: str = "the model",
    ) -> None:
        """Create a translator from models in memory; `Translator.load` reads them from disk.

        Args:
            model: the model to translate with.
            tokenizer: its tokenizer, or a pair of tokenizers if each language has its own.
            others: more models with the same vocabulary; each token's probability is the mean over
                all models.
            about: what its directory says about the model.
            in_bytes: use weights of one byte each.
            shortlist: which tokens may be in the translation of a sentence; None for all.
            name: what errors call the model, or all of the models.
        """
        self.name = name
        self.models = (model, *others)
        for each in self.models:
            each.config.check_tokenizer(tokenizer)
        self.model = model
        self.tokenizers = tokenizer
        self.about = about or ModelAbout()
        if shortlist is not None:
            shortlist.check_tokenizers(tokenizer, name)
        self.shortlist = shortlist
        engines = [choose_engine(each, in_bytes=in_bytes) for each in self.models]
        self._engine = engines[0] if len(engines) == 1 else EnsembleEngine(engines)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, or the target's if the model has two. See ``tokenizers``."""
        return self.tokenizers.target

    @property
    def config(self) -> ModelConfig:
        """The settings of the model, or of the first of several."""
        return self.model.config

    @property
    def max_tokens(self) -> int:
        """Most tokens in a sentence that the command line translates, unless told otherwise."""
        return default_max_tokens(self.about.longest_sentence)

    @classmethod
    def load(
        cls,
        *folders: str | os.PathLike[str],
        device: torch.device | str = DEVICE,
        precision: Precision = PRECISION,
        shortlist: bool = False,
    ) -> "Translator":
        """Read a model directory, or several for an ensemble.

        Args:
            *folders: each holds ``config.json``, ``model.safetensors`` and ``tokenizer.json``. The
                models of an ensemble must have been trained with the same tokenizer.
            device: where to compute.
            precision: of weights and computation: ``"fp32"``, ``"bf16"``, ``"int8"`` for linear
                layers with weights of one byte, on the CPU, or ``"auto"`` for bf16 where the
                device computes with it and fp32 elsewhere.
            shortlist: choose only among the tokens of the first model's shortlist, which
                ``relakit shortlist`` makes: faster, with nearly the same translations.
        """
        if not folders:
            raise ValueError("name a model directory to load")
        known_device(str(device))
        check_usable(device)
        dtype = choose_dtype(precision, torch.device(device))
        described = [read_description(folder) for folder in folders]
        for each in described:
            each.check_tokenizers()
        check_same_kind(described)
        tokens = read_shortlist(Path(folders[0])) if shortlist else None
        models = [build_model(each, device=device)[0].to(dtype) for each in described]
        return cls(
            models[0],
            described[0].tokenizers,
            others=models[1:],
            about=described[0].about,
            in_bytes=precision == "int8",
            shortlist=tokens,
            name=" + ".join(os.fspath(folder) for folder in folders),
        )

    def translate(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        **options: "Unpack[SearchOptions]",
    ) -> list[str]:
        """The best translation of each text; empty for a text that is empty or only spaces.

        Args:
            texts: one sentence each.
            prefixes: what each translation must begin with; an empty prefix leaves it free. A
                prefix that ends within a word may be completed; one that ends in a space may not.
            **options: see `SearchSettings`; among them ``beam`` (1 is greedy search),
                ``length_penalty``, ``max_length``, ``batch_tokens``, and ``sample`` with
                ``temperature``, ``top_k``, ``top_p`` and ``seed``.
        """
        if "nbest" in options:
            raise ValueError("translate gives one translation of each text; use translate_nbest")
        options["nbest"] = 1
        found = self.translate_nbest(texts, prefixes=prefixes, **options)
        return [hypotheses[0].text for hypotheses in found]

    def translate_nbest(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        **options: "Unpack[SearchOptions]",
    ) -> list[list[Hypothesis]]:
        """The ``nbest`` translations of each text, best first; None for all of the beam.

        Other arguments are as for `translate`. A text may have fewer translations: an empty text
        has one, and a short text may not have that many hypotheses.
        """
        check_texts(texts, prefixes)
        return self._translate(texts, SearchSettings(**options), prefixes, first=0)

    def translate_stream(
        self,
        lines: Iterable[str],
        *,
        window: int = WINDOW,
        prefixes: Iterable[str] | None = None,
        **options: "Unpack[SearchOptions]",
    ) -> Iterator[list[Hypothesis]]:
        """Translate lines as they come, in their order.

        Args:
            lines: one sentence each.
            window: how many lines are read, sorted by length and translated together; with 1 every
                line is answered before the next is read.
            prefixes: one for each line, as for `translate`, and no more: an iterator without an end
                will not do.
            **options: as for `translate_nbest`.

        Raises:
            ValueError: a setting cannot be; or, when as many lines are translated as have a prefix,
                there are more lines or more prefixes.
        """
        if window < 1:
            raise ValueError(f"the window must be at least 1, got {window}")
        settings = SearchSettings(**options)

        def found() -> Iterator[list[Hypothesis]]:
            iterator, beginnings = iter(lines), None if prefixes is None else iter(prefixes)
            first = 0
            while texts := list(islice(iterator, window)):
                begin_with = None if beginnings is None else list(islice(beginnings, len(texts)))
                if begin_with is not None and len(begin_with) < len(texts):
                    raise ValueError(
                        f"there are {first + len(begin_with):,} prefixes, but more lines; each "
                        "line needs one, which may be empty"
                    )
                yield from self._translate(texts, settings, begin_with, first=first)
                first += len(texts)
            if beginnings is not None and next(beginnings, None) is not None:
                raise ValueError(
                    f"there are {first:,} lines, but more prefixes; each line needs one"
                )

        return found()

    def translate_ids(
        self, sources: Sequence[Sequence[int]], **options: "Unpack[SearchOptions]"
    ) -> list[list[Ended]]:
        """`translate_nbest` from and to token ids without special tokens; by default one each."""
        options.setdefault("nbest", 1)
        return self.search(sources, SearchSettings(**options))

    def _translate(
        self,
        texts: Sequence[str],
        settings: SearchSettings,
        prefixes: Sequence[str] | None,
        first: int,
    ) -> list[list[Hypothesis]]:
        sources = self.tokenizers.source.encode_batch(texts)
        begin_with = None
        if prefixes is not None:
            begin_with = [make_prefix(prefix, self.tokenizer) for prefix in prefixes]
        found = self.search(sources, settings, prefixes=begin_with, first=first)
        return [self._with_text(ended) for ended in found]

    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: SearchSettings,
        *,
        prefixes: Sequence[Prefix | None] | None = None,
        first: int = 0,
    ) -> list[list[Ended]]:
        """The best hypotheses of each sentence of token ids, with every setting of the search.

        Args:
            sources: without special tokens.
            settings: how to search.
            prefixes: what each translation begins with.
            first: the number of the first sentence, if others came before it. What is drawn for a
                sentence depends on its number.
        """
        found = [[Ended([], 0.0, 0.0)] for _ in sources]  # what an empty sentence gets
        lengths = [len(source) for source in sources]
        begin_with = list(prefixes) if prefixes is not None else [None] * len(sources)
        limits = _limits(lengths, settings, begin_with, first)
        begin_with = [
            None if prefix is None else prefix.within(limit)
            for prefix, limit in zip(begin_with, limits, strict=True)
        ]
        # Only if needed: it visits every module, which takes as long as several steps of a search.
        in_training = [model for model in self.models if model.training]
        with evaluation_mode(*in_training):
            batches = _plan_apart(lengths, begin_with, settings.batch_tokens)
            for indices in within_memory(
                batches,
                [model.config for model in self.models],
                beam=settings.followed,
                limits=limits,
            ):
                grow_positions(self.models, 1 + max(max(lengths[i], limits[i]) for i in indices))
                with blamed_on(self.name):
                    results = beam_search(
                        self._engine,
                        [[*sources[i], END] for i in indices],
                        [limits[i] for i in indices],
                        settings,
                        prefixes=[begin_with[i] for i in indices],
                        allowed=self._allowed([sources[i] for i in indices]),
                        numbers=[first + i for i in indices],
                    )
                for index, result in zip(indices, results, strict=True):
                    found[index] = result
        return found

    def _allowed(self, sources: Sequence[Sequence[int]]) -> list[TokenIds] | None:
        if self.shortlist is None:
            return None
        return [self.shortlist.tokens_for(source) for source in sources]

    def _with_text(self, found: list[Ended]) -> list[Hypothesis]:
        texts = self.tokenizer.decode_batch([ended.tokens for ended in found])
        return [
            Hypothesis(text, ended.tokens, ended.score, ended.log_probability)
            for text, ended in zip(texts, found, strict=True)
        ]


def check_texts(texts: Sequence[str], prefixes: Sequence[str] | None) -> None:
    """Raise ValueError for a single string, and unless there is a prefix for each text or none."""
    if isinstance(texts, str):
        raise ValueError("texts must be a list of sentences, got a single string")
    if prefixes is not None and len(prefixes) != len(texts):
        raise ValueError(
            f"there are {len(texts):,} texts and {len(prefixes):,} prefixes; each text needs "
            "one, which may be empty"
        )


def _limits(
    lengths: Sequence[int],
    settings: SearchSettings,
    prefixes: Sequence[Prefix | None],
    first: int,
) -> list[int]:
    """The most tokens in each translation; ValueError if that is too few for its prefix."""
    limits = []
    for number, (length, prefix) in enumerate(zip(lengths, prefixes, strict=True), start=first + 1):
        limit = settings.limit(length, 0 if prefix is None else prefix.longest)
        # The translation of an empty sentence is empty, whatever its prefix is.
        if length and prefix is not None and prefix.shortest > limit:
            raise ValueError(
                f"the prefix of sentence {number:,} has {prefix.shortest:,} tokens, more than the "
                f"maximum length, {limit:,}; shorten it, or raise the maximum"
            )
        limits.append(limit)
    return limits


def _plan_apart(
    lengths: Sequence[int], prefixes: Sequence[Prefix | None], batch_tokens: int
) -> list[list[int]]:
    """`plan_batches`, with sentences that have a prefix in batches of their own.

    Their next tokens are chosen differently, and no sentence may depend on what shares its batch.
    """
    batches: list[list[int]] = []
    for has_prefix in (False, True):
        group = [i for i, prefix in enumerate(prefixes) if (prefix is not None) == has_prefix]
        planned = plan_batches([lengths[i] for i in group], batch_tokens)
        batches += [[group[place] for place in batch] for batch in planned]
    return batches


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Indices of sentences to translate together, longest first; leaves out those of length 0.

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
