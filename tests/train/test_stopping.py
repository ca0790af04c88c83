"""A run that is asked to stop leaves a model; one may also be told to stop after some minutes."""

import json
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import assert_same, recipe_of, weights
from stopped_runs import run_until

import relakit
from relakit.data.prepared_reader import PreparedCorpus
from relakit.model import load_model
from relakit.train import trainer as module
from relakit.train.run import run_training


def checkpoint_weights(run: Path, name: str) -> dict[str, torch.Tensor]:
    return load_file(run / "checkpoints" / name / "weights.safetensors")


class TestBySignal:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_it_leaves_the_weights_so_far(
        self, corpus: PreparedCorpus, tmp_path: Path, number: signal.Signals
    ) -> None:
        """Before there are as many checkpoints as are averaged, it is those of the last update."""
        result, ending = run_until(recipe_of(corpus), tmp_path, 7, number=number)
        assert (result.verdict, ending.signal, result.updates) == ("stopped", number, 7)
        assert_same(weights(tmp_path), checkpoint_weights(tmp_path, "interrupted-0000007"))
        _, about = load_model(tmp_path / "model")
        assert about.training["verdict"] == "stopped"
        assert about.training["updates"] == 7
        assert relakit.load(tmp_path / "model").translate(["one two"], max_length=4)
        assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "stopped"

    def test_later_it_is_their_average(self, corpus: PreparedCorpus, tmp_path: Path) -> None:
        result, _ = run_until(recipe_of(corpus), tmp_path, 17)
        assert result.settings["averaged_checkpoints"] == 3
        last = ["update-0000010", "update-0000015", "interrupted-0000017"]
        sums: dict[str, torch.Tensor] = {}
        for name in last:
            for key, tensor in checkpoint_weights(tmp_path, name).items():
                sums[key] = sums.get(key, torch.zeros(())) + tensor.double()
        assert_same(weights(tmp_path), {key: (x / 3).float() for key, x in sums.items()})

    def test_the_resumed_run_is_as_if_it_had_not_been(
        self, corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path
    ) -> None:
        run_until(recipe_of(corpus), tmp_path, 7)
        run_until(None, tmp_path, 16, resume=True)
        result, _ = run_training(None, tmp_path, resume=True)
        assert result.verdict == "finished"
        assert_same(weights(tmp_path), undisturbed)

    def test_resumed_without_more_to_do(self, corpus: PreparedCorpus, tmp_path: Path) -> None:
        """The checkpoint that the signal asked for is then the last of all."""
        run_until(recipe_of(corpus), tmp_path / "first", 3)
        shorter = recipe_of(corpus, training={"updates": 3})
        result, _ = run_training(shorter, tmp_path / "first", resume=True)
        assert (result.verdict, result.updates) == ("finished", 3)
        last = checkpoint_weights(tmp_path / "first", "update-0000003")
        assert_same(weights(tmp_path / "first"), last)
        assert not (tmp_path / "first" / "checkpoints" / "interrupted-0000003").exists()

        run_until(recipe_of(corpus), tmp_path / "later", 7)
        shorter = recipe_of(corpus, training={"updates": 7, "average": False})
        result, _ = run_training(shorter, tmp_path / "later", resume=True)
        assert result.updates == 7
        last = checkpoint_weights(tmp_path / "later", "update-0000007")
        assert_same(weights(tmp_path / "later"), last)


class TestByMinutes:
    @pytest.fixture(autouse=True)
    def _clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every update takes six seconds."""
        ticks = iter(range(0, 10_000, 6))
        monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(ticks)))

    def test_a_run_ends_with_a_model(self, corpus: PreparedCorpus, tmp_path: Path) -> None:
        recipe = recipe_of(corpus, training={"updates": None, "minutes": 0.75})
        result, _ = run_training(recipe, tmp_path)
        assert (result.verdict, result.updates) == ("finished", 8)
        assert result.reason == "0.75 minutes of training are over"
        assert result.seconds == 48
        assert set(result.scores) == {"valid", "test"}
        assert weights(tmp_path)

    def test_they_are_counted_over_all_parts(self, corpus: PreparedCorpus, tmp_path: Path) -> None:
        recipe = recipe_of(corpus, training={"updates": None, "minutes": 1})
        run_until(recipe, tmp_path, 7)
        result, _ = run_training(None, tmp_path, resume=True)
        assert (result.updates, result.seconds) == (10, 60)
        again, _ = run_training(None, tmp_path, resume=True)
        assert again.updates == 10
        longer = recipe_of(corpus, training={"updates": None, "minutes": 1.5})
        result, _ = run_training(longer, tmp_path, resume=True)
        assert result.updates == 15

    def test_whatever_comes_first(self, corpus: PreparedCorpus, tmp_path: Path) -> None:
        recipe = recipe_of(corpus, training={"updates": 3, "minutes": 1})
        result, _ = run_training(recipe, tmp_path)
        assert result.reason == "all 3 updates are done"
