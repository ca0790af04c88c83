"""The report's best heads and averages by hand, and its JSON."""

import json
from pathlib import Path

import pytest

from relakit.analysis import AlignmentReport, AlignmentScore, AlignmentSettings, AttentionScores


def score(right: int) -> AlignmentScore:
    """Ten links, ten of them sure, so many of them right: an error rate of 1 - right / 10."""
    return AlignmentScore(10, 10, right, right)


SCORES = AttentionScores(
    heads=((score(1), score(4)), (score(7), score(7)), (score(6), score(0))),
    layers=(score(2), score(3), score(8)),
)
OTHER = AttentionScores(
    heads=((score(1), score(9)), (AlignmentScore(0, 10, 0, 0),) * 2, (score(0), score(1))),
    layers=(score(2), score(2), score(2)),
)
REPORT = AlignmentReport(
    settings=AlignmentSettings(end="competes"),
    attention="rela-g",
    pairs=3,
    normal=SCORES,
    shifted=OTHER,
)


def test_best_heads_and_averages() -> None:
    assert SCORES.best_heads == (1, 0, 0)
    assert SCORES.best_head == (1, 0)
    assert SCORES.best_layer == 2
    assert SCORES.aol == pytest.approx((0.8 + 0.7 + 0.2) / 3)
    assert SCORES.aoh == pytest.approx((0.6 + 0.3 + 0.4) / 3)


def test_best_reading() -> None:
    assert REPORT.best_reading == "shifted"
    assert REPORT.best_score("shifted") == score(9)
    assert REPORT.best_score("normal") == score(7)
    with pytest.raises(ValueError, match="unknown reading 'late'"):
        REPORT.scores("late")


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "alignment.json"
    REPORT.write(path)
    assert AlignmentReport.read(path) == REPORT
    assert [file.name for file in tmp_path.iterdir()] == ["alignment.json"]
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["settings"] == {"end": "competes"}
    assert document["best_reading"] == "shifted"
    assert document["normal"]["best_head"] == [1, 0]
    assert document["normal"]["aol"] == SCORES.aol
    assert document["normal"]["heads"][0][1]["aer"] == pytest.approx(0.6)
    assert document["shifted"]["heads"][1][0]["precision"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no .format."),
        ({"version": 2}, "it has version 2, this relakit reads version 1"),
        ({"normal": None}, "damaged: TypeError"),
        ({"normal": {"heads": [], "layers": []}}, "0 layers"),
        ({"normal": {"heads": [[{"found": 1}]], "layers": [{}]}}, "damaged: KeyError: 'sure'"),
        ({"settings": {"end": "x"}}, "end must be one of"),
        ({"settings": {"start": "x"}}, "damaged: TypeError"),
    ],
)
def test_damaged_files(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "alignment.json"
    path.write_text(json.dumps({**json.loads(REPORT.to_json()), **change}))
    with pytest.raises(ValueError, match=message) as caught:
        AlignmentReport.read(path)
    assert str(caught.value).startswith(f"{path} is no alignment report: ")


def test_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "alignment.json"
    path.write_text(REPORT.to_json()[:100])
    with pytest.raises(ValueError, match="is no alignment report"):
        AlignmentReport.read(path)
