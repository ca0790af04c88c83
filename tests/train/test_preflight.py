"""What is found wrong with a run before torch is loaded."""

import json
from pathlib import Path

import pytest

from relakit.files.locks import LOCK, BusyError, locked
from relakit.train.preflight import check_run
from relakit.train.recipe_file import load_recipe


def test_a_folder_that_another_process_trains_in(tmp_path: Path) -> None:
    folder, recipe = tmp_path / "run", load_recipe("demo")
    with locked(folder):
        check_run(recipe, folder, resume=False)  # whoever has the lock may look
        (folder / LOCK).write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
        with pytest.raises(BusyError, match="process 1 on elsewhere; wait for it or stop it"):
            check_run(recipe, folder, resume=False)
    check_run(recipe, folder, resume=False)
    assert list(tmp_path.iterdir()) == [], "looking leaves nothing behind"


def test_a_late_process_of_torchrun_finds_the_lock_of_the_main_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, recipe = tmp_path / "run", load_recipe("demo")
    with locked(folder):
        (folder / LOCK).write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
        monkeypatch.setenv("RANK", "1")
        with pytest.raises(BusyError):  # left over: it is alone
            check_run(recipe, folder, resume=False)
        monkeypatch.setenv("WORLD_SIZE", "2")
        check_run(recipe, folder, resume=False)
        monkeypatch.setenv("RANK", "0")
        with pytest.raises(BusyError):
            check_run(recipe, folder, resume=False)


def test_a_model_that_memory_is_too_small_for(tmp_path: Path) -> None:
    """Only where it is known that the machine's own memory counts."""
    huge = ["model.dim=65536", "model.encoder_layers=900"]
    with pytest.raises(ValueError, match=r"would need about .* of memory, this machine has"):
        check_run(load_recipe("demo", [*huge, "training.device=cpu"]), tmp_path, resume=False)
    check_run(load_recipe("demo", [*huge, "training.device=cuda"]), tmp_path, resume=False)
