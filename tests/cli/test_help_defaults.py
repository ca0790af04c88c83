"""Help shows the library's defaults; the options have none of their own."""

import pytest
from typer.testing import CliRunner

from relakit.align.settings import ENOUGH_PAIRS, MOST_EPOCHS
from relakit.align.teach import AlignerTraining
from relakit.align.train_layer import LayerSettings
from relakit.analysis import BootstrapSettings
from relakit.clean.filter_settings import CalibrationSettings
from relakit.clean.score import ScoreSettings
from relakit.clean.settings import THRESHOLD
from relakit.cli.main import app
from relakit.data.parallel_files import ParallelFiles

CALIBRATION = CalibrationSettings()
INTERVALS = BootstrapSettings()
COLUMNS = ",".join(ParallelFiles.columns)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("aer", f"drawn for the intervals. [default: {INTERVALS.samples}]"),
        ("aer", f"[default: {INTERVALS.seed}]"),
        ("filter", f"[default of a probability: {THRESHOLD:g}]"),
        ("filter", f"to calibrate on, at most. [default: {CALIBRATION.pairs}]"),
        ("filter", f"up or down. [default: {CALIBRATION.expected_noise:g}]"),
        ("filter", f"on other pairs. [default: {CALIBRATION.seed}]"),
        ("score", f"depend on it. [default: {ScoreSettings.batch_tokens}]"),
        ("train-aligner", f"or by name. [default: {COLUMNS}]"),
        ("train-aligner", f"no --valid-source. [default: {AlignerTraining.held_out}]"),
        ("train-aligner", f"[default: {MOST_EPOCHS}, but one that ends after {ENOUGH_PAIRS:,}"),
        ("train-aligner", f"order of pairs. [default: {LayerSettings.seed}]"),
    ],
)
def test_help_shows_the_library_s_defaults(command: str, told: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert told in " ".join(result.stdout.replace("│", " ").split())
