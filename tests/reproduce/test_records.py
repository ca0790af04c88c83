"""Result files: what is written is read again, and what is no result file is named."""

import json
import re
from pathlib import Path

import pytest
from made_up_records import (
    made_up_alignment,
    made_up_analysis,
    made_up_ranking,
    made_up_record,
)

from relakit.reproduce.records import Records, read_record, read_records, record_path
from relakit.reproduce.runs import Run


def test_round_trip(tmp_path: Path) -> None:
    record = made_up_record(
        bleu=33.25,
        attention=made_up_analysis(null_rate={"cross": [0.1, 0.6, 0.2]}),
        alignments={"RWTH": made_up_alignment(0.5)},
        rankings={"planted noise": made_up_ranking(0.75)},
    )
    path = record.write(tmp_path)
    assert path == tmp_path / "reproduction" / "tiny" / "multi30k-en-de" / "rela-g-1.json"
    assert path == record_path(tmp_path, record.run)
    assert read_record(path) == record
    assert read_record(path).bleu == 33.25


def test_numbers_have_six_digits(tmp_path: Path) -> None:
    record = made_up_record(bleu=100 / 3, seconds=1234.56789)
    content = json.loads(record.write(tmp_path).read_text(encoding="utf-8"))
    assert content["scores"]["test"]["bleu"] == 33.3333
    assert content["training"]["seconds"] == 1234.57
    assert content["training"]["target_tokens"] == 120_000


def test_settings_keep_all_digits(tmp_path: Path) -> None:
    recipe = {"training": {"learning_rate": 0.123456789}}
    record = made_up_record(recipe=recipe)
    assert read_record(record.write(tmp_path)).recipe == recipe


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    record = made_up_record(bleu=100 / 3)
    first = record.write(tmp_path).read_bytes()
    path = read_record(record_path(tmp_path, record.run)).write(tmp_path)
    assert path.read_bytes() == first


def test_a_failed_run_has_no_score(tmp_path: Path) -> None:
    record = read_record(made_up_record(bleu=None).write(tmp_path))
    assert (record.training.verdict, record.bleu, record.test) == ("failed", None, None)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is no JSON, or is truncated"),
        (b"{ no json", "it is no JSON, or is truncated"),
        (b"\xff\xfe", "it is no JSON, or is truncated"),
        (b'{"format": "another"}', "format = 'another': must be 'relakit run'"),
        (b'{"scale": "huge"}', "scale = 'huge': must be 'tiny', 'deep' or 'paper'"),
    ],
)
def test_other_files_are_named(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "rela-g-1.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a result of relakit reproduce") as caught:
        read_record(path)
    assert re.search(rf"{re.escape(str(path))}.*: {problem}; remove it", str(caught.value))


def test_unknown_keys_are_errors(tmp_path: Path) -> None:
    path = made_up_record().write(tmp_path)
    content = {**json.loads(path.read_text(encoding="utf-8")), "mood": "good"}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"rela-g-1\.json is not a result .*: unknown key mood; remove"
    ):
        read_record(path)


def test_all_files_of_a_folder(tmp_path: Path) -> None:
    assert len(read_records(tmp_path)) == 0
    for seed in (10, 2, 1):
        made_up_record(seed=seed).write(tmp_path)
    made_up_record("softmax", scale="deep").write(tmp_path)
    records = read_records(tmp_path)
    assert len(records) == 4
    assert Run(scale="deep", corpus="multi30k-en-de", row="softmax", seed=1) in records
    assert [r.seed for r in records.of("tiny", "multi30k-en-de", "rela-g")] == [1, 2, 10]
    assert records.of("tiny", "multi30k-en-fr", "rela-g") == []


def test_records_by_run() -> None:
    record = made_up_record()
    records = Records([record])
    assert list(records) == [record.run]
    assert records[record.run] is record
