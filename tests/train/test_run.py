"""What becomes of a run's folder."""

from pathlib import Path

import pytest
from small_runs import recipe_of

from relakit.data.prepared_reader import PreparedCorpus
from relakit.train import run as run_module
from relakit.train.run import remove_run, run_training
from relakit.train.run_folder import MODEL, RECIPE


def test_a_removal_that_was_interrupted_can_be_done_again(
    corpus: PreparedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe, which makes a run of the folder, is the last to go."""
    run_training(recipe_of(corpus, training={"updates": 1}), tmp_path / "run")
    remove_folder = run_module.remove_folder

    def interrupted(folder: Path) -> None:
        remove_folder(folder)
        if folder.name == MODEL:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "remove_folder", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove_run(tmp_path / "run")
    assert (tmp_path / "run" / RECIPE).is_file()
    remove_run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_removal_leaves_what_others_put_there(corpus: PreparedCorpus, tmp_path: Path) -> None:
    run_training(recipe_of(corpus, training={"updates": 1}), tmp_path)
    (tmp_path / "notes.txt").write_text("mine\n")
    remove_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
