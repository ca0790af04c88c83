"""Lists of cases that answer a question, with the contenders that each case needs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final

from relakit.bench.cases import DTYPES, MASKS, TOKENS, Case, make_case
from relakit.known_names import known_name

RELA: Final = "rela"
SOFTMAXES: Final = ("sdpa", "bmm-softmax")
"""The contenders that compute softmax attention; ReLA is compared with the faster one."""
SPARSE: Final = ("sparsemax", "entmax15")
"""The contenders of the `entmax` package."""
CONTENDER_NAMES: Final = (RELA, *SOFTMAXES, *SPARSE)
"""The names in `relakit.bench.contenders`, repeated here because that module loads torch."""


def check_contenders(names: Iterable[str]) -> None:
    """Raise ValueError for the name of an unknown contender."""
    for name in names:
        known_name("contender", name, CONTENDER_NAMES)


@dataclass(frozen=True)
class Job:
    """A case, and its contenders besides ReLA."""

    case: Case
    contenders: tuple[str, ...]


def targets() -> list[Job]:
    """The cases that the kernels have speed targets for, at 50% and 90% zeros."""
    jobs = []
    for zeros in (50.0, 90.0):
        for mode, length in (
            ("forward", 64),
            ("forward", 512),
            ("forward", 2048),
            ("both", 64),
            ("both", 512),
            ("both", 2048),
            ("causal-both", 2048),
            ("decode", 1024),
            ("decode", 32768),
        ):
            case = make_case(mode, length, zeros)
            has_peers = (mode, length, zeros) == ("both", 512, 90.0)
            jobs.append(Job(case, (*SOFTMAXES, *SPARSE) if has_peers else SOFTMAXES))
        jobs.append(Job(make_case("forward", 2048, zeros, dtype="bfloat16"), ("sdpa",)))
    return jobs


def never_slower() -> list[Job]:
    """Many shapes and masks against SDPA: is ReLA slower in any of them?"""
    passes = [(mode, mask) for mode in ("forward", "both") for mask in MASKS]
    passes += [("causal-forward", "none"), ("causal-both", "none")]
    lengths = (32, 64, 128, 256, 512, 1024, 2048)
    cases = [
        make_case(mode, length, zeros, dtype=dtype, batch=batch, mask=mask)
        for (mode, mask), length, zeros, dtype in product(
            passes, lengths, (0.0, 50.0, 90.0), DTYPES
        )
        for batch in (1, TOKENS // length)
    ]
    cases += [
        make_case("decode", length, zeros, dtype=dtype, batch=batch, mask=mask)
        for length, zeros, dtype, batch, mask in product(
            (32, 128, 512, 2048), (0.0, 50.0, 90.0), DTYPES, (1, 16), ("none", "padding")
        )
    ]
    return [Job(case, ("sdpa",)) for case in dict.fromkeys(cases)]


PRESETS: Final[dict[str, Callable[[], list[Job]]]] = {
    "targets": targets,
    "never-slower": never_slower,
}
