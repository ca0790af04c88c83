"""A run that was stopped and resumed ends with the same weights, bit for bit."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_runs import MODEL, TRAINING, assert_same, recipe_of, weights

from relakit.data.prepared_reader import PreparedCorpus
from relakit.files.leftovers import temporary_name
from relakit.files.locks import BusyError, locked
from relakit.model.description import SHORTLIST_FILE
from relakit.train.preflight import check_run
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe, write_recipe
from relakit.train.resume import read_recipe
from relakit.train.run import run_training


def test_a_longer_run_goes_on_where_a_shorter_one_ended(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    run_training(recipe_of(corpus, training={"updates": 15}), tmp_path / "run")
    run_training(recipe_of(corpus), tmp_path / "run", resume=True)
    assert_same(weights(tmp_path / "run"), undisturbed)


RUN_UNTIL = """
import os, signal
from relakit.cli.main import main
from relakit.train.run_log import LogFile
log = LogFile.update
def log_and_stop(self, entry):
    log(self, entry)
    if entry.update == {update}:
        os.kill(os.getpid(), {number})
LogFile.update = log_and_stop
main()
"""
"""A signal that comes from outside would come too late for so short a run, now and then."""


def train_until(
    update: int, number: signal.Signals, corpus: PreparedCorpus, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Train as a command, which gets a signal as soon as its log knows of an update."""
    recipe = folder.parent / "recipe.toml"
    recipe.write_text(write_recipe(recipe_of(corpus)), encoding="utf-8")
    program = RUN_UNTIL.format(update=update, number=int(number))
    return subprocess.run(
        [sys.executable, "-c", program, "train", str(recipe), "--out", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("update", [3, 17], ids=["before a checkpoint", "after three"])
def test_killed_and_resumed(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path, update: int
) -> None:
    """kill -9 leaves no time for anything; the resumed run still ends with the same bits."""
    folder = tmp_path / "run"
    killed = train_until(update, signal.SIGKILL, corpus, folder)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (folder / "model").exists()
    run_training(recipe_of(corpus), folder, resume=True)
    assert_same(weights(folder), undisturbed)
    log = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    updates = [e["update"] for e in map(json.loads, log) if e["kind"] == "update"]
    assert updates == list(range(1, 25))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_stopped_by_a_signal_and_resumed(
    corpus: PreparedCorpus,
    undisturbed: dict[str, torch.Tensor],
    tmp_path: Path,
    number: signal.Signals,
    status: int,
) -> None:
    folder = tmp_path / "run"
    stopped = train_until(7, number, corpus, folder)
    errors = stopped.stderr
    assert stopped.returncode == status, errors
    assert f"relakit train --resume --out {folder}" in errors
    assert json.loads((folder / "result.json").read_text())["verdict"] == "stopped"
    checkpoints = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert checkpoints == ["interrupted-0000007", "update-0000005"]
    assert f"model so far: {folder / 'model'}" in errors
    assert weights(folder)
    run_training(None, folder, resume=True)
    assert_same(weights(folder), undisturbed)


class TestFolder:
    def test_with_a_run_is_not_overwritten(self, corpus: PreparedCorpus, tmp_path: Path) -> None:
        recipe = recipe_of(corpus, training={"updates": 2})
        run_training(recipe, tmp_path / "run")
        with pytest.raises(FileExistsError, match="holds a run already; continue it with --resume"):
            run_training(recipe, tmp_path / "run")
        with pytest.raises(ValueError, match=r"has no recipe\.json, so there is nothing to resume"):
            run_training(None, tmp_path / "nothing", resume=True)
        assert not (tmp_path / "nothing").exists()

    @pytest.mark.parametrize("resume", [False, True])
    def test_with_a_model_but_no_checkpoints_is_kept(
        self, corpus: PreparedCorpus, tmp_path: Path, resume: bool
    ) -> None:
        recipe = recipe_of(corpus, training={"updates": 2})
        run_training(recipe, tmp_path)
        shutil.rmtree(tmp_path / "checkpoints")
        before = weights(tmp_path)
        with pytest.raises(FileExistsError, match="holds a trained model, but no checkpoints"):
            run_training(recipe, tmp_path, resume=resume)
        assert_same(weights(tmp_path), before)

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("corpus.json", r"a prepared corpus \(corpus\.json\)"),
            ("generated.json", r"a generated corpus \(generated\.json\)"),
            ("config.json", r"a model directory \(config\.json\)"),
            ("report.html", r"a report \(report\.html\)"),
            ("text", "'text'"),
        ],
    )
    def test_with_something_else_is_left_alone(
        self, corpus: PreparedCorpus, tmp_path: Path, name: str, what: str
    ) -> None:
        (tmp_path / name).write_text("mine")
        with pytest.raises(FileExistsError, match=f"{tmp_path} holds {what}, but no recipe.json"):
            run_training(recipe_of(corpus), tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_with_files_that_are_not_in_the_way_will_do(
        self, corpus: PreparedCorpus, tmp_path: Path
    ) -> None:
        (tmp_path / "nohup.out").write_text("mine")
        run_training(recipe_of(corpus, training={"updates": 1}), tmp_path)
        assert (tmp_path / "nohup.out").read_text() == "mine"

    def test_with_what_belongs_to_the_model_before(
        self, corpus: PreparedCorpus, tmp_path: Path
    ) -> None:
        """A shortlist goes with its model; a file of the user's is seen before anything is done."""
        run_training(recipe_of(corpus, training={"updates": 2}), tmp_path)
        (tmp_path / "model" / SHORTLIST_FILE).write_bytes(b"of the model before")
        longer = recipe_of(corpus, training={"updates": 3})
        run_training(longer, tmp_path, resume=True)
        assert not (tmp_path / "model" / SHORTLIST_FILE).exists()
        (tmp_path / "model" / "notes.txt").write_text("mine")
        longer = recipe_of(corpus, training={"updates": 4})
        with pytest.raises(FileExistsError, match=r"model holds 'notes\.txt'.*move it elsewhere"):
            run_training(longer, tmp_path, resume=True)
        assert not (tmp_path / "checkpoints" / "update-0000004").exists()

    @pytest.mark.parametrize("resume", [False, True])
    def test_of_another_process_is_busy(
        self, corpus: PreparedCorpus, tmp_path: Path, resume: bool
    ) -> None:
        with (
            locked(tmp_path / "run"),
            pytest.raises(BusyError, match=f"at work in {tmp_path}/run: process {os.getpid()} on"),
        ):
            run_training(recipe_of(corpus), tmp_path / "run", resume=resume)
        assert not (tmp_path / "run").exists()

    def test_leftovers_of_killed_writers_are_swept(
        self, corpus: PreparedCorpus, tmp_path: Path
    ) -> None:
        recipe = recipe_of(corpus, training={"updates": 2})
        run_training(recipe, tmp_path)
        gone = temporary_name(tmp_path / "checkpoints" / "interrupted-0000001").name
        left = tmp_path / "checkpoints" / gone.replace(f"-{os.getpid()}-", "-4194999-")
        left.mkdir()
        run_training(None, tmp_path, resume=True)
        assert not left.exists()


class TestOtherSettings:
    @pytest.fixture
    def run(self, corpus: PreparedCorpus, tmp_path: Path) -> Path:
        run_training(recipe_of(corpus, training={"updates": 2}), tmp_path / "run")
        return tmp_path / "run"

    def test_all_that_must_stay_are_named(self, corpus: PreparedCorpus, run: Path) -> None:
        recipe = recipe_of(corpus, model={"dim": 64}, training={"seed": 7, "warmup": 31})
        with pytest.raises(ValueError, match=r"run was trained with model\.dim = 32") as caught:
            run_training(recipe, run, resume=True)
        text = str(caught.value)
        for part in (
            "model.dim = 32, the recipe says 64",
            "training.seed = 1, the recipe says 7",
            "training.warmup = 30, the recipe says 31",
            "choose another --out",
        ):
            assert part in text
        assert "updates =" not in text

    def test_an_attention_with_a_table(self, corpus: PreparedCorpus, run: Path) -> None:
        recipe = recipe_of(corpus, model={"attention": {"threshold": "learned"}})
        with pytest.raises(ValueError, match=r"model\.attention = 'rela-g', the recipe says {'ac"):
            run_training(recipe, run, resume=True)

    def test_those_that_may_change(self, corpus: PreparedCorpus, run: Path) -> None:
        training = {
            "updates": 3, "epochs": 50, "minutes": 60, "threads": 0, "device": "auto",
            "checkpoint_every": 1, "keep": 2, "average": False, "give_up_after": 0,
        }  # fmt: skip
        validation = {"every": 1, "beam": 2, "final_beam": 2, "patience": 9}
        recipe = recipe_of(corpus, description="x", training=training, validation=validation)
        before = read_recipe(run)
        assert before is not None
        assert all(getattr(before.training, key) != value for key, value in training.items())
        result, _ = run_training(recipe, run, resume=True)
        assert (result.updates, result.settings["averaged_checkpoints"]) == (3, 1)

    def test_with_a_cooldown_the_number_of_updates_must_stay(
        self, corpus: PreparedCorpus, tmp_path: Path
    ) -> None:
        run_training(recipe_of(corpus, training={"updates": 2, "cooldown": 0.5}), tmp_path)
        longer = recipe_of(corpus, training={"updates": 3, "cooldown": 0.5})
        with pytest.raises(ValueError, match=r"training\.updates = 2, the recipe says 3"):
            run_training(longer, tmp_path, resume=True)


def test_the_corpus_may_move_but_not_change(corpus: PreparedCorpus, tmp_path: Path) -> None:
    folder, moved = tmp_path / "corpus", tmp_path / "moved"
    shutil.copytree(corpus.folder, folder)
    run_training(recipe_of(PreparedCorpus.load(folder), training={"updates": 2}), tmp_path / "run")
    folder.rename(moved)
    recipe = recipe_of(PreparedCorpus.load(moved), training={"updates": 3})
    result, _ = run_training(recipe, tmp_path / "run", resume=True)
    assert result.updates == 3
    tokens = moved / "train.target.tokens"
    content = bytearray(tokens.read_bytes())
    content[0] ^= 1
    tokens.write_bytes(content)
    with pytest.raises(ValueError, match=r"is not the corpus that .*update-0000003 was trained on"):
        run_training(recipe, tmp_path / "run", resume=True)


class TestTextInAnotherPlace:
    """A run that has prepared its own corpus."""

    @pytest.fixture
    def run(self, text_folder: Path, tmp_path: Path) -> Path:
        run_training(self.recipe(text_folder, 2), tmp_path / "run")
        return tmp_path / "run"

    @staticmethod
    def recipe(text: Path, updates: int) -> Recipe:
        content = {
            "data": {"folder": str(text), "vocab_size": 280},
            "model": MODEL,
            "training": {**TRAINING, "updates": updates},
            "validation": {"bleu": False},
        }
        return make_recipe(content, "test")

    @staticmethod
    def shorter(text_folder: Path, folder: Path) -> Path:
        folder.mkdir()
        for side in ("en", "de"):
            text = (text_folder / f"train.{side}").read_text(encoding="utf-8")
            lines = "\n".join(text.splitlines()[:99])
            (folder / f"train.{side}").write_text(f"{lines}\n", encoding="utf-8")
        return folder

    def test_the_corpus_is_not_prepared_again(self, run: Path, text_folder: Path) -> None:
        moved = run.parent / "moved"
        shutil.copytree(text_folder, moved)
        before = (run / "corpus").stat()
        result, _ = run_training(self.recipe(moved, 3), run, resume=True)
        assert result.updates == 3
        assert os.path.samestat((run / "corpus").stat(), before)
        changed = read_recipe(run)
        assert changed is not None
        assert changed.data.folder == moved

    def test_a_mistyped_folder_changes_nothing(self, run: Path) -> None:
        before = content_of(run)
        mistyped = self.recipe(run.parent / "typo", 3)
        with pytest.raises(ValueError, match="typo: there is no such folder"):
            check_run(mistyped, run, resume=True)
        with pytest.raises(ValueError, match="typo: there is no such folder"):
            run_training(mistyped, run, resume=True)
        assert content_of(run) == before

    @pytest.mark.parametrize("is_prepared", [False, True])
    def test_another_text_changes_nothing(
        self, run: Path, text_folder: Path, is_prepared: bool
    ) -> None:
        """As text it is looked at only if the run's own corpus is gone."""
        recipe = self.recipe(self.shorter(text_folder, run.parent / "other"), 3)
        if is_prepared:
            run_training(recipe, run.parent / "prepared")
            prepared = {"prepared": run.parent / "prepared" / "corpus", "folder": None}
            data = recipe.data.model_copy(update=prepared)
            recipe = recipe.model_copy(update={"data": data})
        else:
            shutil.rmtree(run / "corpus")
        before = content_of(run)
        with pytest.raises(ValueError, match=r"is not the corpus that .*update-0000002 was"):
            run_training(recipe, run, resume=True)
        assert content_of(run) == before
        result, _ = run_training(self.recipe(text_folder, 3), run, resume=True)
        assert result.updates == 3


def content_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b'{"unknown": 1}'),
        ("state.json", b"{}"),
        ("state.json", None),
        ("adam.safetensors", b"nothing"),
        ("weights.safetensors", None),
    ],
)
def test_a_damaged_checkpoint(
    corpus: PreparedCorpus, tmp_path: Path, name: str, content: bytes | None
) -> None:
    recipe = recipe_of(corpus, training={"updates": 2})
    run_training(recipe, tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "update-0000002" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"update-0000002 is damaged.*remove that folder"):
        run_training(recipe, tmp_path / "run", resume=True)
