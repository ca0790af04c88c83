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
    assert {name: s.text for name, s in training_speed(tmp_path).items()} == {
        "rela-g": "1.05 (1.03 to 1.13)"
    }
    assert decoding_speed(tmp_path)["rela-g"].ratio == 0.98
    by_length = decoding_speed_by_length(tmp_path)
    assert by_length[12.5]["rela-g"].short == "1.50"
    assert list(by_length) == [12.5]


def test_without_benchmarks(tmp_path: Path) -> None:
    assert training_speed(tmp_path) == decoding_speed(tmp_path) == {}
    assert decoding_speed_by_length(tmp_path) == {}


def test_another_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "benchmarks" / "table2-train.csv"
    path.parent.mkdir()
    path.write_text("system,attention\nrelakit,rela-g\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"table2-train.csv is not .* no column case, precision"):
        training_speed(tmp_path)


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        ("0.95,0.90,0.99", "holds"),
        ("0.91,0.89,0.95", "not decidable"),
        ("0.8,0.7,0.89", "does not hold"),
    ],
)
def test_about_the_speed_of_softmax(speed: str, expected: Verdict, tmp_path: Path) -> None:
    rows = {"table2-train.csv": "training", "table2-decode-pytorch.csv": "batch 1"}
    for name, case in rows.items():
        write(tmp_path, name, f"{case},relakit,rela-g,fp32,,{speed}")
    found = claim_about("about the speed of softmax").find(evidence_of(results=tmp_path))
    assert [(finding.setting, finding.verdict) for finding in found] == [
        ("training", expected),
        ("decoding one by one, in PyTorch", expected),
    ]


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
