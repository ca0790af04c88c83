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
def test_at_most_half_a_bleu_behind(claim: str, row: str, other: str) -> None:
    compared = seeds(other, 33.0, CLOSE)
    assert verdict(claim, seeds(row, 32.8, CLOSE), compared) == "holds"
    assert verdict(claim, seeds(row, 36.0, CLOSE), compared) == "holds"
    assert verdict(claim, seeds(row, 32.2, CLOSE), compared) == "does not hold"
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
    assert (finding.verdict, finding.n) == (if_failed, (3, 3))
    assert finding.measured == f"3 runs of {row}, all failed against 33.0 ± 0.1"
    one = only_finding(claim, failed[0], *softmax)
    assert (one.verdict, one.n) == ("not decidable", (1, 3))
    some = only_finding(claim, *seeds(row, 33.0, CLOSE)[:2], failed[2], *softmax)
    assert some.verdict == "not decidable"
    assert "(1 more failed) against 33.0" in some.measured
    agreeing = only_finding(claim, *seeds(row, 31.0, CLOSE)[:2], failed[2], *softmax)
    assert agreeing.verdict == if_failed, "the others are worse, too"


@pytest.mark.parametrize(
    ("claim", "row", "other", "if_failed"),
    [
        ("ReLA-g is better than RMSNorm alone", "rela-g", "relu-rms", "holds"),
        ("ReLU is as good as GELU", "rela-g", "rela-g-gelu", "holds"),
        ("RMSNorm alone loses BLEU", "relu-rms", "softmax", "does not hold"),
        ("equally good", "rela-g", "rela-g-layernorm", "does not hold"),
    ],
)
def test_runs_of_the_other_row_that_fail_count(
    claim: str, row: str, other: str, if_failed: Verdict
) -> None:
    ours = seeds(row, 33.0, CLOSE)
    failed = [made_up_record(other, seed, bleu=None) for seed in SEEDS]
    assert verdict(claim, ours, failed) == if_failed
    assert verdict(claim, ours, failed[:1]) == "not decidable", "one run"
    if if_failed == "holds":
        better = seeds(other, 36.0, CLOSE)[:2]
        assert verdict(claim, ours, [*better, failed[2]]) == "not decidable"


def test_two_rows_that_cannot_be_trained_are_not_compared() -> None:
    records = [made_up_record(row, n, bleu=None) for row in ("rela-g", "softmax") for n in SEEDS]
    assert only_finding("ReLA-g is as good as softmax", *records).verdict == "not decidable"


def test_equally_good() -> None:
    claim, layernorm = "RMSNorm and LayerNorm are equally good", "rela-g-layernorm"
    ours = seeds("rela-g", 33.0, CLOSE)
    assert verdict(claim, ours, seeds(layernorm, 33.2, CLOSE)) == "holds"
    assert verdict(claim, ours, seeds(layernorm, 31.0, CLOSE)) == "does not hold"
    assert verdict(claim, ours, seeds(layernorm, 33.0, FAR)) == "not decidable"


@pytest.mark.parametrize(
    ("scores", "expected", "measured"),
    [
        ((None, None), "holds", "2 of 2 runs failed (made up)"),
        ((None,), "not decidable", "1 of 1 run failed (made up)"),
        ((7.0,), "not decidable", "0 of 1 run failed; 1 run reached 7.0 BLEU"),
        (
            (None, 17.0),
            "not decidable",
            "1 of 2 runs failed (made up); the others reach 17.0 BLEU",
        ),
        ((30.0, 32.0), "does not hold", "0 of 2 runs failed; 2 runs reached 31.0 ± 1.4 BLEU"),
    ],
)
def test_relu_alone(scores: tuple[float | None, ...], expected: Verdict, measured: str) -> None:
    records = [made_up_record("relu", seed, bleu=bleu) for seed, bleu in enumerate(scores, 1)]
    finding = only_finding("ReLU alone fails", *records)
    assert (finding.verdict, finding.measured, finding.n) == (expected, measured, len(scores))
    beside = only_finding("ReLU alone fails", *records, made_up_record("softmax", bleu=33.0))
    assert (beside.verdict, beside.measured) == (expected, f"{measured}; softmax 33.0")


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


def further(row: str, *scores: float | None) -> list[RunRecord]:
    corpora = ("multi30k-en-fr", "multi30k-de-en", "multi30k-fr-en")
    return [
        made_up_record(row, corpus=corpus, bleu=score)
        for corpus, score in zip(corpora, scores, strict=False)
    ]


@pytest.mark.parametrize(
    ("ours", "softmax", "expected", "measured"),
    [
        ((None,), (), "not decidable", "1 of 1 run of rela-g failed"),
        ((None, None), (30.0, 30.0), "does not hold", "2 of 2 runs of rela-g failed"),
        ((30.0, 30.0), (None, None), "holds", "2 of 2 runs of softmax failed"),
        ((None, 30.0), (), "not decidable", "1 of 2 runs of rela-g failed"),
        ((None, None), (None, None), "not decidable", "rela-g failed; 2 of 2 runs of softmax"),
        ((30.0, 30.0, None), (30.0, 30.0, 30.0), "not decidable", "1 of 3 runs of rela-g failed"),
        ((20.0, 20.0, None), (30.0, 30.0, 30.0), "does not hold", "1 of 3 runs of rela-g failed"),
        ((30.0, 30.0, 30.0), (30.0, 30.0, None), "holds", "1 of 3 runs of softmax failed"),
    ],
)
def test_further_languages_on_which_training_fails(
    ours: tuple[float | None, ...],
    softmax: tuple[float | None, ...],
    expected: Verdict,
    measured: str,
) -> None:
    records = [*further("rela-g", *ours), *further("softmax", *softmax)]
    finding = only_finding("competitive on further language pairs", *records)
    assert finding.verdict == expected
    assert measured in finding.measured


def test_no_runs_no_finding() -> None:
    for words in ("ReLU alone fails", "ReLA-g is as good as softmax", "further language pairs"):
        assert claim_about(words).find(evidence_of()) == []
