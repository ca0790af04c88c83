"""`relakit bench attention --tune`: which way of computing is fastest where, on this processor.

The kernels have several ways to compute the same result, and choose between them by thresholds that
belong to the instruction set. Here each way is forced in turn; the threshold should be the point
where two ways are equally fast. The speed of the dense products alone is also measured, and
compared with the processor's peak and with `torch.mm`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch

from relakit.bench.attention_results import AttentionSettings
from relakit.bench.cases import Case, make_case
from relakit.bench.contenders import make_step
from relakit.bench.inputs import make_inputs
from relakit.bench.presets import RELA
from relakit.bench.rounds import (
    Budget,
    CaseRounds,
    Field,
    RepeatedCall,
    seconds_per_call,
    take_turns,
)
from relakit.ops.native.extension import load_extension
from relakit.threads import limited_threads

NONZEROS: Final = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
"""Percentages of non-zero weights at which two ways are compared."""
LENGTHS: Final = (64, 128, 256, 512, 1024)
"""Lengths at which screening is compared with no screening, up to the requested length."""
FEW_NONZEROS: Final = 10
"""Percentage of non-zero weights for the lengths above."""
KEYS_PER_LENGTH: Final = 16
"""How many times the requested length the keys of a single query are: too many for the caches near
the processor, so that fetching their values ahead of time may pay."""
PRODUCT_SIZES: Final = (512, 2048)
"""Rows of both factors; each row has as many features as a head."""


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The thresholds of `native/attention/thresholds.h`, which explains them."""

    dense_forward: float
    dense_backward: float
    most_candidates: float
    least_to_screen: int
    most_to_fetch: float


Ways = dict[str, Any]
"""Thresholds, by name, that force a way of computing."""
DENSE: Final[Ways] = {"dense_forward": 0.0, "dense_backward": 0.0}
LISTS: Final[Ways] = {"dense_forward": 1.0, "dense_backward": 1.0}
NO_SCREENING: Final[Ways] = {"most_candidates": 0.0}
SCREENING: Final[Ways] = {"most_candidates": 1.0, "least_to_screen": 1}
FETCHING: Final[Ways] = {"most_to_fetch": 1.0}
NO_FETCHING: Final[Ways] = {"most_to_fetch": 0.0}


@dataclass(frozen=True)
class Comparison:
    """The time of one way divided by another's, at several points."""

    threshold: str
    """The name of the threshold that chooses between the two ways."""
    places: tuple[float, ...]
    """Shares of non-zeros, or lengths."""
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class ProductSpeed:
    """Speed of dense products ``[size, dim] x [dim, size]``, in GFLOP/s."""

    size: int
    dim: int
    kernel: float
    torch: float


@dataclass(frozen=True)
class Tuning:
    """What was found on this processor."""

    isa: str
    peak: float
    """GFLOP/s of multiplications and additions in registers."""
    products: tuple[ProductSpeed, ...]
    comparisons: tuple[Comparison, ...]
    built_in: Thresholds
    best: Thresholds = field(repr=False)


def tune(
    settings: AttentionSettings,
    *,
    length: int,
    heads: int = Case.heads,
    dim: int = Case.dim,
    batch: int | None = None,
    dtype: str = Case.dtype,
    tell: Callable[[str], None] = lambda text: None,
) -> Tuning:
    """Compare the kernels' ways, mostly at one length, and find the best thresholds.

    Args:
        settings: threads, rounds or seconds per comparison, and the seed.
        length: number of queries and keys; also the longest at which screening is tried. A single
            query, as in decoding, has `KEYS_PER_LENGTH` times as many keys.
        heads: number of heads.
        dim: features per head; fetching is compared only if they fill whole vectors.
        batch: number of sequences, but for the single query; None for the usual number.
        dtype: dtype of the inputs; the products alone are always float32.
        tell: called with a description of the current step.
    """
    native = load_extension()
    isa = native.chosen_isa()
    built_in = Thresholds(**native.attention_thresholds(isa, dtype))

    def ratio(mode: str, size: int, nonzeros: int, one: Ways, other: Ways) -> float:
        tell(f"{mode}, length {size}, {nonzeros}% non-zeros")
        sequences = None if mode == "decode" else batch  # its keys are many enough
        case = make_case(
            mode, size, 100.0 - nonzeros, heads=heads, dim=dim, batch=sequences, dtype=dtype
        )
        values = [replace(built_in, **way) for way in (one, other)]
        return _time_ratio(isa, case, settings, *values)

    def by_nonzeros(
        threshold: str, mode: str, one: Ways, other: Ways, size: int = length
    ) -> Comparison:
        ratios = [ratio(mode, size, percent, one, other) for percent in NONZEROS]
        return Comparison(threshold, tuple(p / 100 for p in NONZEROS), tuple(ratios))

    with limited_threads(1):  # the kernels' products alone use one thread
        peak, products = _measure_products(isa, dim, settings, tell)
    with limited_threads(settings.threads):
        forward = by_nonzeros(
            "dense_forward", "forward", LISTS | NO_SCREENING, DENSE | NO_SCREENING
        )
        dense_forward: Ways = {"dense_forward": crossing(forward.places, forward.ratios)}
        backward = by_nonzeros(
            "dense_backward",
            "both",
            {"dense_backward": 1.0} | dense_forward,
            {"dense_backward": 0.0} | dense_forward,
        )
        dense_backward = crossing(backward.places, backward.ratios)
        best = replace(built_in, **dense_forward, dense_backward=dense_backward)
        fetch: tuple[Comparison, ...] = ()
        if dim % native.vector_width(isa) == 0:  # otherwise nothing is ever fetched
            fetch = (
                by_nonzeros(
                    "most_to_fetch", "decode", FETCHING, NO_FETCHING, KEYS_PER_LENGTH * length
                ),
            )
            best = replace(best, most_to_fetch=crossing(fetch[0].places, fetch[0].ratios))
        if not native.has_screening(isa):
            return Tuning(isa, peak, products, (forward, backward, *fetch), built_in, best)
        screen = by_nonzeros(
            "most_candidates", "forward", SCREENING | dense_forward, NO_SCREENING | dense_forward
        )
        lengths = tuple(size for size in LENGTHS if size <= length) or (length,)
        short = Comparison(
            "least_to_screen",
            lengths,
            tuple(
                ratio("forward", size, FEW_NONZEROS, SCREENING, NO_SCREENING) for size in lengths
            ),
        )
    best = replace(
        best,
        most_candidates=crossing(screen.places, screen.ratios),
        least_to_screen=first_to_pay(lengths, short.ratios),
    )
    comparisons = (forward, backward, screen, short, *fetch)
    return Tuning(isa, peak, products, comparisons, built_in, best)


def crossing(places: Sequence[float], ratios: Sequence[float]) -> float:
    """Where the ratio reaches 1 for good: below it the first way is faster, above it the second.

    Interpolated between two places; 0 if the first way is faster nowhere, 1 if it is still faster
    at the end.
    """
    for i in range(len(ratios) - 1, -1, -1):
        if ratios[i] < 1:
            if i == len(ratios) - 1:
                return 1.0
            part = (1 - ratios[i]) / (ratios[i + 1] - ratios[i])
            return places[i] + part * (places[i + 1] - places[i])
    return 0.0


def first_to_pay(lengths: Sequence[int], ratios: Sequence[float]) -> int:
    """The length from which on the ratio stays below 1; twice the last length if there is none."""
    first = 2 * lengths[-1]
    for size, ratio in zip(reversed(lengths), reversed(ratios), strict=True):
        if ratio >= 1:
            break
        first = size
    return first


@contextmanager
def thresholds_set(isa: str, dtype: str, values: Thresholds) -> Iterator[None]:
    """A block in which the kernels use these thresholds for inputs of this dtype.

    No other thread may run kernels meanwhile.
    """
    native = load_extension()
    before = native.attention_thresholds(isa, dtype)
    native.set_attention_thresholds(isa, dtype, **vars(values))
    try:
        yield
    finally:
        native.set_attention_thresholds(isa, dtype, **before)


def _time_ratio(
    isa: str, case: Case, settings: AttentionSettings, one: Thresholds, other: Thresholds
) -> float:
    """The time with ``one`` divided by the time with ``other``: median over interleaved rounds."""
    inputs = make_inputs(case, settings.seed)
    step = make_step(RELA, case, inputs, "native")

    def with_thresholds(values: Thresholds) -> RepeatedCall:
        def call() -> None:
            with thresholds_set(isa, case.dtype, values):
                step()

        return RepeatedCall(call)

    contestants = Field()
    contestants.contenders.update(one=with_thresholds(one), other=with_thresholds(other))
    rounds = CaseRounds(str(case))
    take_turns(contestants, rounds, Budget(settings.rounds, settings.seconds))
    ratio = rounds.ratio("one", "other", seconds_per_call)
    assert ratio is not None
    return ratio.median


def _measure_products(
    isa: str, dim: int, settings: AttentionSettings, tell: Callable[[str], None]
) -> tuple[float, tuple[ProductSpeed, ...]]:
    """The processor's peak and the speed of products alone, each the best of interleaved turns."""
    native = load_extension()
    tell("products alone")
    turns = settings.rounds or 5

    def rate(work: Callable[[], float]) -> float:
        start = time.perf_counter()
        operations = work()
        return operations / (time.perf_counter() - start) / 1e9

    peak = 0.0
    found = {size: [0.0, 0.0] for size in PRODUCT_SIZES}
    factors = {size: (torch.randn(size, dim), torch.randn(dim, size)) for size in PRODUCT_SIZES}
    outputs = {size: torch.empty(size, size) for size in PRODUCT_SIZES}
    for _ in range(turns):
        peak = max(peak, rate(lambda: native.multiply_and_add(isa, 200_000)))
        for size in PRODUCT_SIZES:
            times = max(1, 4 * (2048 // size) ** 2)

            def multiply(size: int = size, times: int = times) -> float:
                for _ in range(times):
                    torch.mm(*factors[size], out=outputs[size])
                return 2.0 * size * size * dim * times

            def score(size: int = size, times: int = times) -> float:
                return float(native.score_products(isa, size, size, dim, times))

            for i, work in enumerate((score, multiply)):
                found[size][i] = max(found[size][i], rate(work))
    return peak, tuple(ProductSpeed(size, dim, *found[size]) for size in PRODUCT_SIZES)
