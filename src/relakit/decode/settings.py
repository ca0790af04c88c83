"""How to translate: the beam search's settings and the precisions. Every default is here.

This module imports no torch, so that the command line can show the defaults at once.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypedDict, get_args

from relakit.known_names import known_name
from relakit.limits import MAX_COUNT, check_beam

Precision: TypeAlias = Literal["fp32", "bf16", "int8", "auto"]
"""The precision of weights and computation. int8: linear layers with weights of one byte, on a CPU;
auto: bf16 where the device computes with it, else fp32."""
FloatPrecision: TypeAlias = Literal["fp32", "bf16", "auto"]
"""The precisions that a model can be trained in."""
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
PRECISION: Final[FloatPrecision] = "fp32"
DEVICE: Final = "cpu"
"""Where to translate."""
DEVICE_KINDS: Final = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia")
"""Where PyTorch can compute. It knows more names, such as meta, where nothing has a value."""
_DEVICE: Final = re.compile(rf"(?:{'|'.join(DEVICE_KINDS)})(?::[0-9]{{1,4}})?")

WINDOW: Final = 2000
"""How many lines a stream reads at a time, so that lines of similar length can share a batch."""

SHORTLIST_BEST: Final = 100
"""Most target tokens that a shortlist has for a source token."""
SHORTLIST_FREQUENT: Final = 100
"""How many target tokens a shortlist has for every sentence."""

TooLong: TypeAlias = Literal["crop", "skip", "error"]
"""What happens to a line with too many tokens: only its beginning is translated, nothing is, or it
is an error. See `relakit.decode.long_lines`."""
TOO_LONG_CHOICES: Final[tuple[TooLong, ...]] = get_args(TooLong)
TOO_LONG: Final[TooLong] = "crop"


def known_too_long(name: str) -> TooLong:
    """The name, if there is such a choice."""
    return known_name("--too-long", name, TOO_LONG_CHOICES)


def known_precision(name: str) -> Precision:
    """The name, if there is such a precision."""
    return known_name("precision", name, PRECISIONS)


def known_device(name: str, *, others: Sequence[str] = ()) -> str:
    """The name, if it can be a device; only PyTorch knows whether this machine has it.

    ``others`` are names that stand for a device.
    """
    if name not in others and not _DEVICE.fullmatch(name):
        choices = ", ".join([*others, "cpu"])
        raise ValueError(
            f"unknown device {name!r}; choose {choices} or cuda, of several by its number: cuda:1"
        )
    return name


MOST_PENALTY: Final = 20
MOST_FACTOR: Final = 10_000
"""Far more than anybody needs; with still more, numbers overflow."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How to search."""

    beam: int = 4
    """Hypotheses that are followed at once; 1 is greedy search."""
    length_penalty: float = 0.6
    """alpha: 0 compares plain log-probabilities, higher values favour longer translations."""
    max_length: int | None = None
    """Most tokens in a translation; None: it depends on the source, by the next two settings."""
    length_factor: float = 2.0
    """A translation has at most this many times as many tokens as its source ..."""
    length_margin: int = 20
    """... plus this many."""
    min_length: int = 0
    """Fewest tokens in a translation; with ``max_length`` it fixes the length, for benchmarks."""
    nbest: int | None = None
    """How many hypotheses to return; None: as many as the beam has, or one sample."""
    batch_tokens: int = 2048
    """Source tokens to translate at once, padding included."""
    wide_ends: bool = False
    """Keep hypotheses that end among the best 2 * beam of a step, instead of the best beam."""
    sample: bool = False
    """Draw every token at random by its probability, instead of searching for the best ones. Gives
    ``nbest`` independent translations; ``beam`` and ``wide_ends`` then have no meaning."""
    temperature: float = 1.0
    """Logits are divided by it before a draw: below 1 likely tokens become likelier."""
    top_k: int | None = None
    """Draw among this many of the likeliest tokens; None for all."""
    top_p: float = 1.0
    """Draw among the fewest likeliest tokens that have this share of the probability together."""
    seed: int = 1
    """The seed of the draws. With the number of a sentence it decides all of its samples."""

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise ValueError(f"the beam must be at least 1, got {self.beam}")
        check_beam(self.followed, "nbest" if self.sample else "the beam")
        if self.nbest is not None and self.sample and self.nbest < 1:
            raise ValueError(f"nbest must be at least 1, got {self.nbest}")
        if self.nbest is not None and not self.sample and not 1 <= self.nbest <= self.beam:
            raise ValueError(f"nbest must be from 1 to the beam, {self.beam}, got {self.nbest}")
        if not 0 <= self.length_penalty < math.inf:
            raise ValueError(
                f"the length penalty must be a number from 0 on, got {self.length_penalty}"
            )
        if self.max_length is not None and self.max_length < 1:
            raise ValueError(f"the maximum length must be at least 1, got {self.max_length}")
        if self.length_penalty > MOST_PENALTY:
            raise ValueError(
                f"the length penalty must be at most {MOST_PENALTY}, got {self.length_penalty}"
            )
        if not 0 <= self.length_factor < math.inf:
            raise ValueError(
                f"the length factor must be a number from 0 on, got {self.length_factor}"
            )
        if self.length_factor > MOST_FACTOR:
            raise ValueError(
                f"the length factor must be at most {MOST_FACTOR:,}, got {self.length_factor:g}"
            )
        for name in ("max_length", "length_margin", "min_length"):
            if (getattr(self, name) or 0) > MAX_COUNT:
                raise ValueError(f"{name} must be at most {MAX_COUNT:,}, got {getattr(self, name)}")
        if self.length_margin < 1:
            raise ValueError(f"the length margin must be at least 1, got {self.length_margin}")
        if self.min_length < 0:
            raise ValueError(f"the minimum length must be at least 0, got {self.min_length}")
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(
                f"the minimum length {self.min_length} is above the maximum {self.max_length}"
            )
        if self.batch_tokens < 1:
            raise ValueError(f"a batch must have at least 1 token, got {self.batch_tokens}")
        self._check_sampling()

    def _check_sampling(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ValueError(
                f"the temperature must be a number above 0, got {self.temperature}; for the "
                "likeliest token of each step search with a beam of 1"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if self.sample:
            return
        for name in ("temperature", "top_k", "top_p", "seed"):
            value = getattr(self, name)
            if value != getattr(SearchSettings, name):
                raise ValueError(
                    f"{name} is {value}, but only draws depend on it: add --sample (in Python "
                    "sample=True), or leave it out"
                )

    @property
    def wanted(self) -> int:
        """How many hypotheses to return."""
        if self.nbest is None:
            return 1 if self.sample else self.beam
        return self.nbest

    @property
    def followed(self) -> int:
        """How many hypotheses of a sentence are followed at once."""
        return self.wanted if self.sample else self.beam

    def limit(self, source_length: int, prefix_length: int = 0) -> int:
        """Most tokens in a translation of that many source tokens, not counting END.

        It leaves room for a prefix; ``max_length`` is used as given.
        """
        if self.max_length is None:
            longest = int(self.length_factor * source_length) + self.length_margin
            return max(longest, self.min_length, prefix_length + self.length_margin)
        return self.max_length

    def __str__(self) -> str:
        """What scores depend on, for people to read."""
        if self.sample:
            return f"sampled, temperature {self.temperature}, seed {self.seed}"
        return f"beam {self.beam}, length penalty {self.length_penalty}"


class SearchOptions(TypedDict, total=False):
    """The fields of `SearchSettings`, as keyword arguments of functions that translate."""

    beam: int
    length_penalty: float
    max_length: int | None
    length_factor: float
    length_margin: int
    min_length: int
    nbest: int | None
    batch_tokens: int
    wide_ends: bool
    sample: bool
    temperature: float
    top_k: int | None
    top_p: float
    seed: int
