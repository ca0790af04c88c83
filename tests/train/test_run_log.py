"""Logs of a run: what a validation writes to the file, to TensorBoard and to the terminal."""

import io
import json
import math
from pathlib import Path

import pytest
from rich.console import Console
from small_runs import recipe_of

from relakit.data.prepared_reader import PreparedCorpus
from relakit.model.attention_outputs import MANY_CLOSED, LayerOutputs, ModelOutputs
from relakit.train.result import Scores
from relakit.train.run import run_training
from relakit.train.run_log import LogFile, TensorBoard, ValidationEntry
from relakit.train.terminal import Terminal

OUTPUTS: ModelOutputs = {
    "encoder": LayerOutputs((380.0, 12.0), (0.02, 0.01)),
    "decoder": LayerOutputs((3.0, 4.0), (0.0, 0.3)),
    "cross": LayerOutputs((0.5, 0.25), None),
}


def entry(outputs: ModelOutputs | None, update: int = 100) -> ValidationEntry:
    return ValidationEntry(update, 2.0, Scores(1.5, attention_outputs=outputs))


def shown(outputs: ModelOutputs | None, *, terminal: bool = False) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=60, color_system="standard")
    log = Terminal(console, total_updates=None)
    log.validation(entry(outputs))
    log.close()
    return text.getvalue()


def validations(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, lines) if line["kind"] == "validation"]


def test_a_resumed_run_logs_the_same(corpus: PreparedCorpus, tmp_path: Path) -> None:
    run_training(recipe_of(corpus), tmp_path / "whole")
    run_training(recipe_of(corpus, training={"updates": 15}), tmp_path / "stopped")
    run_training(recipe_of(corpus), tmp_path / "stopped", resume=True)
    whole = validations(tmp_path / "whole")
    assert validations(tmp_path / "stopped") == whole
    assert [line["update"] for line in whole] == [10, 20]
    for line in whole:
        outputs = line["scores"]["attention_outputs"]
        assert list(outputs) == ["encoder", "decoder", "cross"]
        for layers in outputs.values():
            assert len(layers["rms"]) == len(layers["closed_gates"]) == 1
            assert layers["rms"][0] > 0
            assert 0 <= layers["closed_gates"][0] < 1
    result = json.loads((tmp_path / "whole" / "result.json").read_text(encoding="utf-8"))
    assert list(result["scores"]["valid"]["attention_outputs"]) == ["encoder", "decoder", "cross"]


def test_lines_of_earlier_versions_stay(tmp_path: Path) -> None:
    """A validation that says nothing of outputs."""
    path = tmp_path / "log.jsonl"
    scores = {"loss": 1.5, "bleu": None, "bleu_signature": None}
    old = json.dumps({"kind": "validation", "update": 50, "training_loss": 2.0, "scores": scores})
    path.write_text(old + "\n", encoding="utf-8")
    log = LogFile(path, resume=True, warn=pytest.fail)
    log.resume(60)
    log.validation(entry(OUTPUTS))
    first, second = path.read_text(encoding="utf-8").splitlines()
    assert first == old
    assert json.loads(second)["scores"]["attention_outputs"]["decoder"] == {
        "rms": [3.0, 4.0], "closed_gates": [0.0, 0.3],
    }  # fmt: skip


def test_the_terminal_names_the_largest() -> None:
    assert shown(None).count("\n") == 1
    _, line = shown(OUTPUTS).splitlines()
    assert "RMS(z) up to 380 (encoder layer 1), gates closed up to 30.0% (decoder layer 2)" in line
    only_softmax: ModelOutputs = {"cross": OUTPUTS["cross"]}
    _, line = shown(only_softmax).splitlines()
    assert line == "  RMS(z) up to 0.5 (cross layer 1)"
    broken: ModelOutputs = {"cross": LayerOutputs((9.0, math.nan, 8.0), None)}
    assert "RMS(z) up to nan (cross layer 2)" in shown(broken)


@pytest.mark.parametrize(("share", "warns"), [(MANY_CLOSED, False), (MANY_CLOSED + 0.01, True)])
def test_the_terminal_warns_of_closed_gates(share: float, warns: bool) -> None:
    outputs: ModelOutputs = {"encoder": LayerOutputs((1.0,), (share,))}
    assert ("When training goes wrong" in shown(outputs)) == warns
    assert ("\x1b[33m  RMS(z)" in shown(outputs, terminal=True)) == warns


@pytest.mark.skipif(not TensorBoard.is_installed(), reason="needs relakit[tensorboard]")
def test_curves(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = TensorBoard(tmp_path, warn=pytest.fail)
    board.validation(entry(OUTPUTS))
    board.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    found = {tag: events.Scalars(tag)[0] for tag in events.Tags()["scalars"]}
    assert found["rms_z/encoder_1"].value == 380.0
    assert found["rms_z/cross_2"].value == 0.25
    assert found["closed_gates/decoder_2"].value == pytest.approx(0.3)
    assert found["closed_gates/decoder_2"].step == 100
    assert not any(tag.startswith("closed_gates/cross") for tag in found)
