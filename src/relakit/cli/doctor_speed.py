"""Is ReLA faster than softmax on this machine? A few cases, in about twenty seconds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import torch

from relakit.bench.attention_results import AttentionSettings
from relakit.bench.attention_runs import run_jobs
from relakit.bench.cases import make_case
from relakit.bench.contenders import why_kernels_cannot_run
from relakit.bench.presets import SOFTMAXES, Job
from relakit.bench.rounds import (
    Budget,
    CaseRounds,
    Field,
    RepeatedCall,
    Spread,
    seconds_per_call,
    take_turns,
)
from relakit.data.tokenizer import END
from relakit.decode.beam import beam_search
from relakit.decode.engine import Engine
from relakit.decode.native_engine import NativeEngine
from relakit.decode.settings import SearchSettings
from relakit.model import ModelConfig, Transformer
from relakit.model.config import sized
from relakit.ops.native.extension import choose_isa
from relakit.threads import limited_threads

CASES: Final = (
    ("forward, 512 positions", "forward", 512),
    ("both passes, 512 positions", "both", 512),
    ("one query, 2,048 keys", "decode", 2048),
)
ZEROS: Final = (50.0, 90.0)
"""Percentages of zeros: what models start with, and what many trained models have."""
FEW_ZEROS: Final = 75.0
SECONDS: Final = 1.6
"""Time for each attention case."""
TRANSLATION_SECONDS: Final = 4.0
SIZE: Final = "small"
VOCABULARY: Final = 8000
SOURCES, LENGTH, BEAM = 8, 20, 4
UNSTEADY: Final = 1.4
"""If the upper quartile of a ratio is more than this times the lower one, it says little."""
EVEN: Final = 0.97
"""A ratio from here to 1 is not a difference that anybody would notice."""
PORTABLE: Final = "portable"


@dataclass(frozen=True, kw_only=True)
class SpeedCase:
    """One case, and softmax's time divided by ReLA's: above 1, ReLA is faster."""

    what: str
    zeros: float | None
    """Percentage of weights that are zero; None: whatever a model with random weights has"""
    ratio: Spread


@dataclass(frozen=True, kw_only=True)
class SpeedVerdict:
    """What was measured with one thread, and what it means."""

    cases: list[SpeedCase]
    sentence: str
    reasons: list[str]
    """Why ReLA is not faster somewhere, or what to make of the numbers"""


def measure_speed(tell: Callable[[str], None] = lambda text: None) -> SpeedVerdict:
    """Time attention and translation against softmax, in turns; calls ``tell`` after each case."""
    if problems := why_kernels_cannot_run():
        return SpeedVerdict(
            cases=[],
            sentence="Nothing was measured: ReLA's kernels cannot run on this machine.",
            reasons=[*problems],
        )
    cases = []
    for case in chain(_attention(), _translation()):
        cases.append(case)
        tell(case.what)
    return judge(cases, choose_isa())


def judge(cases: Sequence[SpeedCase], isa: str) -> SpeedVerdict:
    """What the numbers mean, in words."""
    medians = [case.ratio.median for case in cases]
    slower = [case for case in cases if case.ratio.median < EVEN]
    span = f"{min(medians):.2f} to {max(medians):.2f} times its speed"
    if not slower:
        how = "faster than softmax" if min(medians) > 1 else "as fast as softmax, or faster,"
        sentence = f"ReLA is {how} on this machine: {span}."
    elif len(slower) == len(cases):
        sentence = f"ReLA is slower than softmax on this machine: {span}."
    else:
        where = "; ".join(_named(case) for case in slower)
        sentence = f"ReLA is slower than softmax in {len(slower)} of {len(cases)} cases: {where}."
    return SpeedVerdict(
        cases=list(cases), sentence=sentence, reasons=list(_reasons(cases, slower, isa))
    )


def _named(case: SpeedCase) -> str:
    zeros = "" if case.zeros is None else f" at {case.zeros:.0f}% zeros"
    return f"{case.what}{zeros} ({case.ratio.median:.2f})"


def _reasons(cases: Sequence[SpeedCase], slower: Sequence[SpeedCase], isa: str) -> Iterator[str]:
    if slower and isa == PORTABLE:
        yield (
            "its kernels use no vector instructions here: this processor has none that they know, "
            "or RELAKIT_CPU_ISA says so"
        )
    elif any(case.zeros is not None and case.zeros < FEW_ZEROS for case in slower):
        yield (
            "it gains by skipping zeros, and half of the weights are few; trained models often "
            "have more"
        )
    if any(case.ratio.upper > UNSTEADY * case.ratio.lower for case in cases):
        yield "something else kept this machine busy: the numbers vary much, so measure again"


def _attention() -> Iterator[SpeedCase]:
    jobs = [
        Job(make_case(mode, length, zeros), SOFTMAXES)
        for _, mode, length in CASES
        for zeros in ZEROS
    ]
    names = [what for what, _, _ in CASES for _ in ZEROS]
    settings = AttentionSettings(seconds=SECONDS, memory=False)
    for what, result in zip(names, run_jobs(jobs, settings), strict=True):
        faster = result.faster_softmax
        if faster is not None and faster.ratio is not None:
            yield SpeedCase(what=what, zeros=result.zeros_measured, ratio=faster.ratio)


def _translation() -> Iterator[SpeedCase]:
    """Time models with random weights, where about half of the attention weights are zero."""
    for name, in_bytes in (("float32", False), ("int8", True)):
        field = Field()
        for attention in ("softmax", "rela-g"):
            engine = NativeEngine(_model(attention), in_bytes=in_bytes)
            field.contenders[attention] = RepeatedCall(_search(engine))
        rounds = CaseRounds(name)
        with limited_threads(1):
            take_turns(field, rounds, Budget(None, TRANSLATION_SECONDS / 2))
        ratio = rounds.ratio("softmax", "rela-g", seconds_per_call)
        assert ratio is not None
        yield SpeedCase(what=f"translation, {name}, beam {BEAM}", zeros=None, ratio=ratio)


def _model(attention: str) -> Transformer:
    torch.manual_seed(0)
    kinds = {f"{kind}_attention": attention for kind in ("encoder", "decoder", "cross")}
    config = ModelConfig.model_validate({**sized(SIZE), **kinds, "vocabulary": VOCABULARY})
    return Transformer(config).eval()


def _search(engine: Engine) -> Callable[[], object]:
    """A search whose translations all have the same length, whatever the weights are."""
    draw = torch.Generator().manual_seed(0)
    sources = torch.randint(END + 1, VOCABULARY, (SOURCES, LENGTH), generator=draw).tolist()
    settings = SearchSettings(beam=BEAM, min_length=LENGTH)
    limits = [LENGTH] * SOURCES
    return lambda: beam_search(engine, [[*one, END] for one in sources], limits, settings)
