"""Claims about attention: section 5.2 of the paper."""

from collections.abc import Sequence
from typing import Final

from relakit.analysis.links import END_WEIGHTS, READINGS, EndWeight, Reading
from relakit.analysis.results import KINDS, Kind, ModelAnalysis
from relakit.analysis.tags import BEGIN_CLASS
from relakit.reproduce.claims import (
    Claim,
    Find,
    Finding,
    Verdict,
    all_of,
    by_count,
    higher,
    in_each_setting,
    lower,
)
from relakit.reproduce.evidence import (
    Evidence,
    Measure,
    Setting,
    layer_means,
    mean_diversity,
    mean_null_rate,
    mean_sparsity,
    means_over_seeds,
)
from relakit.reproduce.paper import TABLE_5, TABLE_6
from relakit.reproduce.records import RunRecord
from relakit.reproduce.rows import BASELINE, OURS
from relakit.reproduce.statistics import Difference, Seeds, difference, mean_interval
from relakit.reproduce.studies import COMPARED

OTHERS: Final = tuple(row for row in COMPARED if row != OURS)
"""What ReLA-g is compared with in Table 5."""
SPECIALISED, AWAKE = 0.8, 0.25
"""A head has specialised in a class of words if it is null that often in all, and at most that
often after them: the paper's examples."""
LEAST_QUERIES: Final = 100
"""Of a class: a rate over fewer says little."""


def _analyses(evidence: Evidence, setting: Setting) -> list[ModelAnalysis]:
    """Of all seeds of ReLA-g."""
    runs = evidence.runs(setting, OURS)
    return [run.attention for run in runs if run.attention is not None]


def _cross_is_sparsest(evidence: Evidence, setting: Setting) -> Finding | None:
    kinds: tuple[Kind, ...] = ("cross", "encoder", "decoder")
    found = [evidence.seeds(setting, OURS, mean_sparsity(kind)) for kind in kinds]
    rates = [seeds for seeds in found if seeds is not None]
    if len(rates) < len(kinds):
        return None
    others = [max(pair) for pair in zip(rates[1].values, rates[2].values, strict=True)]
    texts = [f"{kind} {rate.times(100).text()}%" for kind, rate in zip(kinds, rates, strict=True)]
    gap = mean_interval([c - o for c, o in zip(rates[0].values, others, strict=True)])
    return Finding(setting.label, ", ".join(texts), rates[0].n, higher(gap))


def _rises_with_depth(kind: Kind, number: str) -> Find:
    """The last layer's mean over heads minus the first one's."""

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
    kinds: tuple[Kind, ...] = ("encoder", "decoder", "cross")
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


def _shuffled_gap(evidence: Evidence, setting: Setting) -> Finding | None:
    """Every cross layer from the second, by intervals over sentences."""
    gaps = [a.shuffled.cross_gap for a in _analyses(evidence, setting) if a.shuffled is not None]
    if not gaps:
        return None
    verdicts: list[Verdict] = []
    texts = []
    for number, layer in enumerate(zip(*gaps, strict=True), start=1):
        means = Seeds(tuple(one.mean for one in layer))
        low, high = min(one.low for one in layer), max(one.high for one in layer)
        texts.append(f"{100 * means.mean:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
        if number > 1:
            verdicts.append(higher(Difference(means.mean, low, high, (len(gaps), len(gaps)))))
    measured = f"points by layer: {'; '.join(texts)}"
    return Finding(setting.label, measured, len(gaps), all_of(verdicts))


def _most_diverse(kind: Kind) -> Find:
    """At the temperature where ReLA-g is least diverse, against each of the others."""

    def find(evidence: Evidence) -> list[Finding]:
        return [
            finding
            for setting in evidence.settings()
            for row in (BASELINE, "entmax15")
            if (finding := _diversity_finding(evidence, setting, kind, row)) is not None
        ]

    return find


def _diversity_finding(
    evidence: Evidence, setting: Setting, kind: Kind, row: str
) -> Finding | None:
    ours = _lowest_diversity(evidence, setting, kind)
    others = evidence.seeds(setting, row, mean_diversity(kind, "1"))
    if ours is None or others is None:
        return None
    gap = difference(ours.values, others.values)
    measured = f"{ours.text(2)} against {others.text(2)} of {row}: {gap.text(2)} nats"
    return Finding(setting.label, measured, ours.n, higher(gap))


def _lowest_diversity(evidence: Evidence, setting: Setting, kind: Kind) -> Seeds | None:
    temperatures = {t for a in _analyses(evidence, setting) for t in a.kind(kind).diversity}
    found = [
        evidence.seeds(setting, OURS, mean_diversity(kind, temperature))
        for temperature in sorted(temperatures)
    ]
    return min((seeds for seeds in found if seeds is not None), key=lambda s: s.mean, default=None)


def alignment_measure(gold: str, reading: Reading, number: str, end: EndWeight) -> Measure:
    """AoL, AoH or the best head's error rate on a gold set."""

    def measure(record: RunRecord) -> float | None:
        study = record.alignments.get(gold)
        if study is None:
            return None
        estimates = getattr(study.estimates[end], reading)
        value: float = getattr(estimates, number).value
        return value

    return measure


def _aligns_better(reading: Reading, number: str) -> Find:
    """ReLA-g's error rate should be below those of all others."""

    def find(evidence: Evidence) -> list[Finding]:
        return [
            finding
            for setting in evidence.settings()
            for gold in _gold_sets(evidence, setting)
            for end in END_WEIGHTS
            if (finding := _alignment_finding(evidence, setting, gold, end, reading, number))
        ]

    return find


def _gold_sets(evidence: Evidence, setting: Setting) -> list[str]:
    return sorted({gold for run in evidence.runs(setting, OURS) for gold in run.alignments})


def _alignment_finding(
    evidence: Evidence, setting: Setting, gold: str, end: EndWeight, reading: Reading, number: str
) -> Finding | None:
    measure = alignment_measure(gold, reading, number, end)
    ours = evidence.seeds(setting, OURS, measure)
    verdicts, texts = [], []
    for row in OTHERS:
        other = evidence.seeds(setting, row, measure)
        if ours is None or other is None:
            continue
        gap = difference(ours.values, other.values)
        if ours.n == other.n == 1:
            gap = _over_sentences(evidence, setting, row, gold, end, reading, number)
        verdicts.append(lower(gap))
        texts.append(f"{other.times(100).text()} of {row}: {gap.times(100).text()}")
    if ours is None or not texts:
        return None
    measured = f"{ours.times(100).text()} against {'; against '.join(texts)} points of AER"
    where = f"{setting.label}, {gold} links, end of sentence {end}"
    return Finding(where, measured, ours.n, all_of(verdicts))


def _over_sentences(
    evidence: Evidence,
    setting: Setting,
    other: str,
    gold: str,
    end: EndWeight,
    reading: Reading,
    number: str,
) -> Difference:
    """Of single runs: by their intervals over sentences, as if the two were independent."""
    first, second = (
        getattr(getattr(run.alignments[gold].estimates[end], reading), number)
        for row in (OURS, other)
        for run in evidence.runs(setting, row)
        if gold in run.alignments
    )
    value = first.value - second.value
    half = (((first.high - first.low) / 2) ** 2 + ((second.high - second.low) / 2) ** 2) ** 0.5
    return Difference(value, value - half, value + half, (1, 1))


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
    assert classes is not None  # it is of a translation model
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


_NUMBER_TEXTS: Final = {"aol": "the mean of heads (AoL)", "aoh": "the best head of a layer (AoH)"}


def _reported_alignment(reading: Reading, number: str) -> str:
    ours, *others = (getattr(TABLE_5[row], f"{reading}_{number}") for row in (OURS, *OTHERS))
    return f"AER {ours:.1f} against {', '.join(f'{other:.1f}' for other in others)}"


def _reported_diversity(kind: Kind) -> str:
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
            f"Aligns better than the others: {reading} attention, {_NUMBER_TEXTS[number]}",
            _reported_alignment(reading, number),
            _aligns_better(reading, number),
        )
        for reading in READINGS
        for number in ("aol", "aoh")
    ),
    *(
        Claim(
            f"Heads differ more than those of softmax and 1.5-entmax, at every temperature: {kind}",
            _reported_diversity(kind),
            _most_diverse(kind),
        )
        for kind in KINDS
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
        "Targets with a wrong source are null more often, in every cross layer from the second",
        "Figure 6",
        in_each_setting(_shuffled_gap),
    ),
    Claim(
        f"Heads specialise: null {SPECIALISED:.0%} of the time or more, but at most {AWAKE:.0%} "
        "after one class of words",
        "95% in all, 0.03% after a comma; 83% in all, 0% after auxiliaries",
        in_each_setting(_specialised_heads),
    ),
)
