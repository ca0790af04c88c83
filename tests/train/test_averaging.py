"""Models from checkpoints: which ones, their mean, and the directory that is written."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import assert_same, recipe_of, weights
from stopped_runs import run_until

import relakit
from relakit.data.prepared_reader import PreparedCorpus
from relakit.train.averaging import average_run
from relakit.train.run import run_training


@pytest.fixture(scope="module")
def run(corpus: PreparedCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the checkpoints 15, 20 and 24, and its model."""
    folder = tmp_path_factory.mktemp("averaging") / "run"
    run_training(recipe_of(corpus), folder)
    return folder


def mean(run: Path, *names: str) -> dict[str, torch.Tensor]:
    files = [load_file(run / "checkpoints" / name / "weights.safetensors") for name in names]
    return {
        key: (torch.stack([file[key].double() for file in files]).sum(0) / len(files)).float()
        for key in files[0]
    }


def written(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_without_a_choice_it_is_the_run_s_own_model(run: Path, tmp_path: Path) -> None:
    model = average_run(run, tmp_path / "model")
    assert [checkpoint.update for checkpoint in model.checkpoints] == [15, 20, 24]
    assert_same(written(tmp_path / "model"), weights(run))
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    own = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
    assert (config["model"], config["languages"]) == (own["model"], own["languages"])
    assert config["training"]["checkpoints"] == [
        "update-0000015", "update-0000020", "update-0000024",
    ]  # fmt: skip
    assert relakit.load(tmp_path / "model").translate(["one two"], max_length=4)


@pytest.mark.parametrize(
    ("names", "last", "expected"),
    [
        ((), 1, ["update-0000024"]),
        ((), 2, ["update-0000020", "update-0000024"]),
        (("update-0000020",), None, ["update-0000020"]),
        (("24", "15", "24"), None, ["update-0000015", "update-0000024"]),
    ],
)
def test_a_choice(
    run: Path, tmp_path: Path, names: tuple[str, ...], last: int | None, expected: list[str]
) -> None:
    average_run(run, tmp_path / "model", names=names, last=last)
    assert_same(written(tmp_path / "model"), mean(run, *expected))


def test_a_checkpoint_that_was_put_aside(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "checkpoints" / "update-0000020", tmp_path / "best")
    model = average_run(run, tmp_path / "model", names=[str(tmp_path / "best")])
    assert [checkpoint.update for checkpoint in model.checkpoints] == [20]
    assert_same(written(tmp_path / "model"), mean(run, "update-0000020"))


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (7, ["interrupted-0000007"]),
        (12, ["update-0000005", "update-0000010", "interrupted-0000012"]),
    ],
)
def test_a_run_that_was_stopped(
    corpus: PreparedCorpus, tmp_path: Path, update: int, expected: list[str]
) -> None:
    """As its own model: fewer checkpoints than are averaged are not averaged."""
    run_until(recipe_of(corpus), tmp_path / "run", update)
    average_run(tmp_path / "run", tmp_path / "model")
    assert_same(written(tmp_path / "model"), mean(tmp_path / "run", *expected))
    assert_same(written(tmp_path / "model"), weights(tmp_path / "run"))


def test_a_finished_run_with_few_checkpoints(corpus: PreparedCorpus, tmp_path: Path) -> None:
    run_training(recipe_of(corpus, training={"updates": 6}), tmp_path / "run")
    average_run(tmp_path / "run", tmp_path / "model")
    expected = mean(tmp_path / "run", "update-0000005", "update-0000006")
    assert_same(written(tmp_path / "model"), expected)
    assert_same(written(tmp_path / "model"), weights(tmp_path / "run"))


def test_a_model_is_replaced_only_when_asked(run: Path, tmp_path: Path) -> None:
    average_run(run, tmp_path / "model", last=1)
    with pytest.raises(FileExistsError, match="holds a model directory already; --force"):
        average_run(run, tmp_path / "model")
    average_run(run, tmp_path / "model", replace=True)
    assert_same(written(tmp_path / "model"), weights(run))
    with pytest.raises(FileExistsError, match="holds a training run"):
        average_run(run, run, replace=True)


def test_another_corpus_in_the_same_place(
    run: Path, corpus: PreparedCorpus, tmp_path: Path
) -> None:
    """Its tokenizer is not the run's, though it has as many tokens."""
    moved, other = tmp_path / "run", tmp_path / "corpus"
    shutil.copytree(run, moved)
    shutil.copytree(corpus.folder, other)
    tokens = other / "train.target.tokens"
    content = bytearray(tokens.read_bytes())
    content[:2] = content[2:4]
    tokens.write_bytes(content)
    recipe = json.loads((moved / "recipe.json").read_text(encoding="utf-8"))
    recipe["data"]["prepared"] = str(other)
    (moved / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    average_run(moved, tmp_path / "by-model")
    shutil.rmtree(moved / "model")
    with pytest.raises(ValueError, match=r"corpus/tokenizer.json is of another corpus than .*run"):
        average_run(moved, tmp_path / "lost")


def test_one_tokenizer_for_a_run_with_two(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "run"
    shutil.copytree(run, moved)
    recipe = json.loads((moved / "recipe.json").read_text(encoding="utf-8"))
    recipe["data"]["vocabulary"] = "separate"
    (moved / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    with pytest.raises(ValueError, match=r"is one tokenizer, and .* has one for each language"):
        average_run(moved, tmp_path / "model", tokenizer=run / "model" / "tokenizer.json")


def test_where_the_tokenizer_is(run: Path, corpus: PreparedCorpus, tmp_path: Path) -> None:
    moved = tmp_path / "run"
    shutil.copytree(run, moved)
    recipe = json.loads((moved / "recipe.json").read_text(encoding="utf-8"))
    recipe["data"]["prepared"] = str(tmp_path / "gone")
    (moved / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    average_run(moved, tmp_path / "by-model")  # that of its own model
    shutil.rmtree(moved / "model")
    with pytest.raises(ValueError, match=r"is not where it was, in .*gone.*--tokenizer"):
        average_run(moved, tmp_path / "lost")
    average_run(moved, tmp_path / "named", tokenizer=corpus.folder / "tokenizer.json")
    assert_same(written(tmp_path / "named"), written(tmp_path / "by-model"))


class TestMistakes:
    def test_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"is no training run: it has no recipe\.json"):
            average_run(tmp_path, tmp_path / "model")

    def test_no_checkpoints(self, run: Path, tmp_path: Path) -> None:
        shutil.copy(run / "recipe.json", tmp_path)
        with pytest.raises(ValueError, match="has no checkpoints yet"):
            average_run(tmp_path, tmp_path / "model")

    @pytest.mark.parametrize("last", [0, 4])
    def test_more_than_there_are(self, run: Path, tmp_path: Path, last: int) -> None:
        with pytest.raises(ValueError, match=f"has 3 checkpoints, so the last {last} cannot"):
            average_run(run, tmp_path / "model", last=last)

    def test_both_ways_to_choose(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="not both"):
            average_run(run, tmp_path / "model", names=["20"], last=1)

    def test_a_name_that_is_none(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"no checkpoint '21'.*there are: update-0000015, up"):
            average_run(run, tmp_path / "model", names=["21"])
        with pytest.raises(ValueError, match=r"is no checkpoint: it has no state\.json"):
            average_run(run, tmp_path / "model", names=[str(tmp_path)])

    def test_a_damaged_checkpoint(self, run: Path, tmp_path: Path) -> None:
        folder = tmp_path / "damaged"
        shutil.copytree(run / "checkpoints" / "update-0000020", folder)
        (folder / "weights.safetensors").write_bytes(b"nothing")
        with pytest.raises(ValueError, match=r"damaged/weights\.safetensors .*truncated"):
            average_run(run, tmp_path / "model", names=[str(folder)])
        assert not (tmp_path / "model").exists()

    def test_another_model(self, run: Path, corpus: PreparedCorpus, tmp_path: Path) -> None:
        wide = recipe_of(corpus, model={"dim": 64}, training={"updates": 1})
        run_training(wide, tmp_path / "wide")
        other = str(tmp_path / "wide" / "checkpoints" / "update-0000001")
        with pytest.raises(ValueError, match=r"are of different models: .* \(128,\) in .* \(64,\)"):
            average_run(run, tmp_path / "model", names=["20", other])
        with pytest.raises(ValueError, match=r"not of the model in .*recipe\.json"):
            average_run(run, tmp_path / "model", names=[other])

    def test_another_tokenizer(self, run: Path, tmp_path: Path) -> None:
        from relakit.data.tokenizer import learn_tokenizer

        learn_tokenizer(["a b c"] * 5, vocab_size=270).save(tmp_path / "tokenizer.json")
        with pytest.raises(ValueError, match=r"tokens, the checkpoints are of a model with 295"):
            average_run(run, tmp_path / "model", tokenizer=tmp_path / "tokenizer.json")


def test_a_run_in_reverse(corpus: PreparedCorpus, tmp_path: Path) -> None:
    data = {"prepared": str(corpus.folder), "source": "en", "target": "de", "reverse": True}
    run_training(recipe_of(corpus, data=data, training={"updates": 1}), tmp_path / "run")
    average_run(tmp_path / "run", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["languages"] == {"source": "de", "target": "en"}
