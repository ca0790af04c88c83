"""Training on two processes under torchrun."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from small_runs import assert_same, read_updates, recipe_of, weights

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import prepare
from relakit.train.plan import plan_updates
from relakit.train.recipe_file import write_recipe
from relakit.train.run import run_training

pytestmark = pytest.mark.slow

TWO_BATCHES = {"batch_tokens": 100, "update_tokens": 160}
"""In every update: two processes then add no gradients in another order than one."""


def test_two_processes_equal_one_though_one_of_them_is_stopped(
    corpus: PreparedCorpus, tmp_path: Path
) -> None:
    """The same global batch, dealt out to two processes by torchrun: the same bits.

    The loss is the mean over sentences, of which the two processes have different numbers.
    Validation, by one process alone, meets a sentence longer than all that both have seen, and
    does so before the first update: the run starts from a model. A signal to one process stops
    both after the same update.
    """
    plan = plan_updates(corpus.split("train"), seed=1, **TWO_BATCHES)
    assert {len(update.batches) for update in islice(plan, 24)} == {2}
    long = _with_a_long_validation_sentence(corpus, tmp_path)
    model = {"source_embedding": "separate", "embedding_bias": True}
    start = recipe_of(long, model=model, training={"updates": 1})
    run_training(start, tmp_path / "start")
    recipe = recipe_of(
        long,
        training={**TWO_BATCHES, "loss_mean": "sentences"},
        model={**model, "start_from": str(tmp_path / "start")},
        validation={"every": 12, "bleu": True, "final_beam": 1},
    )
    run_training(recipe, tmp_path / "one")
    path, run = tmp_path / "recipe.toml", tmp_path / "run"
    path.write_text(write_recipe(recipe), encoding="utf-8")
    status, output = torchrun(RUN_UNTIL_ONE_IS_STOPPED, tmp_path, path, "--out", run)
    assert status != 0, output
    assert (run / "result.json").is_file(), output
    result = read_result(run)
    assert (result["verdict"], result["reason"]) == ("stopped", "asked to stop after update 7")
    assert sorted(each.name for each in (run / "checkpoints").iterdir()) == [
        "interrupted-0000007", "update-0000005",
    ]  # fmt: skip
    status, output = torchrun(RUN, tmp_path, "--resume", "--out", run)
    assert status == 0, output
    assert read_result(run)["verdict"] == "finished"
    assert [entry["update"] for entry in read_updates(run)] == [
        entry["update"] for entry in read_updates(tmp_path / "one")
    ]
    assert_same(weights(run), weights(tmp_path / "one"))


def test_two_processes_share_a_batch(corpus: PreparedCorpus, tmp_path: Path) -> None:
    """An update of one batch: half of it for each, and nothing for one if it has one sentence."""
    tokens = {"batch_tokens": 6, "update_tokens": 1}
    plan = list(islice(plan_updates(corpus.split("train"), seed=1, **tokens), 24))
    assert {len(update.batches) for update in plan} == {1}
    # Later, rounding has moved some unit across 0, where gradients jump.
    compared = slice(20)
    assert {1, 2, 3} <= {len(update.batches[0]) for update in plan[compared]}
    recipe = recipe_of(corpus, training=tokens, model={"dropout": 0.0, "attention_dropout": 0.0})
    run_training(recipe, tmp_path / "one")
    path = tmp_path / "recipe.toml"
    path.write_text(write_recipe(recipe), encoding="utf-8")
    status, output = torchrun(RUN, tmp_path, path, "--out", tmp_path / "run")
    assert status == 0, output
    assert output.count("finished: all") == 1
    assert read_result(tmp_path / "run")["settings"]["processes"] == 2
    one, two = (read_updates(tmp_path / name) for name in ("one", "run"))
    assert [entry["target_tokens"] for entry in two] == [u.target_tokens for u in plan]
    for name in ("loss", "negative_log_likelihood", "gradient_norm"):
        expected = [entry[name] for entry in one[compared]]
        assert [entry[name] for entry in two[compared]] == pytest.approx(expected, rel=1e-5)


def _with_a_long_validation_sentence(corpus: PreparedCorpus, folder: Path) -> PreparedCorpus:
    """The same training sentences; valid is one sentence, longer than all of them."""
    train = corpus.split("train")
    decode = corpus.tokenizer.decode_batch
    texts = {
        "train": (
            decode([train.source(i).tolist() for i in range(len(train))]),
            decode([train.target(i).tolist() for i in range(len(train))]),
        ),
        "valid": ([" ".join(["one"] * 150)], [" ".join(["eins"] * 150)]),
    }
    files = {}
    for name, sides in texts.items():
        paths = folder / f"{name}.en", folder / f"{name}.de"
        for path, lines in zip(paths, sides, strict=True):
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        files[name] = ParallelFiles(*paths)
    prepare(files, folder / "long", tokenizer=corpus.tokenizer)
    return PreparedCorpus.load(folder / "long")


RUN = """
import os, sys, time
from pathlib import Path
from relakit.cli.main import main
lock = Path(sys.argv[sys.argv.index("--out") + 1], ".lock")
while os.environ["RANK"] == "1" and not lock.exists():  # a process may come late
    time.sleep(0.01)
main()
"""
RUN_UNTIL_ONE_IS_STOPPED = """
import os, signal
from relakit.cli.main import main
from relakit.train.step import GradientStep
compute = GradientStep.__call__
def compute_and_stop(self, update):
    if update.number == 7 and os.environ["RANK"] == "1":  # not the one that writes
        os.kill(os.getpid(), signal.SIGTERM)
    return compute(self, update)
GradientStep.__call__ = compute_and_stop
main()
"""
LONGEST_WAIT = 300  # seconds, for processes that may wait for each other for ever


def torchrun(program: str, folder: Path, *arguments: object) -> tuple[int, str]:
    """Status and output of a program that two processes run with the arguments of train."""
    script, output = folder / "train.py", folder / "output.txt"
    script.write_text(program, encoding="utf-8")
    with output.open("w") as file:  # a pipe would be waited for until all processes have ended
        process = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
             str(script), "train", *map(str, arguments)],
            stdout=file, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        try:
            status = process.wait(LONGEST_WAIT)
        except subprocess.TimeoutExpired:
            process.terminate()  # torchrun ends its processes then, after half a minute by force
            process.wait(LONGEST_WAIT)
            pytest.fail(f"it has not ended in {LONGEST_WAIT} s: {output.read_text()}")
    return status, output.read_text()


def read_result(folder: Path) -> Any:
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))
