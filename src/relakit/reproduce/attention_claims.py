"""Claims about attention: section 5.2 of the paper."""

from collections.abc import Sequence
from typing import Final

from relakit.analysis.results import ModelAnalysis, layer_means
from relakit.analysis.tags import BEGIN_CLASS
from relakit.attention_kinds import ATTENTION_KINDS, AttentionKind
from relakit.reproduce.claims import (
    Claim,
    Find,
    Finding,
    Verdict,
    all_of,
    by_count,
    higher,
    in_each_setting,
)
from relakit.reproduce.evidence import (
    Evidence,
    Setting,
    mean_diversity,
    mean_null_rate,
    mean_sparsity,
    means_over_seeds,
)
from relakit.reproduce.paper import TABLE_6
from relakit.reproduce.rows import BASELINE, OURS
from relakit.reproduce.statistics import Difference, Seeds, difference, mean_interval, over_seeds

SPECIALISED, AWAKE = 0.8, 0.25
"""A head has specialised in a class of words if it is null at least the first share of the time
overall, and at most the second share after such words, like the paper's examples."""
LEAST_QUERIES: Final = 100
"""Fewest queries of a class: a rate over fewer says little."""


def _analyses(evidence: Evidence, setting: Setting) -> list[ModelAnalysis]:
    """The analyses of all seeds of ReLA-g."""
    runs = evidence.runs(setting, OURS)
    return [run.attention for run in runs if run.attention is not None]


def _cross_is_sparsest(evidence: Evidence, setting: Setting) -> Finding | None:
    kinds: tuple[AttentionKind, ...] = ("cross", "encoder", "decoder")
    found = [evidence.seeds(setting, OURS, mean_sparsity(kind)) for kind in kinds]
    rates = [seeds for seeds in found if seeds is not None]
    if len(rates) < len(kinds):
        return None
    others = [max(pair) for pair in zip(rates[1].values, rates[2].values, strict=True)]
    texts = [f"{kind} {rate.times(100).text()}%" for kind, rate in zip(kinds, rates, strict=True)]
    gap = mean_interval([c - o for c, o in zip(rates[0].values, others, strict=True)])
    return Finding(setting.label, ", ".join(texts), rates[0].n, higher(gap))


def _rises_with_depth(kind: AttentionKind, number: str) -> Find:
    """The last layer's mean over heads minus the first layer's."""

    def find(evidence: Evidence, setting: Setting) -> Finding | None:
        layers = [
            layer_means(getattr(analysis.kind(kind), number))
            for analysis in _analyses(evidence, setting)
        ]
        if not layers:
            return None
        steps = [
            last - first for first, *_, last in layers if first is not None and last is not None
        ]
        gap = mean_interval(steps)
        return Finding(
            setting.label, f"{_profile(layers)}; last minus first {gap.times(100).text()} points",
            len(steps), higher(gap),
        )  # fmt: skip

    return in_each_setting(find)


def _profile(layers: Sequence[Sequence[float | None]]) -> str:
    """The mean over seeds of each layer, in percent."""
    return "by layer " + ", ".join(f"{100 * mean:.0f}%" for mean in means_over_seeds(layers))


def _peak_in_the_middle(evidence: Evidence, setting: Setting) -> Finding | None:
    layers = [
        layer_means(analysis.kind("cross").null_rate) for analysis in _analyses(evidence, setting)
    ]
    if not layers:
        return None
    peaks = [max(range(len(one)), key=lambda i: one[i] or 0.0) for one in layers]
    inside = [
        len(one) / 3 < peak + 1 <= len(one) - len(one) / 3
        for peak, one in zip(peaks, layers, strict=True)
    ]
    where = ", ".join(str(peak + 1) for peak in peaks)
    measured = f"{_profile(layers)}; peak at layer {where}"
    return Finding(setting.label, measured, len(peaks), by_count(sum(inside), len(inside)))


def _encoder_has_few_nulls(evidence: Evidence, setting: Setting) -> Finding | None:
    kinds: tuple[AttentionKind, ...] = ("encoder", "decoder", "cross")
    found = [evidence.seeds(setting, OURS, mean_null_rate(kind)) for kind in kinds]
    means = [seeds for seeds in found if seeds is not None]
    if len(means) < len(kinds):
        return None
    texts = [f"{kind} {mean.times(100).text()}%" for kind, mean in zip(kinds, means, strict=True)]
    gaps = [
        min(decoder, cross) - encoder
        for encoder, decoder, cross in zip(*(mean.values for mean in means), strict=True)
    ]
    return Finding(setting.label, ", ".join(texts), len(gaps), higher(mean_interval(gaps)))


def _shuffled_gap(first_layer: int) -> Find:
    """The gap in every cross layer from ``first_layer`` on, counted from 1.

    The paper's rates are over queries. Intervals are over sentences, which all count the same;
    where the two means lie on different sides of 0, nothing is decided.
    """

    def find(evidence: Evidence, setting: Setting) -> Finding | None:
        analyses = [a for a in _analyses(evidence, setting) if a.shuffled is not None]
        if not analyses:
            return None
        by_query = _mean_gaps_by_query(analyses)[first_layer - 1 :]
        gaps = [a.shuffled.cross_gap[first_layer - 1 :] for a in analyses if a.shuffled is not None]
        by_sentence = [
            over_seeds([gap.estimate for gap in layer]) for layer in zip(*gaps, strict=True)
        ]
        texts = [
            f"{100 * mean:+.1f} / {gap.times(100).text()}"
            for mean, gap in zip(by_query, by_sentence, strict=True)
        ]
        verdicts = [
            _gap_verdict(mean, gap, layers=len(by_query))
            for mean, gap in zip(by_query, by_sentence, strict=True)
        ]
        measured = f"points by layer, over queries / over sentences: {'; '.join(texts)}"
        return Finding(setting.label, measured, len(gaps), all_of(verdicts))

    return in_each_setting(find)


def _mean_gaps_by_query(analyses: Sequence[ModelAnalysis]) -> list[float]:
    """For each cross layer, the null rate with wrong sources minus the rate with right ones."""
    right = means_over_seeds([layer_means(a.kind("cross").null_rate) for a in analyses])
    wrong = means_over_seeds(
        [layer_means(a.shuffled.null_rate["cross"]) for a in analyses if a.shuffled is not None]
    )
    return [w - r for w, r in zip(wrong, right, strict=True)]


def _gap_verdict(by_query: float, by_sentence: Difference, *, layers: int) -> Verdict:
    """One of several layers is enough to refute the claim, so that takes a wider interval."""
    verdict = higher(by_sentence)
    if verdict == "does not hold":
        verdict = higher(by_sentence.for_one_of(layers))
    agree = (by_query > 0) == (by_sentence.value > 0)
    return verdict if agree else "not decidable"


def _most_diverse(kind: AttentionKind) -> Find:
    """ReLA-g at the temperature where it is least diverse, against each of the others."""

    def find(evidence: Evidence) -> list[Finding]:
        return [
            finding
            for setting in evidence.settings()
            for row in (BASELINE, "entmax15")
            if (finding := _diversity_finding(evidence, setting, kind, row)) is not None
        ]

    return find


def _diversity_finding(
    evidence: Evidence, setting: Setting, kind: AttentionKind, row: str
) -> Finding | None:
    ours = _lowest_diversity(evidence, setting, kind)
    others = evidence.seeds(setting, row, mean_diversity(kind, "1"))
    if ours is None or others is None:
        return None
    gap = difference(ours.values, others.values)
    measured = f"{ours.text(2)} against {others.text(2)} of {row}: {gap.text(2)} nats"
    return Finding(setting.label, measured, gap.n, higher(gap))


def _lowest_diversity(evidence: Evidence, setting: Setting, kind: AttentionKind) -> Seeds | None:
    temperatures = {t for a in _analyses(evidence, setting) for t in a.kind(kind).diversity}
    found = [
        evidence.seeds(setting, OURS, mean_diversity(kind, temperature))
        for temperature in sorted(temperatures)
    ]
    return min((seeds for seeds in found if seeds is not None), key=lambda s: s.mean, default=None)


def _specialised_heads(evidence: Evidence, setting: Setting) -> Finding | None:
    analyses = _analyses(evidence, setting)
    if not analyses:
        return None
    found = [_specialists(analysis) for analysis in analyses]
    best = max((one for several in found for one in several), default=None, key=lambda s: s[1])
    with_one = sum(bool(several) for several in found)
    measured = f"{with_one} of {len(found)} models have such a head"
    if best is not None:
        name, overall, after = best
        measured += (
            f"; one is null {100 * overall:.0f}% of the time, {100 * after:.0f}% after {name}"
        )
    verdict = by_count(with_one, len(found))
    if not with_one and any(_has_no_tags(analysis) for analysis in analyses):
        measured += "; parts of speech are not known, only commas, capitals and the like"
        verdict = "not decidable"
    return Finding(setting.label, measured, len(found), verdict)


def _has_no_tags(analysis: ModelAnalysis) -> bool:
    return analysis.classes is None or analysis.classes.origin != "tags"


def _specialists(analysis: ModelAnalysis) -> list[tuple[str, float, float]]:
    """Class, null rate and null rate after the class, of every head that has specialised."""
    rates, classes = analysis.kind("cross").null_rate, analysis.classes
    assert classes is not None  # only translation models are analyzed here
    counts = dict(zip(classes.classes, classes.counts, strict=True))
    return [
        (name, overall, after)
        for layer, heads in enumerate(rates)
        for head, overall in enumerate(heads)
        for name, after in zip(classes.classes, classes.null_rate[layer][head], strict=True)
        if name != BEGIN_CLASS and counts[name] >= LEAST_QUERIES
        if overall is not None and after is not None
        if overall >= SPECIALISED and after <= AWAKE
    ]


def _reported_diversity(kind: AttentionKind) -> str:
    ours = min(getattr(values, kind) for (row, _), values in TABLE_6.items() if row == OURS)
    softmax, entmax = (getattr(TABLE_6[row, "1"], kind) for row in (BASELINE, "entmax15"))
    return f"{ours:.2f} against {softmax:.2f} and {entmax:.2f}"


ATTENTION_CLAIMS: Final = (
    Claim(
        "Cross-attention is the sparsest of the three",
        "Figure 3",
        in_each_setting(_cross_is_sparsest),
    ),
    Claim(
        "Decoder self-attention is sparser in the last layer than in the first",
        "Figure 3",
        _rises_with_depth("decoder", "sparsity"),
    ),
    Claim(
        "Cross-attention is sparser in the last layer than in the first",
        "Figure 3",
        _rises_with_depth("cross", "sparsity"),
    ),
    *(
        Claim(
            f"Heads differ more than those of softmax and 1.5-entmax, at every temperature: {kind}",
            _reported_diversity(kind),
            _most_diverse(kind),
        )
        for kind in ATTENTION_KINDS
    ),
    Claim(
        "The encoder has the fewest null queries",
        "Figure 6",
        in_each_setting(_encoder_has_few_nulls),
    ),
    Claim(
        "Decoder self-attention is null more often in the last layer than in the first",
        "Figure 6",
        _rises_with_depth("decoder", "null_rate"),
    ),
    Claim(
        "Cross-attention is null most often at a layer in the middle third",
        "Figure 6: layer 3 of 6",
        in_each_setting(_peak_in_the_middle),
    ),
    Claim(
        "Targets with a wrong source are null more often, in every cross layer",
        "Figure 6",
        _shuffled_gap(1),
    ),
    Claim(
        "The same in every layer but the first, whose queries have hardly seen their sentence",
        "Figure 6",
        _shuffled_gap(2),
    ),
    Claim(
        f"Heads specialise: null {SPECIALISED:.0%} of the time or more, but at most {AWAKE:.0%} "
        "after one class of words",
        "95% in all, 0.03% after a comma; 83% in all, 0% after auxiliaries",
        in_each_setting(_specialised_heads),
    ),
)
