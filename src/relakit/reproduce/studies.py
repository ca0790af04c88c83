"""The paper's tables and figures, and one more study: what each needs, at each scale."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from relakit.reproduce.corpora import DEMO, SCALES, Scale
from relakit.reproduce.rows import BASELINE, OURS, ROWS, VARIANTS
from relakit.reproduce.runs import Run

SEEDS: Final = 3
"""How many seeds the rows have that a claim rests on."""
COMPARED: Final = ("softmax", "sparsemax", "entmax15", "rela-g")
"""The rows of Tables 2, 3, 5 and 6, and of most figures."""
MAIN_CORPUS: Final[MappingProxyType[Scale, str]] = MappingProxyType(
    {"tiny": "multi30k-en-de", "deep": "multi30k-en-de", "paper": "wmt14-en-de"}
)
"""The corpus of Table 1."""


@dataclass(frozen=True)
class Need:
    """Rows to train on a corpus, each with the same number of seeds."""

    corpus: str
    rows: tuple[str, ...]
    seeds: int = 1

    def runs(self, scale: Scale, seeds: int | None) -> list[Run]:
        """One run for each row and seed; ``seeds`` overrides this need's own number."""
        return [
            Run(scale=scale, corpus=self.corpus, row=row, seed=seed)
            for row in self.rows
            for seed in range(1, (self.seeds if seeds is None else seeds) + 1)
        ]


_DEEP_ABLATION: Final = (
    Need("multi30k-en-de", (BASELINE, OURS), SEEDS),
    Need("multi30k-en-de", ("sparsemax", "entmax15", "rela-i")),
    Need("generated", (BASELINE, OURS), SEEDS),
    Need("generated", ("sparsemax", "entmax15", "rela-i")),
)
_DEEP_EUROPARL: Final = (Need("europarl-en-de", (BASELINE, "entmax15", OURS)),)

_ABLATION: Final[dict[Scale, tuple[Need, ...]]] = {
    "tiny": (Need("multi30k-en-de", tuple(ROWS), SEEDS),),
    "deep": (*_DEEP_ABLATION, *_DEEP_EUROPARL),
    "paper": (Need("wmt14-en-de", tuple(ROWS)),),
}
_LANGUAGES: Final[dict[Scale, tuple[Need, ...]]] = {
    "tiny": (
        Need("multi30k-en-de", COMPARED, SEEDS),
        *(Need(f"multi30k-{pair}", COMPARED) for pair in ("en-fr", "de-en", "fr-en")),
    ),
    "paper": tuple(
        Need(name, COMPARED)
        for name in ("wmt14-en-fr", "wmt18-en-fi", "wmt18-zh-en", "wmt16-ro-en")
    ),
}
_ANALYSIS: Final[dict[Scale, tuple[Need, ...]]] = {
    "tiny": (Need("multi30k-en-de", COMPARED, SEEDS),),
    "deep": (*_DEEP_ABLATION, *_DEEP_EUROPARL),
    "paper": (Need("wmt14-en-de", COMPARED, SEEDS),),
}
_OURS: Final[dict[Scale, tuple[Need, ...]]] = {
    "tiny": (Need("multi30k-en-de", (OURS,), SEEDS),),
    "deep": (
        Need("multi30k-en-de", (OURS,), SEEDS),
        Need("generated", (OURS,), SEEDS),
        Need("europarl-en-de", (OURS,)),
    ),
    "paper": (Need("wmt14-en-de", (OURS,), SEEDS),),
}
_EXAMPLES: Final[dict[Scale, tuple[Need, ...]]] = {"deep": (Need("generated", (OURS,)),)}
"""Runs with sentences that may be shown: our own."""
STABILITY_ROWS: Final = (
    BASELINE,
    "rela-i",
    OURS,
    "rela-g-encoder",
    "rela-g-decoder",
    "rela-g-cross",
    *VARIANTS,
)
"""The rows trained on the demo's corpus."""
_STABILITY: Final[dict[Scale, tuple[Need, ...]]] = {
    "tiny": (Need(DEMO, STABILITY_ROWS, 2),),
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table, a figure, or a study of our own."""

    name: str
    title: str
    needs: MappingProxyType[Scale, tuple[Need, ...]]
    """By scale; the study is not made at other scales."""
    benchmark: bool = False
    """Whether it is about speed, and made from the benchmarks' results."""

    def runs(self, scale: Scale, seeds: int | None = None) -> list[Run]:
        """The runs that the study needs."""
        return [run for need in self.needs.get(scale, ()) for run in need.runs(scale, seeds)]


def _study(
    name: str,
    title: str,
    needs: dict[Scale, tuple[Need, ...]] | None = None,
    *,
    benchmark: bool = False,
) -> Study:
    return Study(name=name, title=title, needs=MappingProxyType(needs or {}), benchmark=benchmark)


STUDIES: Final = MappingProxyType(
    {
        study.name: study
        for study in (
            _study("table1", "Ablation of ReLA", _ABLATION),
            _study("table2", "Parameters, training and decoding speed", benchmark=True),
            _study("table3", "More language pairs", _LANGUAGES),
            _study("table4", "FLOPs by formula"),
            _study("table5", "Alignment error rates", _ANALYSIS),
            _study("table6", "Head diversity", _ANALYSIS),
            _study("figure2", "Decoding speed by source length", benchmark=True),
            _study("figure3", "Sparsity by layer", _ANALYSIS),
            _study("figure4", "Alignment error rate by layer", _ANALYSIS),
            _study("figure5", "Head diversity by layer", _ANALYSIS),
            _study("figure6", "Null rate by layer, with shuffled targets", _OURS),
            _study("figure7", "Heads that specialise", _EXAMPLES),
            _study("figure8", "Null attention, examples", _EXAMPLES),
            _study("figure9", "Null attention in sentences of several clauses", _EXAMPLES),
            _study("figure10", "Pairs with the lowest and the highest null rates", _EXAMPLES),
            _study("stability", "What keeps ReLA-g's training stable", _STABILITY),
        )
    }
)
"""By name; "claims" and "all" stand for all of them."""
GROUPS: Final = ("claims", "all")
NAMES: Final = (*STUDIES, *GROUPS)


def chosen_studies(names: Sequence[str]) -> list[Study]:
    """The studies with these names, each once.

    Raises:
        ValueError: there is no study of such a name.
    """
    for name in names:
        if name not in NAMES:
            raise ValueError(f"there is no {name!r} to reproduce; choose from {', '.join(NAMES)}")
    if any(name in GROUPS for name in names):
        return list(STUDIES.values())
    return [STUDIES[name] for name in STUDIES if name in names]


def runs_of(studies: Iterable[Study], scale: Scale, seeds: int | None = None) -> list[Run]:
    """All runs that studies need, each once.

    First seeds come first, and short runs before long ones, so that tables fill up early.
    """
    runs = {run: None for study in studies for run in study.runs(scale, seeds)}
    return sorted(runs, key=lambda run: (run.seed, run.about_corpus.minutes[scale]))


def scales_of(study: Study) -> tuple[Scale, ...]:
    """The scales that a study is made at."""
    return tuple(scale for scale in SCALES if scale in study.needs)
