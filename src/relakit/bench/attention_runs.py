"""Measures attention: creates a case's tensors, checks ReLA's result, measures time and memory."""

from collections.abc import Iterable, Iterator, Sequence

import torch

from relakit.bench.attention_results import AttentionSettings, CaseResult, Measurement
from relakit.bench.cases import Case
from relakit.bench.contenders import (
    CONTENDERS,
    make_step,
    serving_backend,
    why_left_out,
)
from relakit.bench.inputs import Inputs, make_inputs, measure_zeros
from relakit.bench.memory import measure_peak_mib, why_no_memory
from relakit.bench.presets import RELA, Job, check_contenders
from relakit.bench.rounds import (
    Budget,
    CaseRounds,
    Field,
    RepeatedCall,
    seconds_per_call,
    take_turns,
)
from relakit.ops.backends import BackendName
from relakit.ops.call import AttentionCall
from relakit.ops.reference import reference_attention
from relakit.threads import limited_threads

CHECKED_QUERIES = 8


def run_jobs(jobs: Iterable[Job], settings: AttentionSettings) -> Iterator[CaseResult]:
    """Run one case after the other, and yield each result as soon as it is available."""
    with limited_threads(settings.threads):
        for job in jobs:
            yield run_case(job, settings)


def run_case(job: Job, settings: AttentionSettings) -> CaseResult:
    """Time all contenders of a case in turns, then measure the memory of each."""
    case = job.case
    names = list(dict.fromkeys((RELA, *job.contenders)))
    check_contenders(names)
    inputs = make_inputs(case, settings.seed)
    notes = {
        name: why_left_out(name, inputs, settings.backend, settings.memory_limit) for name in names
    }
    if notes[RELA] is not None:
        measurements = [Measurement(contender=name, note=notes[name] or "") for name in names]
        return CaseResult(case=case, zeros_measured=None, measurements=tuple(measurements))
    check_rela(inputs, settings.backend)
    zeros = 100 * measure_zeros(inputs)
    backend = serving_backend(inputs, settings.backend)
    rounds = _time([name for name in names if notes[name] is None], case, inputs, settings)
    del inputs  # processes that measure memory create their own
    measurements = []
    for name in names:
        if notes[name] is not None:
            measurements.append(Measurement(contender=name, note=notes[name] or ""))
            continue
        peak, note = _peak(name, case, settings)
        seconds = rounds.values(name, seconds_per_call)
        assert seconds is not None
        measurements.append(
            Measurement(
                contender=name,
                backend=backend if name == RELA else None,
                rounds=len(rounds.of(name)),
                seconds=seconds,
                ratio=rounds.ratio(name, RELA, seconds_per_call),
                gflops=case.flops / seconds.median / 1e9,
                peak_mib=peak,
                note=note,
            )
        )
    return CaseResult(case=case, zeros_measured=zeros, measurements=tuple(measurements))


def _time(
    names: Sequence[str], case: Case, inputs: Inputs, settings: AttentionSettings
) -> CaseRounds:
    field = Field()
    for name in names:
        field.contenders[name] = RepeatedCall(make_step(name, case, inputs, settings.backend))
    rounds = CaseRounds(str(case))
    take_turns(field, rounds, Budget(settings.rounds, settings.seconds))
    return rounds


@torch.no_grad()
def check_rela(inputs: Inputs, backend: BackendName | None) -> None:
    """Compare some queries with the reference: the speed of a wrong result means nothing.

    Raises:
        RuntimeError: the results differ by more than rounding.
    """
    prepared = CONTENDERS[RELA].prepare(inputs, backend)
    mask = inputs.mask
    if mask is not None and mask.size(2) > 1:
        mask = mask[:, :, :CHECKED_QUERIES]
    call = AttentionCall(
        query=inputs.query[:, :, :CHECKED_QUERIES],
        key=inputs.key,
        value=inputs.value,
        attn_mask=mask,
        is_causal=inputs.is_causal,
        threshold=inputs.threshold,
    )
    expected = reference_attention(call)[0].float()
    found = prepared.forward()[:, :, :CHECKED_QUERIES].float()
    allowed = 1e-4 if inputs.query.dtype == torch.float32 else 2e-2
    error = float((found - expected).abs().max())
    largest = float(expected.abs().max())
    if not error <= allowed * max(largest, 1e-3):
        raise RuntimeError(
            f"ReLA differs from the reference by {error:.2g} in values up to {largest:.2g}: "
            "that is a bug, and its speed means nothing"
        )


def _peak(name: str, case: Case, settings: AttentionSettings) -> tuple[float | None, str]:
    """Peak memory in MiB, or the reason why there is none."""
    if not settings.memory:
        return None, ""
    problem = why_no_memory()
    if problem is not None:
        return None, problem
    try:
        return measure_peak_mib(
            name, case, backend=settings.backend, threads=settings.threads, seed=settings.seed
        ), ""
    except OSError as error:
        return None, str(error)
