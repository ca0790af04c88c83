"""Speeds from the benchmarks' files, and the claim about them."""

from pathlib import Path

import pytest
from made_up_records import claim_about, evidence_of

from relakit.reproduce.claims import Verdict
from relakit.reproduce.speed import decoding_speed, decoding_speed_by_length, training_speed

COLUMNS = "case,system,attention,precision,source_length,ratio,ratio_lower,ratio_upper"


def write(results: Path, name: str, *rows: str) -> None:
    path = results / "benchmarks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in (COLUMNS, *rows)), encoding="utf-8")


def test_only_relakit_in_float32_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        "table2-train.csv",
        "training,relakit,rela-g,fp32,,1.05,1.03,1.13",
        "training,relakit,rela-g,bf16,,2,2,2",
        "training,joeynmt,softmax,fp32,,3,3,3",
        "training,relakit,sparsemax,fp32,,,,",
    )
    write(
        tmp_path,
        "table2-decode.csv",
        "batch 1,relakit,rela-g,fp32,,0.98,0.9,1.1",
        "batch 64,relakit,rela-g,fp32,,7,7,7",
        "length,relakit,rela-g,fp32,12.5,1.5,1.4,1.6",
    )
    evidence = evidence_of(results=tmp_path)
    assert {name: s.text for name, s in training_speed(evidence).items()} == {
        "rela-g": "1.05 (1.03 to 1.13)"
    }
    assert decoding_speed(evidence)["rela-g"].ratio == 0.98
    by_length = decoding_speed_by_length(evidence)
    assert by_length[12.5]["rela-g"].short == "1.50"
    assert list(by_length) == [12.5]


def test_without_benchmarks(tmp_path: Path) -> None:
    evidence = evidence_of(results=tmp_path)
    assert training_speed(evidence) == decoding_speed(evidence) == {}
    assert decoding_speed_by_length(evidence) == {}


@pytest.mark.parametrize(
    ("sparsemax", "expected"),
    [
        ("0.5,0.4,0.6", "holds"),
        ("1.5,1.4,1.6", "does not hold"),
        ("1.0,0.9,1.04", "not decidable"),
    ],
)
def test_verdict(sparsemax: str, expected: Verdict, tmp_path: Path) -> None:
    write(
        tmp_path,
        "table2-train.csv",
        "training,relakit,rela-g,fp32,,1.05,1.03,1.13",
        f"training,relakit,sparsemax,fp32,,{sparsemax}",
    )
    (finding,) = claim_about("trains and decodes faster").find(evidence_of(results=tmp_path))
    assert (finding.setting, finding.verdict) == ("training", expected)


def test_only_decoders_that_are_written_alike_are_compared(tmp_path: Path) -> None:
    rows = (
        "batch 1,relakit,rela-g,fp32,,0.98,0.9,1.1",
        "batch 1,relakit,entmax15,fp32,,0.2,0.1,0.3",
    )
    claim = claim_about("trains and decodes faster")
    write(tmp_path, "table2-decode.csv", *rows)  # in C++ those that have kernels
    assert claim.find(evidence_of(results=tmp_path)) == []
    write(tmp_path, "table2-decode-pytorch.csv", *rows)
    (finding,) = claim.find(evidence_of(results=tmp_path))
    assert (finding.setting, finding.verdict) == ("decoding one by one, in PyTorch", "holds")
