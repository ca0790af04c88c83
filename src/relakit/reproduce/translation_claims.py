"""Claims about translation: Tables 1 and 3."""

from typing import Final

from relakit.reproduce.claims import (
    Claim,
    Comparison,
    Finding,
    Judge,
    at_most_below,
    by_count,
    lower,
    within,
)
from relakit.reproduce.corpora import SCALES
from relakit.reproduce.evidence import Evidence, Setting, bleu
from relakit.reproduce.rows import BASELINE, OURS
from relakit.reproduce.statistics import mean_interval
from relakit.reproduce.studies import MAIN_CORPUS, STUDIES

MARGIN: Final = 1.0
"""BLEU that a model may be behind another and still be called as good."""


def _by_bleu(first: str, second: str, judge: Judge) -> Comparison:
    return Comparison(first, second, bleu, judge, "BLEU")


def _relu_alone(evidence: Evidence) -> list[Finding]:
    return [
        finding
        for setting in evidence.settings()
        if (finding := _relu_alone_in(evidence, setting)) is not None
    ]


def _relu_alone_in(evidence: Evidence, setting: Setting) -> Finding | None:
    runs = evidence.runs(setting, "relu")
    if not runs:
        return None
    failed = evidence.failed(setting, "relu")
    scores = evidence.seeds(setting, "relu", bleu)
    measured = f"{failed} of {len(runs)} runs failed"
    if scores is not None:
        measured += f"; the others reach {scores.text()} BLEU"
    return Finding(setting.label, measured, len(runs), by_count(failed, len(runs)))


def _further_languages(evidence: Evidence) -> list[Finding]:
    """The mean over language pairs, as there is one run of each."""
    findings = []
    for scale in SCALES:
        corpora = {need.corpus for need in STUDIES["table3"].needs.get(scale, ())}
        gaps = []
        for corpus in sorted(corpora - {MAIN_CORPUS[scale]}):
            scores = [evidence.seeds(Setting(scale, corpus), row, bleu) for row in (OURS, BASELINE)]
            if scores[0] is not None and scores[1] is not None:
                gaps.append(scores[0].mean - scores[1].mean)
        if gaps:
            found = mean_interval(gaps)
            low, high = min(gaps), max(gaps)
            measured = (
                f"ReLA-g minus softmax on {len(gaps)} further pairs: {low:+.1f} to {high:+.1f} "
                f"BLEU, mean {found.text()}"
            )
            verdict = at_most_below(MARGIN)(found)
            findings.append(Finding(f"{len(gaps)} pairs, {scale}", measured, len(gaps), verdict))
    return findings


TRANSLATION_CLAIMS: Final = (
    Claim("ReLU alone fails to train", "training fails", _relu_alone),
    Claim(
        "RMSNorm alone loses BLEU against softmax",
        "26.0 against 26.9",
        _by_bleu("relu-rms", BASELINE, lower),
    ),
    Claim(
        f"ReLA-i is as good as softmax (at most {MARGIN:g} BLEU behind)",
        "26.5 against 26.9",
        _by_bleu("rela-i", BASELINE, at_most_below(MARGIN)),
    ),
    Claim(
        f"ReLA-g is as good as softmax (at most {MARGIN:g} BLEU behind)",
        "26.6 against 26.9",
        _by_bleu(OURS, BASELINE, at_most_below(MARGIN)),
    ),
    Claim(
        f"RMSNorm and LayerNorm are equally good (within {MARGIN:g} BLEU)",
        "26.6 against 26.6",
        _by_bleu(OURS, "rela-g-layernorm", within(MARGIN)),
    ),
    Claim(
        f"ReLU is at least as good as GELU (at most {MARGIN:g} BLEU behind)",
        "26.6 against 26.5",
        _by_bleu(OURS, "rela-g-gelu", at_most_below(MARGIN)),
    ),
    Claim(
        f"ReLU is at least as good as leaky ReLU (at most {MARGIN:g} BLEU behind)",
        "26.6 against 26.5",
        _by_bleu(OURS, "rela-g-leaky", at_most_below(MARGIN)),
    ),
    Claim(
        "ReLA-g in the encoder only loses BLEU against softmax",
        "26.3 against 26.9",
        _by_bleu("rela-g-encoder", BASELINE, lower),
    ),
    Claim(
        f"ReLA-g in the decoder only does not (at most {MARGIN:g} BLEU behind)",
        "27.0 against 26.9",
        _by_bleu("rela-g-decoder", BASELINE, at_most_below(MARGIN)),
    ),
    Claim(
        f"ReLA-g in cross-attention only does not (at most {MARGIN:g} BLEU behind)",
        "27.0 against 26.9",
        _by_bleu("rela-g-cross", BASELINE, at_most_below(MARGIN)),
    ),
    Claim(
        f"ReLA-g is competitive on further language pairs (mean at most {MARGIN:g} BLEU behind)",
        "-0.3 to +0.7 BLEU",
        _further_languages,
    ),
)
