"""Help shows the library's defaults; the options have none of their own."""

import pytest
from typer.testing import CliRunner

from relakit.align.settings import ENOUGH_PAIRS, MOST_EPOCHS, PAIRS_TO_TEACH, ROUNDS
from relakit.align.teach import AlignerTraining
from relakit.align.train_layer import LayerSettings
from relakit.analysis import AnalysisSettings, BootstrapSettings
from relakit.analysis.settings import EXPLORED, PAIR_WEIGHTS
from relakit.clean.filter_settings import CalibrationSettings
from relakit.clean.score import ScoreSettings
from relakit.clean.settings import THRESHOLD
from relakit.cli.main import app
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_format import HELD_OUT_TOKENS
from relakit.report.settings import MAX_BYTES, TITLE

CALIBRATION = CalibrationSettings()
INTERVALS = BootstrapSettings()
COLUMNS = ",".join(ParallelFiles.columns)
ANALYSIS = AnalysisSettings()
TEMPERATURES = ",".join(f"{value:g}" for value in ANALYSIS.temperatures)
EXPLORE = f"beyond {MAX_BYTES / 1e6:g} MB. [default: {EXPLORED}]"
PAIR_TOKENS = f"[default: {HELD_OUT_TOKENS}, or as many as fit into {4 * PAIR_WEIGHTS >> 20} MiB]"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("aer", f"drawn for the intervals. [default: {INTERVALS.samples}]"),
        ("aer", f"[default: {INTERVALS.seed}]"),
        ("align", f"longer pairs get no links. {PAIR_TOKENS}"),
        ("analyze", f"grows with their square. {PAIR_TOKENS}"),
        ("analyze", f"Temperatures of head diversity (Table 6). [default: {TEMPERATURES}]"),
        ("analyze", f"(Figure 6). [default: {ANALYSIS.shuffle_seed}]"),
        ("analyze", f"Level of confidence intervals. [default: {ANALYSIS.confidence}]"),
        ("analyze", EXPLORE),
        ("analyze", f"The report's title. [default: {TITLE}]"),
        ("analyze-text", f"Temperatures of head diversity. [default: {TEMPERATURES}]"),
        ("analyze-text", EXPLORE),
        ("analyze-text", f"The report's title. [default: {TITLE}]"),
        ("filter", f"[default of a probability: {THRESHOLD:g}]"),
        ("filter", f"to calibrate on, at most. [default: {CALIBRATION.pairs}]"),
        ("filter", f"up or down. [default: {CALIBRATION.expected_noise:g}]"),
        ("filter", f"on other pairs. [default: {CALIBRATION.seed}]"),
        ("score", f"depend on it. [default: {ScoreSettings.batch_tokens}]"),
        ("train-aligner", f"longer pairs are left out. {PAIR_TOKENS}"),
        ("train-aligner", f"or by name. [default: {COLUMNS}]"),
        ("train-aligner", f"no --valid-source. [default: {AlignerTraining.held_out}]"),
        ("train-aligner", f"[default: {MOST_EPOCHS}, but one that ends after {ENOUGH_PAIRS:,}"),
        ("train-aligner", f"order of pairs. [default: {LayerSettings.seed}]"),
        ("train-aligner", f"at most {PAIRS_TO_TEACH:,} pairs. [default: {ROUNDS}; with --links 1]"),
        ("translate", f"Most tokens of a line. [default: {HELD_OUT_TOKENS}, or the longest"),
    ],
)
def test_help_shows_the_library_s_defaults(command: str, told: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert told in " ".join(result.stdout.replace("│", " ").split())
