"""Runs: they learn, stop, resume, fail with a verdict, and agree over processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import prepare
from relakit.model import load_model
from relakit.train.plan import Update, plan_updates
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.run import run_training
from relakit.train.step import GradientStep, UpdateLoss

MODEL = {
    "size": "tiny", "dim": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1,
    "feed_forward": 64,
}  # fmt: skip
TRAINING = {
    "updates": 24, "batch_tokens": 150, "update_tokens": 300, "warmup": 30,
    "learning_rate_factor": 0.3, "checkpoint_every": 5, "keep": 3, "threads": 1, "device": "cpu",
}  # fmt: skip


def recipe_of(corpus: PreparedCorpus, **changed: Any) -> Recipe:
    content = {
        "data": {"prepared": str(corpus.folder)},
        "model": {**MODEL, **changed.pop("model", {})},
        "training": {**TRAINING, **changed.pop("training", {})},
        "validation": {"every": 10, "bleu": False, **changed.pop("validation", {})},
        **changed,
    }
    return make_recipe(content, "test")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.fixture(scope="module")
def undisturbed(
    corpus: PreparedCorpus, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, torch.Tensor]:
    """The weights of a run that nobody stops."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    run_training(recipe_of(corpus), folder)
    return weights(folder)


def test_learns(corpus: PreparedCorpus, tmp_path: Path) -> None:
    """Five words by heart."""
    recipe = recipe_of(
        corpus,
        training={"updates": 300, "learning_rate_factor": 1.0, "warmup": 60,
                  "checkpoint_every": 20},
        validation={"every": 100, "bleu": True},
        model={"dropout": 0.0, "attention_dropout": 0.0},
    )  # fmt: skip
    result, _ = run_training(recipe, tmp_path / "run")
    assert result.verdict == "finished"
    assert result.scores["test"].bleu is not None
    assert result.scores["test"].bleu > 90
    model, about = load_model(tmp_path / "run" / "model")
    assert about.training["scores"]["test"]["bleu"] == result.scores["test"].bleu
    assert model.config.cross_attention == "rela-g"
    written = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert written["verdict"] == "finished"
    assert written["settings"]["averaged_checkpoints"] == 3
    log = [
        json.loads(line)
        for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [e["update"] for e in log if e["kind"] == "update"] == list(range(1, 301))
    assert [e["update"] for e in log if e["kind"] == "validation"] == [100, 200, 300]


def test_same_seed_same_weights(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    run_training(recipe_of(corpus), tmp_path / "again")
    assert_same(weights(tmp_path / "again"), undisturbed)
    run_training(recipe_of(corpus, training={"seed": 2}), tmp_path / "other")
    other = weights(tmp_path / "other")
    assert not torch.equal(other["embedding.weight"], undisturbed["embedding.weight"])


def test_a_longer_run_goes_on_where_a_shorter_one_ended(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    run_training(recipe_of(corpus, training={"updates": 15}), tmp_path / "run")
    run_training(recipe_of(corpus), tmp_path / "run", resume=True)
    assert_same(weights(tmp_path / "run"), undisturbed)


COMMAND = (sys.executable, "-c", "from relakit.cli.main import main; main()", "train")


def start(corpus: PreparedCorpus, folder: Path, *more: str) -> subprocess.Popen[str]:
    """The same run as a command of its own."""
    recipe = folder.parent / "recipe.toml"
    recipe.write_text(_toml(recipe_of(corpus)), encoding="utf-8")
    return subprocess.Popen(
        [*COMMAND, str(recipe), "--out", str(folder), *more],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def _toml(recipe: Recipe) -> str:
    lines = []
    for section, content in recipe.model_dump(mode="json", exclude_none=True).items():
        if isinstance(content, dict):
            lines.append(f"[{section}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in content.items()]
    return "\n".join(lines)


def wait_for_update(folder: Path, update: int, process: subprocess.Popen[str]) -> None:
    """Until the log knows of an update."""
    log = folder / "log.jsonl"
    while not log.exists() or log.read_text(encoding="utf-8").count('"kind": "update"') < update:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("update", [3, 12, 17])
def test_killed_and_resumed(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path, update: int
) -> None:
    """kill -9 leaves no time for anything; the resumed run still ends with the same bits."""
    folder = tmp_path / "run"
    process = start(corpus, folder)
    wait_for_update(folder, update, process)
    process.kill()
    process.communicate()
    assert not (folder / "model").exists()
    resumed = start(corpus, folder, "--resume")
    _, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
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
    process = start(corpus, folder)
    wait_for_update(folder, 7, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == status, errors
    assert f"relakit train --resume --out {folder}" in errors
    assert json.loads((folder / "result.json").read_text())["verdict"] == "stopped"
    checkpoints = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert any(name.startswith("interrupted-") for name in checkpoints)
    resumed = subprocess.run(
        [*COMMAND, "--resume", "--out", str(folder)], capture_output=True, text=True, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    assert_same(weights(folder), undisturbed)


@pytest.mark.slow
def test_two_processes_equal_one(corpus: PreparedCorpus, tmp_path: Path) -> None:
    """The same global batch, dealt out to two processes by torchrun: the same bits.

    An update has one or two batches here, so that no gradients are added in another order.
    """
    tokens = {"batch_tokens": 150, "update_tokens": 220}
    plan = plan_updates(corpus.split("train"), seed=1, **tokens)
    assert {len(update.batches) for update in islice(plan, 24)} == {1, 2}
    run_training(recipe_of(corpus, training=tokens), tmp_path / "one")
    run_on_two_processes(recipe_of(corpus, training=tokens), tmp_path)
    assert_same(weights(tmp_path / "run"), weights(tmp_path / "one"))


@pytest.mark.slow
def test_two_processes_with_long_sentences(corpus: PreparedCorpus, tmp_path: Path) -> None:
    """Validation, by one process alone, meets a sentence longer than all that both have seen."""
    files = {}
    for name in ("train", "valid"):
        for side, word in (("en", "one"), ("de", "eins")):
            path = tmp_path / f"{name}.{side}"
            lines = [word] * 20 + ([" ".join([word] * 150)] if name == "valid" else [])
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        files[name] = ParallelFiles(tmp_path / f"{name}.en", tmp_path / f"{name}.de")
    prepare(files, tmp_path / "long", tokenizer=corpus.tokenizer)
    recipe = recipe_of(
        PreparedCorpus.load(tmp_path / "long"),
        training={"updates": 3, "batch_tokens": 10, "update_tokens": 10},
        validation={"every": 1, "bleu": True, "final_beam": 1},
    )
    run_on_two_processes(recipe, tmp_path)


def run_on_two_processes(recipe: Recipe, folder: Path) -> None:
    """``relakit train`` under torchrun, into ``folder / "run"``."""
    path, script = folder / "recipe.toml", folder / "train.py"
    path.write_text(_toml(recipe), encoding="utf-8")
    script.write_text("from relakit.cli.main import main; main()\n", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
         str(script), "train", str(path), "--out", str(folder / "run")],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("finished: all") == 1
    written = json.loads((folder / "run" / "result.json").read_text(encoding="utf-8"))
    assert written["settings"]["processes"] == 2


def test_a_loss_that_is_not_finite_is_a_verdict(corpus: PreparedCorpus, tmp_path: Path) -> None:
    recipe = recipe_of(corpus, training={"learning_rate_factor": 1e30, "warmup": 1})
    result, ending = run_training(recipe, tmp_path / "run")
    assert result.verdict == ending.verdict == "failed"
    assert "is not finite any more" in result.reason
    written = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert written["verdict"] == "failed"
    assert not (tmp_path / "run" / "model").exists()


def test_a_loss_that_does_not_decrease_is_a_verdict(corpus: PreparedCorpus, tmp_path: Path) -> None:
    recipe = recipe_of(corpus, training={"learning_rate_factor": 1e-9, "give_up_after": 10})
    result, _ = run_training(recipe, tmp_path / "run")
    assert result.verdict == "failed"
    assert "the loss does not decrease: after 10 updates" in result.reason
    assert "for guessing by frequency" in result.reason
    again, _ = run_training(recipe, tmp_path / "run", resume=True)
    assert (again.verdict, again.reason) == ("failed", result.reason)


def test_the_first_update_may_fail(
    corpus: PreparedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: GradientStep, update: Update) -> UpdateLoss:
        return UpdateLoss(float("nan"), float("nan"))

    monkeypatch.setattr(GradientStep, "__call__", broken)
    result, _ = run_training(recipe_of(corpus), tmp_path / "run")
    assert result.verdict == "failed"
    assert result.reason == "the loss is not finite any more: nan at update 1"
    assert result.updates == 0


def test_patience(corpus: PreparedCorpus, tmp_path: Path) -> None:
    recipe = recipe_of(
        corpus,
        training={"learning_rate_factor": 1e-12, "give_up_after": 0, "updates": 100},
        validation={"every": 2, "patience": 3},
    )
    result, _ = run_training(recipe, tmp_path / "run")
    assert result.verdict == "finished"
    assert "in the last 3 validations" in result.reason
    assert result.updates < 30
    before = weights(tmp_path / "run")
    again, _ = run_training(recipe, tmp_path / "run", resume=True)  # as if killed while scoring
    assert again.updates == result.updates
    assert_same(weights(tmp_path / "run"), before)


def test_a_folder_that_holds_a_run_is_not_overwritten(
    corpus: PreparedCorpus, tmp_path: Path
) -> None:
    recipe = recipe_of(corpus, training={"updates": 2})
    run_training(recipe, tmp_path / "run")
    with pytest.raises(FileExistsError, match="holds a run already; go on with it by --resume"):
        run_training(recipe, tmp_path / "run")
    with pytest.raises(ValueError, match=r"trained with model\.dim = 32, the recipe says 64"):
        run_training(recipe_of(corpus, model={"dim": 64}), tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match=r"has no recipe\.json, so there is nothing to resume"):
        run_training(None, tmp_path / "nothing", resume=True)


def test_a_run_that_did_not_begin_is_no_obstacle(text_folder: Path, tmp_path: Path) -> None:
    content = {
        "data": {"folder": str(tmp_path / "typo"), "vocab_size": 280},
        "model": MODEL,
        "training": {**TRAINING, "updates": 2},
        "validation": {"bleu": False},
    }
    with pytest.raises(ValueError, match="typo"):
        run_training(make_recipe(content, "test"), tmp_path / "run")
    content["data"]["folder"] = str(text_folder)
    result, _ = run_training(make_recipe(content, "test"), tmp_path / "run")
    assert result.verdict == "finished"


def test_another_corpus_is_not_gone_on_with(corpus: PreparedCorpus, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    shutil.copytree(corpus.folder, folder)
    recipe = recipe_of(PreparedCorpus.load(folder), training={"updates": 2})
    run_training(recipe, tmp_path / "run")
    document = folder / "corpus.json"
    document.write_text(document.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"is not the corpus that .*update-0000002 was trained on"):
        run_training(recipe, tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b'{"unknown": 1}'),
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


def test_several_test_sets_are_all_scored(corpus: PreparedCorpus, tmp_path: Path) -> None:
    files = {}
    for name in ("train", "test_2016", "test_2017"):
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_text("one two\nthree\n", encoding="utf-8")
        files[name] = ParallelFiles(tmp_path / f"{name}.en", tmp_path / f"{name}.de")
    prepare(files, tmp_path / "several", tokenizer=corpus.tokenizer)
    recipe = recipe_of(PreparedCorpus.load(tmp_path / "several"), training={"updates": 1})
    result, _ = run_training(recipe, tmp_path / "run")
    assert set(result.scores) == {"test_2016", "test_2017"}


def test_text_files_are_prepared_on_the_way(text_folder: Path, tmp_path: Path) -> None:
    content = {
        "data": {"folder": str(text_folder), "vocab_size": 280},
        "model": MODEL,
        "training": {**TRAINING, "updates": 2},
        "validation": {"bleu": False},
    }
    result, _ = run_training(make_recipe(content, "test"), tmp_path / "run")
    assert set(result.scores) == {"valid", "test"}
    assert PreparedCorpus.load(tmp_path / "run" / "corpus").tokenizer.size <= 280


def test_bfloat16_learns_too(corpus: PreparedCorpus, tmp_path: Path) -> None:
    recipe = recipe_of(corpus, training={"precision": "bf16"})
    result, _ = run_training(recipe, tmp_path / "run")
    losses = [
        json.loads(line)["loss"]
        for line in (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8").splitlines()
        if '"update"' in line and '"kind": "update"' in line
    ]
    assert result.settings["precision"] == "torch.bfloat16"
    assert losses[-1] < losses[0] - 0.5
