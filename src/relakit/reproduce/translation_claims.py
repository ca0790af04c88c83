"""Claims about translation: Tables 1 and 3."""

from typing import Final

from relakit.reproduce.claims import (
    Claim,
    Comparison,
    Finding,
    Judge,
    Verdict,
    at_most_below,
    by_count,
    higher,
    in_each_setting,
    lower,
    within,
)
from relakit.reproduce.corpora import SCALES
from relakit.reproduce.evidence import Evidence, Setting, bleu
from relakit.reproduce.paper import TABLE_1
from relakit.reproduce.rows import BASELINE, OURS
from relakit.reproduce.statistics import mean_interval
from relakit.reproduce.studies import MAIN_CORPUS, STUDIES

MARGIN: Final = 1.0
"""BLEU that a model may be behind another and still be called as good."""

_as_good: Final = at_most_below(MARGIN)


def _claim(text: str, first: str, second: str, judge: Judge) -> Claim:
    """About the BLEU of two rows of Table 1."""
    reported = f"{TABLE_1[first]:.1f} against {TABLE_1[second]:.1f}"
    # A model that cannot be trained is worse, and never as good.
    if_failed: Verdict = "holds" if judge is lower else "does not hold"
    return Claim(text, reported, Comparison(first, second, bleu, judge, "BLEU", if_failed))


def _relu_alone(evidence: Evidence, setting: Setting) -> Finding | None:
    runs = evidence.runs(setting, "relu")
    softmax = evidence.seeds(setting, BASELINE, bleu)
    if not runs or softmax is None:
        return None
    failed = evidence.failed(setting, "relu")
    scores = evidence.seeds(setting, "relu", bleu)
    measured = f"{failed} of {len(runs)} runs learnt nothing"
    if scores is not None:
        measured += f"; the others reach {scores.text()} BLEU, softmax {softmax.text()}"
    return Finding(setting.label, measured, len(runs), by_count(failed, len(runs)))


def _further_languages(evidence: Evidence) -> list[Finding]:
    """The mean over language pairs, as there is one run of each."""
    findings = []
    for scale in SCALES:
        corpora = {need.corpus for need in STUDIES["table3"].needs.get(scale, ())}
        gaps, failed = [], 0
        for corpus in sorted(corpora - {MAIN_CORPUS[scale]}):
            failed += evidence.failed(Setting(scale, corpus), OURS)
            scores = [evidence.seeds(Setting(scale, corpus), row, bleu) for row in (OURS, BASELINE)]
            if scores[0] is not None and scores[1] is not None:
                gaps.append(scores[0].mean - scores[1].mean)
        if failed and not gaps:
            findings.append(Finding(scale, f"all {failed} runs failed", failed, "does not hold"))
        if gaps:
            found = mean_interval(gaps)
            low, high = min(gaps), max(gaps)
            measured = (
                f"ReLA-g minus softmax on {len(gaps)} further pairs: {low:+.1f} to {high:+.1f} "
                f"BLEU, mean {found.text()}"
            )
            verdict = _as_good(found)
            if failed:
                measured += f"; {failed} runs of ReLA-g failed"
                verdict = "does not hold"
            findings.append(Finding(f"{len(gaps)} pairs, {scale}", measured, len(gaps), verdict))
    return findings


_AS_GOOD: Final = f"(at most {MARGIN:g} BLEU behind)"
TRANSLATION_CLAIMS: Final = (
    Claim(
        "ReLU alone fails to train",
        "the training loss does not decrease",
        in_each_setting(_relu_alone),
    ),
    _claim("RMSNorm alone loses BLEU against softmax", "relu-rms", BASELINE, lower),
    _claim(f"ReLA-i is as good as softmax {_AS_GOOD}", "rela-i", BASELINE, _as_good),
    _claim(f"ReLA-g is as good as softmax {_AS_GOOD}", OURS, BASELINE, _as_good),
    _claim("ReLA-i is better than RMSNorm alone", "rela-i", "relu-rms", higher),
    _claim("ReLA-g is better than RMSNorm alone", OURS, "relu-rms", higher),
    _claim(
        f"RMSNorm and LayerNorm are equally good in ReLA-g (within {MARGIN:g} BLEU)",
        OURS,
        "rela-g-layernorm",
        within(MARGIN),
    ),
    _claim(f"ReLU is as good as GELU {_AS_GOOD}", OURS, "rela-g-gelu", _as_good),
    _claim(f"ReLU is as good as leaky ReLU {_AS_GOOD}", OURS, "rela-g-leaky", _as_good),
    _claim(
        "ReLA-g in the encoder only loses BLEU against softmax", "rela-g-encoder", BASELINE, lower
    ),
    _claim(
        f"ReLA-g in the decoder only is as good as softmax {_AS_GOOD}",
        "rela-g-decoder",
        BASELINE,
        _as_good,
    ),
    _claim(
        f"ReLA-g in cross-attention only is as good as softmax {_AS_GOOD}",
        "rela-g-cross",
        BASELINE,
        _as_good,
    ),
    Claim(
        f"ReLA-g is competitive on further language pairs, on average {_AS_GOOD}",
        "-0.3 to +0.7 BLEU",
        _further_languages,
    ),
)
