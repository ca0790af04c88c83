"""Logs of a run: what a validation writes to the file, to TensorBoard and to the terminal."""

import errno
import io
import json
import math
from pathlib import Path

import pytest
import torch
from rich.console import Console
from small_runs import assert_same, recipe_of, weights

from relakit.closed_gates import MANY_CLOSED
from relakit.data.prepared_reader import PreparedCorpus
from relakit.files import writing
from relakit.files.writing import WriteError
from relakit.model.attention_outputs import LayerOutputs, ModelOutputs
from relakit.train import run_log
from relakit.train.result import Scores
from relakit.train.run import run_training
from relakit.train.run_log import LogFile, TensorBoard, UpdateEntry, ValidationEntry
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


def update(number: int) -> UpdateEntry:
    return UpdateEntry(number, 1, 2.0, 2.0, 1e-3, 0.5, 100, 0.1)


class TestALogThatCannotBeWritten:
    @pytest.fixture
    def is_full(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """Whether the disk is full, to be changed."""
        state = [False]

        def append(path: Path, content: bytes) -> None:
            if state[0]:
                raise WriteError(path, OSError(errno.ENOSPC, "full"))
            writing.append(path, content)

        monkeypatch.setattr(run_log, "append", append)
        return state

    def test_waits_until_it_can_be(self, tmp_path: Path, is_full: list[bool]) -> None:
        warnings: list[str] = []
        log = LogFile(tmp_path / "log.jsonl", resume=False, warn=warnings.append)
        log.update(update(1))
        is_full[0] = True
        log.update(update(2))
        log.update(update(3))
        assert len(warnings) == 1
        assert "log.jsonl cannot be written: no space is left on the disk" in warnings[0]
        assert "The run continues" in warnings[0]
        is_full[0] = False
        log.update(update(4))
        log.close()
        lines = (tmp_path / "log.jsonl").read_text().splitlines()
        assert [json.loads(line)["update"] for line in lines] == [1, 2, 3, 4]
        assert len(warnings) == 1

    def test_says_at_the_end_what_is_lost(self, tmp_path: Path, is_full: list[bool]) -> None:
        warnings: list[str] = []
        log = LogFile(tmp_path / "log.jsonl", resume=False, warn=warnings.append)
        is_full[0] = True
        log.update(update(1))
        log.close()
        assert "The end of " in warnings[-1]
        assert " is lost: " in warnings[-1]

    def test_does_not_end_a_run(
        self,
        corpus: PreparedCorpus,
        undisturbed: dict[str, torch.Tensor],
        tmp_path: Path,
        is_full: list[bool],
    ) -> None:
        text = io.StringIO()
        is_full[0] = True
        console = Console(file=text, width=500)
        result, _ = run_training(recipe_of(corpus), tmp_path / "run", console=console)
        assert result.verdict == "finished"
        assert_same(weights(tmp_path / "run"), undisturbed)
        assert text.getvalue().count("The run continues") == 2  # the file and TensorBoard
        assert (tmp_path / "run" / "log.jsonl").read_text() == ""


def test_lines_that_are_damaged_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = b'{"kind": "update", "update": 1}\n'
    path.write_bytes(whole + b"\xff\n[]\n{}\n" + b'{"kind": "update", "update": 9}\n' + whole[:-1])
    LogFile(path, resume=True, warn=pytest.fail).resume(5)
    assert path.read_bytes() == whole


@pytest.mark.skipif(not TensorBoard.is_installed(), reason="needs relakit[tensorboard]")
def test_curves_of_a_resumed_run(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    first = TensorBoard(tmp_path, warn=pytest.fail)
    for number in (1, 2, 3):
        first.update(update(number))
    first.close()
    second = TensorBoard(tmp_path, warn=pytest.fail)
    second.resume(2)
    second.update(update(3))
    second.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [point.step for point in events.Scalars("train/loss")] == [1, 2, 3]
