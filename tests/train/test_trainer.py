"""Runs: they learn, and fail with a verdict."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import MODEL, TRAINING, assert_same, read_updates, recipe_of, weights

import relakit
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import prepare
from relakit.decode.native_engine import why_not_native
from relakit.model import load_model
from relakit.model.config import ModelOptions
from relakit.ops.native.extension import BACKEND_VARIABLE, why_unavailable
from relakit.train.plan import Update
from relakit.train.recipe_file import load_recipe, make_recipe
from relakit.train.run import run_training
from relakit.train.step import GradientStep, UpdateLoss


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


def test_learned_thresholds_train_save_and_translate(
    corpus: PreparedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"threshold": "learned", "power": 2, "length_exponent": 0.5}
    run_training(recipe_of(corpus, model={"attention": table}), tmp_path / "run")
    folder = tmp_path / "run" / "model"
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert written["version"] == 1
    assert written["model"]["cross_attention"]["threshold"] == "learned"
    thresholds = [x for name, x in weights(tmp_path / "run").items() if name.endswith("threshold")]
    assert len(thresholds) == 3
    assert all(bool((x != 0).all()) for x in thresholds), "they start at 0"

    assert_engines_agree(folder, corpus, monkeypatch)


def test_the_authors_settings_train_resume_save_and_translate(
    corpus: PreparedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authors = load_recipe("authors", ["data.folder=unused"])
    options = set(ModelOptions.model_fields)
    model = authors.model.model_dump(include=options)
    training = authors.training.model_dump(include={"smoothing_over", "loss_mean"})
    validation = {
        **authors.validation.model_dump(exclude={"every", "sentences", "patience"}),
        "every": 12,
    }
    recipe = recipe_of(corpus, model=model, training=training, validation=validation)
    result, _ = run_training(recipe, tmp_path / "run")
    assert result.verdict == "finished"
    assert load_model(tmp_path / "run" / "model")[0].config.first_input == "zeros"
    assert_engines_agree(tmp_path / "run" / "model", corpus, monkeypatch)

    first = recipe_of(
        corpus, model=model, training={**training, "updates": 10}, validation=validation
    )
    run_training(first, tmp_path / "again")
    run_training(recipe, tmp_path / "again", resume=True)
    for checkpoint in ("update-0000015", "update-0000024"):
        one, other = (
            load_file(tmp_path / run / "checkpoints" / checkpoint / "weights.safetensors")
            for run in ("run", "again")
        )
        assert_same(one, other)


def assert_engines_agree(
    folder: Path, corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C++ serves the model, and finds the translations that PyTorch finds."""
    sources = [corpus.split("test").source(i).tolist() for i in range(8)]
    in_cpp = relakit.load(folder)
    assert why_unavailable() or why_not_native(in_cpp.model) == []
    with monkeypatch.context() as patch:
        patch.setenv(BACKEND_VARIABLE, "reference")
        in_torch = relakit.load(folder)
    found, expected = (
        [hypotheses[0] for hypotheses in translator.translate_ids(sources)]
        for translator in (in_cpp, in_torch)
    )
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)


def test_same_seed_same_weights(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    run_training(recipe_of(corpus), tmp_path / "again")
    assert_same(weights(tmp_path / "again"), undisturbed)
    run_training(recipe_of(corpus, training={"seed": 2}), tmp_path / "other")
    other = weights(tmp_path / "other")
    assert not torch.equal(other["embedding.weight"], undisturbed["embedding.weight"])


@pytest.mark.parametrize("cooldown", [0.0, 0.5])
def test_the_log_has_the_schedules_learning_rate(
    corpus: PreparedCorpus, tmp_path: Path, cooldown: float
) -> None:
    training = {"updates": 8, "warmup": 2, "learning_rate_factor": 0.3, "cooldown": cooldown}
    run_training(recipe_of(corpus, training=training), tmp_path)
    peak = 0.3 * MODEL["dim"] ** -0.5 * 2**-0.5
    expected = [peak / 2] + [peak * (2 / update) ** 0.5 for update in range(2, 9)]
    if cooldown:  # over the last four, to a quarter in the last
        expected[5:] = [rate * part / 4 for rate, part in zip(expected[5:], (3, 2, 1), strict=True)]
    found = [entry["learning_rate"] for entry in read_updates(tmp_path)]
    assert found == pytest.approx(expected)


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


def test_with_a_later_limit_it_is_judged_again(corpus: PreparedCorpus, tmp_path: Path) -> None:
    """Validations are after 10 and 20 updates."""
    slow = {"learning_rate_factor": 1e-9}
    recipe = recipe_of(corpus, training={**slow, "give_up_after": 10})
    assert run_training(recipe, tmp_path / "run")[0].updates == 10
    later = recipe_of(corpus, training={**slow, "give_up_after": 15})
    result, _ = run_training(later, tmp_path / "run", resume=True)
    assert (result.verdict, result.updates) == ("failed", 20)
    assert "the loss does not decrease: after 20 updates" in result.reason


def test_the_first_update_may_fail(
    corpus: PreparedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: GradientStep, update: Update) -> UpdateLoss:
        return UpdateLoss(float("nan"), float("nan"), 1)

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


def test_a_run_that_did_not_begin_is_no_obstacle(text_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "uneven").mkdir()
    (tmp_path / "uneven" / "train.en").write_text("one\ntwo\n")
    (tmp_path / "uneven" / "train.de").write_text("eins\n")
    content = {
        "data": {"folder": str(tmp_path / "uneven"), "vocab_size": 280},
        "model": MODEL,
        "training": {**TRAINING, "updates": 2},
        "validation": {"bleu": False},
    }
    with pytest.raises(ValueError, match="uneven"):
        run_training(make_recipe(content, "test"), tmp_path / "run")
    assert (tmp_path / "run" / "recipe.json").exists()
    content["data"]["folder"] = str(text_folder)
    result, _ = run_training(make_recipe(content, "test"), tmp_path / "run")
    assert result.verdict == "finished"


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
