"""A calibration in a file."""

import json
from pathlib import Path

import numpy as np
import pytest
from calibration_samples import ORIGIN, sample

from relakit.clean.calibrating import fit_calibration
from relakit.clean.calibration import NoiseCalibration


@pytest.fixture(scope="module")
def calibration() -> NoiseCalibration:
    return fit_calibration(*sample(), ORIGIN, expected_noise=0.5).calibration


def test_it_says_the_same_after_it_was_written(
    calibration: NoiseCalibration, tmp_path: Path
) -> None:
    calibration.write(tmp_path / "calibration.json")
    again = NoiseCalibration.read(tmp_path / "calibration.json")
    assert again == calibration
    _, columns = sample(seed=5)
    assert (again.judge(columns).probability == calibration.judge(columns).probability).all()


def test_pairs_without_scores(calibration: NoiseCalibration) -> None:
    _, columns = sample(count=4)
    columns["cross_entropy"][1] = np.nan
    found = calibration.judge(columns).probability
    assert np.isnan(found).tolist() == [number == 1 for number in range(len(found))]


def test_what_is_far_out_counts_no_more(calibration: NoiseCalibration) -> None:
    _, columns = sample(count=1)
    far = [
        calibration.judge({**columns, "cross_entropy": np.full(3, value)}).probability[0]
        for value in (1e3, 1e9)
    ]
    assert far[0] == far[1]


def test_which_columns_are_missing(calibration: NoiseCalibration) -> None:
    _, columns = sample(count=1)
    assert calibration.missing(list(columns)) == []
    del columns["end_loss"]
    assert calibration.missing(list(columns)) == ["end_loss"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "is no calibration: it has no"),
        ({"version": 1}, "version = 1: must be 2; calibrate again"),
        ({"features": ["charm"]}, "unknown feature 'charm'"),
        ({"medians": [1.0]}, "numbers in each list, one for each feature"),
        ({"expected_noise": 1.0}, "expected_noise = 1.0: must be below 1"),
        ({"typical_ratios": {}}, "typical_ratios must have"),
        ({"kinds": {"gossip": {"bias": 0, "weights": []}}}, "kinds.gossip"),
        ({"surprise": 1}, "unknown key surprise"),
    ],
)
def test_broken_files(
    calibration: NoiseCalibration, change: dict[str, object], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({**calibration.model_dump(mode="json"), **change}))
    with pytest.raises(ValueError, match=says):
        NoiseCalibration.read(path)
