"""Claims about BLEU, on made-up scores: every verdict can be reached."""

import pytest
from made_up_records import claim_about, evidence_of, made_up_record, only_finding

from relakit.reproduce.claims import Verdict
from relakit.reproduce.records import RunRecord

SEEDS = (1, 2, 3)
CLOSE, FAR = (-0.1, 0.0, 0.1), (-4.0, 0.0, 4.0)
"""Deviations of three seeds"""


def seeds(row: str, score: float, deviations: tuple[float, ...]) -> list[RunRecord]:
    return [
        made_up_record(row, seed, bleu=score + deviation)
        for seed, deviation in zip(SEEDS, deviations, strict=True)
    ]


def verdict(claim: str, first: list[RunRecord], second: list[RunRecord]) -> Verdict:
    return only_finding(claim, *first, *second).verdict


@pytest.mark.parametrize(
    ("claim", "row"),
    [("RMSNorm alone loses BLEU", "relu-rms"), ("encoder only loses BLEU", "rela-g-encoder")],
)
def test_losses(claim: str, row: str) -> None:
    softmax = seeds("softmax", 33.0, CLOSE)
    assert verdict(claim, seeds(row, 31.0, CLOSE), softmax) == "holds"
    assert verdict(claim, seeds(row, 33.5, CLOSE), softmax) == "does not hold"
    assert verdict(claim, seeds(row, 32.0, FAR), softmax) == "not decidable"


@pytest.mark.parametrize(
    ("claim", "row", "other"),
    [
        ("ReLA-i is as good as softmax", "rela-i", "softmax"),
        ("ReLA-g is as good as softmax", "rela-g", "softmax"),
        ("ReLU is as good as GELU", "rela-g", "rela-g-gelu"),
        ("ReLU is as good as leaky ReLU", "rela-g", "rela-g-leaky"),
        ("in the decoder only is as good", "rela-g-decoder", "softmax"),
        ("in cross-attention only is as good", "rela-g-cross", "softmax"),
    ],
)
def test_at_most_one_bleu_behind(claim: str, row: str, other: str) -> None:
    compared = seeds(other, 33.0, CLOSE)
    assert verdict(claim, seeds(row, 32.5, CLOSE), compared) == "holds"
    assert verdict(claim, seeds(row, 36.0, CLOSE), compared) == "holds"
    assert verdict(claim, seeds(row, 31.0, CLOSE), compared) == "does not hold"
    assert verdict(claim, seeds(row, 32.5, FAR), compared) == "not decidable"


@pytest.mark.parametrize("row", ["rela-i", "rela-g"])
def test_better_than_the_norm_alone(row: str) -> None:
    claim = f"{'ReLA-i' if row == 'rela-i' else 'ReLA-g'} is better than RMSNorm alone"
    alone = seeds("relu-rms", 32.0, CLOSE)
    assert verdict(claim, seeds(row, 33.0, CLOSE), alone) == "holds"
    assert verdict(claim, seeds(row, 31.0, CLOSE), alone) == "does not hold"
    assert verdict(claim, seeds(row, 33.0, FAR), alone) == "not decidable"


@pytest.mark.parametrize(
    ("claim", "row", "if_failed"),
    [
        ("ReLA-i is as good as softmax", "rela-i", "does not hold"),
        ("RMSNorm alone loses BLEU", "relu-rms", "holds"),
    ],
)
def test_runs_that_fail_count(claim: str, row: str, if_failed: Verdict) -> None:
    softmax = seeds("softmax", 33.0, CLOSE)
    failed = [made_up_record(row, seed, bleu=None) for seed in SEEDS]
    finding = only_finding(claim, *failed, *softmax)
    assert (finding.verdict, finding.measured) == (if_failed, "all 3 runs failed")
    some = only_finding(claim, *seeds(row, 33.0, CLOSE)[:2], failed[2], *softmax)
    assert some.verdict == "not decidable"
    assert some.measured.endswith("; 1 more failed")


def test_equally_good() -> None:
    claim, layernorm = "RMSNorm and LayerNorm are equally good", "rela-g-layernorm"
    ours = seeds("rela-g", 33.0, CLOSE)
    assert verdict(claim, ours, seeds(layernorm, 33.3, CLOSE)) == "holds"
    assert verdict(claim, ours, seeds(layernorm, 31.0, CLOSE)) == "does not hold"
    assert verdict(claim, ours, seeds(layernorm, 33.0, FAR)) == "not decidable"


@pytest.mark.parametrize(
    ("scores", "expected", "measured"),
    [
        ((None, None), "holds", "2 of 2 runs learnt nothing"),
        ((None, 1.0), "not decidable", "1 of 2 runs learnt nothing; the others reach 1.0 BLEU"),
        ((None,), "not decidable", "1 of 1 runs learnt nothing"),
        ((7.0,), "not decidable", "0 of 1 runs learnt nothing; the others reach 7.0 BLEU"),
        ((None, 17.0), "not decidable", "1 of 2 runs learnt nothing; the others reach 17.0 BLEU"),
        (
            (30.0, 32.0),
            "does not hold",
            "0 of 2 runs learnt nothing; the others reach 31.0 ± 1.4 BLEU",
        ),
    ],
)
def test_relu_alone(scores: tuple[float | None, ...], expected: Verdict, measured: str) -> None:
    records = [made_up_record("relu", seed, bleu=bleu) for seed, bleu in enumerate(scores, 1)]
    finding = only_finding("ReLU alone fails", *records, made_up_record("softmax", bleu=33.0))
    if any(score is not None for score in scores):
        measured += ", softmax 33.0"
    assert (finding.verdict, finding.measured, finding.n) == (expected, measured, len(scores))


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ((-0.2, 0.0, 0.1), "holds"),
        ((-3.0, -3.1, -2.9), "does not hold"),
        ((-3.0, 0.0, 3.0), "not decidable"),
        ((0.5,), "not decidable"),
    ],
)
def test_further_languages(gaps: tuple[float, ...], expected: Verdict) -> None:
    records = [made_up_record("rela-g", bleu=0.0), made_up_record("softmax", bleu=50.0)]
    for corpus, gap in zip(("en-fr", "de-en", "fr-en"), gaps, strict=False):
        name = f"multi30k-{corpus}"
        records.append(made_up_record("softmax", corpus=name, bleu=30.0))
        records.append(made_up_record("rela-g", corpus=name, bleu=30.0 + gap))
    finding = only_finding("competitive on further language pairs", *records)
    assert finding.verdict == expected
    assert finding.n == len(gaps), "the pair of Table 1 is none of them"


def test_further_languages_on_which_training_fails() -> None:
    records = [made_up_record("rela-g", corpus="multi30k-en-fr", bleu=None)]
    finding = only_finding("competitive on further language pairs", *records)
    assert (finding.verdict, finding.measured) == ("does not hold", "all 1 runs failed")


def test_no_runs_no_finding() -> None:
    for words in ("ReLU alone fails", "ReLA-g is as good", "further language pairs"):
        assert claim_about(words).find(evidence_of()) == []
