"""Result files with numbers that are chosen, not measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from relakit.analysis.aer import AlignmentScore, AttentionScores
from relakit.analysis.alignment_bootstrap import (
    AlignmentEstimates,
    BootstrapSettings,
    ReadingEstimates,
)
from relakit.analysis.estimate import CONFIDENCE, Estimate
from relakit.analysis.links import END_WEIGHTS, READINGS
from relakit.analysis.ranking import ChosenHead, GoodShare, QualityRanking, RankingAreas
from relakit.analysis.results import (
    AlignmentResult,
    AlignmentSettings,
    AnalysisSettings,
    ClassNullRates,
    FlopCounts,
    Interval,
    KindResult,
    ModelAnalysis,
    ShuffledResult,
)
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.reproduce.claims import Claim, Finding
from relakit.reproduce.claims_part import CLAIMS
from relakit.reproduce.corpora import Scale
from relakit.reproduce.evidence import Evidence
from relakit.reproduce.records import (
    AlignmentStudy,
    CurvePoint,
    Records,
    RunRecord,
    RunScores,
    TrainingRecord,
)
from relakit.reproduce.runs import Run, portable_recipe

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
HEADS = 2


def made_up_record(
    row: str = "rela-g",
    seed: int = 1,
    *,
    scale: Scale = "tiny",
    corpus: str = "multi30k-en-de",
    bleu: float | None = 30.0,
    seconds: float = 600.0,
    recipe: dict[str, Any] | None = None,
    attention: ModelAnalysis | None = None,
    alignments: Mapping[str, AlignmentStudy] | None = None,
    rankings: Mapping[str, QualityRanking] | None = None,
) -> RunRecord:
    """The record of a run; one without BLEU has failed. The recipe is today's if none is given."""
    if recipe is None:
        run = Run(scale=scale, corpus=corpus, row=row, seed=seed)
        recipe = portable_recipe(run.recipe(Path("data")))
    return RunRecord(
        scale=scale,
        corpus=corpus,
        row=row,
        seed=seed,
        recipe=recipe,
        machine={"cpu": "a processor", "torch": "2.10"},
        training=TrainingRecord(
            verdict="failed" if bleu is None else "finished",
            reason="made up" if bleu is None else "all updates are done",
            updates=100,
            epochs=2.0,
            seconds=seconds,
            target_tokens=120_000,
            parameters=1_000_000,
            averaged_checkpoints=5,
            precision="fp32",
        ),
        scores={}
        if bleu is None
        else {"test": RunScores(loss=1.5, bleu=bleu, bleu_signature=SIGNATURE)},
        curve=(CurvePoint(update=50, training_loss=4.0, loss=3.5, bleu=bleu),),
        attention=attention,
        alignments=dict(alignments or {}),
        rankings=dict(rankings or {}),
    )


def made_up_analysis(
    *,
    sparsity: Mapping[AttentionKind, Sequence[float]] | None = None,
    null_rate: Mapping[AttentionKind, Sequence[float]] | None = None,
    diversity: Mapping[str, float] | None = None,
    gap: Sequence[tuple[float, float, float]] | None = None,
    query_gap: Sequence[float] | None = None,
    after_comma: float = 0.5,
    commas: int = 100,
    classes: Literal["tags", "token classes"] = "token classes",
    output_rms: float | None = 8.0,
    closed_gates: float | None = None,
    attention: str = "rela-g",
) -> ModelAnalysis:
    """An analysis of three layers; rates are by layer, and those of its heads are equal.

    Args:
        sparsity: by kind; 0.5 in every layer where it is not given.
        null_rate: likewise; 0.1.
        diversity: of all kinds and layers, by temperature.
        gap: by cross layer: mean, low and high of the gap to shuffled pairs, over sentences.
        query_gap: the same over queries; the means of ``gap`` if it is not given.
        after_comma: the null rate of every cross-attention head after a comma.
        commas: how many queries that rate is over.
        classes: where the classes of words come from.
        output_rms: of all layers, before the norm; None as in files from before it was measured.
        closed_gates: of all layers; None for a norm without gates.
        attention: the name of the attention.
    """
    sparse, null = dict(sparsity or {}), dict(null_rate or {})
    layers = 3
    gaps = gap or [(0.05, 0.04, 0.06)] * layers
    query_gaps = query_gap or [mean for mean, _, _ in gaps]
    own = null.get("cross", [0.1] * layers)

    def by_head(rates: Sequence[float]) -> tuple[tuple[float, ...], ...]:
        return tuple((rate,) * HEADS for rate in rates)

    kinds = tuple(
        KindResult(
            kind=kind,
            attention=attention,
            queries=100,
            sparsity=by_head(sparse.get(kind, [0.5] * layers)),
            null_rate=by_head(null.get(kind, [0.1] * layers)),
            layer_null_rate=(0.0,) * layers,
            first_sink=by_head([0.1] * layers),
            end_sink=None if kind == "decoder" else by_head([0.1] * layers),
            diversity={t: (value,) * layers for t, value in (diversity or {"1": 0.5}).items()},
            output_rms=None if output_rms is None else (output_rms,) * layers,
            closed_gates=None if closed_gates is None else (closed_gates,) * layers,
        )
        for kind in ATTENTION_KINDS
    )
    return ModelAnalysis(
        name="made up",
        settings=AnalysisSettings(),
        pairs=10,
        source_tokens=100,
        target_tokens=100,
        kinds=kinds,
        shuffled=ShuffledResult(
            pairs=10,
            null_rate={
                "decoder": kinds[1].null_rate,
                "cross": by_head([round(a + b, 4) for a, b in zip(own, query_gaps, strict=True)]),
            },
            cross_gap=tuple(Interval(mean=m, low=low, high=high) for m, low, high in gaps),
        ),
        classes=ClassNullRates(
            origin=classes,
            classes=("word", "comma"),
            counts=(900, commas),
            null_rate=(((0.5, after_comma),) * HEADS,) * layers,
        ),
        flops=(FlopCounts(length=100, softmax=239_200, rela_g=592_100),),
    )


def made_up_alignment(
    aer: float,
    half: float = 0.01,
    *,
    shifted: float | None = None,
    sure: int = 100,
    digest: str | None = None,
) -> AlignmentStudy:
    """All error rates are ``aer``, with intervals of ``half`` to both sides.

    Those of shifted attention may be others; ``sure`` and ``digest`` are of the gold links.
    """
    rates = dict(zip(READINGS, (aer, aer if shifted is None else shifted), strict=True))
    readings = {
        reading: ReadingEstimates(
            **dict.fromkeys(
                ("aol", "aoh", "best_head"), Estimate(value=rate, low=rate - half, high=rate + half)
            )
        )
        for reading, rate in rates.items()
    }
    score = AlignmentScore(100, sure, round(100 - 100 * aer), round(100 - 100 * aer))
    scores = AttentionScores(((score,) * HEADS,) * 3, (score,) * 3)
    both = dict.fromkeys(READINGS, scores)
    return AlignmentStudy(
        result=AlignmentResult(settings=AlignmentSettings(), attention="rela-g", pairs=10, **both),
        estimates={
            end: AlignmentEstimates(bootstrap=BootstrapSettings(), end=end, pairs=10, **readings)
            for end in END_WEIGHTS
        },
        gold_digest=digest,
    )


def made_up_ranking(
    auc: float, half: float = 0.05, *, bad: Sequence[str] = ("shuffled",)
) -> QualityRanking:
    """The null rate has the area ``auc``, with an interval of ``half`` to both sides."""
    area = Estimate(value=auc, low=auc - half, high=auc + half)
    areas = RankingAreas(
        good=100,
        bad=100,
        null_rate=area,
        good_share=GoodShare(lowest=0.8, highest=0.2, all=0.5),
        layer_null_rate=(area,) * 3,
        best_head=ChosenHead(layer=1, head=0, auc_when_chosen=auc, auc=area),
        low_mass=None,
        cross_entropy=Estimate(value=0.95, low=0.94, high=0.96),
    )
    return QualityRanking(
        good_labels=("clean",),
        confidence=CONFIDENCE,
        chosen_on=50,
        overall=areas,
        by_label=dict.fromkeys(bad, areas),
    )


def evidence_of(*records: RunRecord, results: Path = Path("nowhere")) -> Evidence:
    return Evidence(Records(records), results)


def claim_about(words: str) -> Claim:
    """The one claim on the page whose text has these words."""
    (claim,) = (claim for claim in CLAIMS if words in claim.text)
    return claim


def only_finding(words: str, *records: RunRecord) -> Finding:
    """What the claim with these words finds in records of one setting."""
    (finding,) = claim_about(words).find(evidence_of(*records))
    return finding
