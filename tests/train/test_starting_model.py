"""Fine-tuning: what a run takes from the model that it starts from, and what may not differ."""

import io
import json
import logging
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from small_runs import MODEL, TRAINING, recipe_of

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.model import load_model
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.run import run_training
from relakit.train.run_log import LogFile, UpdateEntry
from relakit.train.starting_model import with_starting_model
from relakit.train.validation import split_loss

OTHER_WORDS = {"one": "uno", "two": "due", "three": "tre", "four": "quattro", "five": "cinque"}


@pytest.fixture(scope="module")
def base(corpus: PreparedCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt the German numbers."""
    folder = tmp_path_factory.mktemp("base") / "run"
    run_training(recipe_of(corpus, training={"updates": 60}), folder)
    return folder


@pytest.fixture(scope="module")
def shifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same English sentences with other translations."""
    folder = tmp_path_factory.mktemp("shifted")
    chance = random.Random(2)
    for name, count in {"train": 300, "valid": 20}.items():
        sentences = [
            chance.choices(list(OTHER_WORDS), k=chance.randint(1, 5)) for _ in range(count)
        ]
        source = "".join(" ".join(words) + "\n" for words in sentences)
        target = "".join(" ".join(OTHER_WORDS[w] for w in words) + "\n" for words in sentences)
        (folder / f"{name}.en").write_text(source, encoding="utf-8")
        (folder / f"{name}.de").write_text(target, encoding="utf-8")
    return folder


def fine_tuning(base: Path, text: Path, **model: Any) -> Recipe:
    content = {
        "data": {"folder": str(text)},
        "model": {"start_from": str(base), **model},
        "training": {**TRAINING, "updates": 20},
        "validation": {"every": 10, "bleu": False},
    }
    return make_recipe(content, "test")


def validations(run: Path) -> list[dict[str, Any]]:
    entries = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    return [entry for entry in entries if entry["kind"] == "validation"]


def test_from_the_loss_of_the_model_downwards(base: Path, shifted: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_training(fine_tuning(base, shifted), run)
    corpus = PreparedCorpus.load(run / "corpus")
    model, _ = load_model(base / "model")
    own = split_loss(model, corpus.valid, torch.float32).negative_log_likelihood
    start, *later = validations(run)
    assert (start["update"], start["training_loss"]) == (0, None)
    assert start["scores"]["loss"] == pytest.approx(own, abs=1e-6)
    assert len(later) == 2
    assert later[0]["scores"]["loss"] < own - 0.1
    assert later[1]["scores"]["loss"] < later[0]["scores"]["loss"]
    tuned, about = load_model(run / "model")
    assert tuned.config == model.config
    assert about.training["started_from"] == str(base / "model")
    tokenizers = [(folder / "model" / "tokenizer.json").read_bytes() for folder in (base, run)]
    assert tokenizers[0] == tokenizers[1]
    result = json.loads((run / "result.json").read_text())
    assert result["settings"]["recipe"]["model"]["start_from"] == str(base / "model")
    assert result["settings"]["recipe"]["model"]["dim"] == MODEL["dim"]


def test_a_resumed_run_ends_with_the_same_weights(
    base: Path, shifted: Path, tmp_path: Path
) -> None:
    """Also where the model that it began with is gone by then."""
    passing = tmp_path / "passing"
    shutil.copytree(base / "model", passing)
    run_training(fine_tuning(passing, shifted), tmp_path / "whole")
    recipe = fine_tuning(passing, shifted)
    short = recipe.training.model_copy(update={"updates": 10})
    run_training(recipe.model_copy(update={"training": short}), tmp_path / "parts")
    changed = with_starting_model(recipe)
    shutil.rmtree(passing)
    run_training(changed, tmp_path / "parts", resume=True)
    assert json.loads((tmp_path / "parts" / "result.json").read_text())["updates"] == 20
    checkpoints = [
        tmp_path / name / "checkpoints" / "update-0000020" for name in ("whole", "parts")
    ]
    one, other = ((c / "weights.safetensors").read_bytes() for c in checkpoints)
    assert one == other


def test_killed_before_its_first_checkpoint(
    base: Path, shifted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resumed run begins again, and its log too."""

    def killed(self: LogFile, entry: UpdateEntry) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            run_training(fine_tuning(base, shifted), tmp_path)
    assert [entry["update"] for entry in validations(tmp_path)] == [0]
    text = io.StringIO()
    console = Console(file=text)
    run_training(fine_tuning(base, shifted), tmp_path, resume=True, console=console)
    assert [entry["update"] for entry in validations(tmp_path)] == [0, 10, 20]
    assert "Going on after" not in text.getvalue()


def test_settings_that_agree_or_may_differ(base: Path, shifted: Path) -> None:
    agreeing = with_starting_model(fine_tuning(base, shifted, **MODEL, attention="rela-g"))
    assert agreeing.model.start_from == base / "model"
    silent = with_starting_model(fine_tuning(base, shifted, dropout=0.3))
    assert silent.model.dropout == 0.3
    assert silent.model.dim == MODEL["dim"]
    assert silent.model.encoder_layers == 1
    again = with_starting_model(silent)
    assert again.model == silent.model


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dim": 64}, r"model\.dim in the recipe means dim = 64, the model has 32"),
        (
            {"size": "small"},
            r"model\.size = 'small' in the recipe means dim = 256, the model has 32; ",
        ),
        (
            {"cross_attention": "softmax"},
            r"model\.cross_attention in the recipe means cross_attention = 'softmax', the model "
            "has 'rela-g'",
        ),
        ({"norm_first": True}, r"model\.norm_first in the recipe means norm_first = True, "),
    ],
)
def test_settings_that_contradict_the_model(
    given: dict[str, Any], message: str, base: Path, shifted: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        run_training(fine_tuning(base, shifted, **given), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_corpus_with_another_tokenizer(
    base: Path, corpus: PreparedCorpus, shifted: Path, tmp_path: Path
) -> None:
    files = {"train": ParallelFiles(shifted / "train.en", shifted / "train.de")}
    prepare(files, tmp_path / "other", settings=PrepareSettings(vocab_size=290))
    content = fine_tuning(base, shifted).model_dump(mode="json", exclude_unset=True)
    content["data"] = {"prepared": str(tmp_path / "other")}
    with pytest.raises(
        ValueError, match=r"other was prepared with another tokenizer \(\d+ tokens\)"
    ):
        with_starting_model(make_recipe(content, "test"))
    content["data"] = {"prepared": str(corpus.folder)}
    with_starting_model(make_recipe(content, "test"))


def test_no_model(shifted: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is neither a model directory nor a run with one"):
        run_training(fine_tuning(tmp_path / "nothing", shifted), tmp_path / "run")


def test_languages_and_vocabulary(
    base: Path, shifted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = fine_tuning(base, shifted).model_dump(mode="json", exclude_unset=True)
    content["data"] = {"folder": str(shifted), "source": "fr", "vocab_size": 5000}
    with caplog.at_level(logging.WARNING):
        recipe = with_starting_model(make_recipe(content, "test"))
    assert (recipe.data.source, recipe.data.target) == ("fr", "de")
    assert "data.source = 'fr', but" in caplog.text
    assert "was trained with 'en'" in caplog.text
    assert "data.vocab_size = 5,000 has no effect" in caplog.text
