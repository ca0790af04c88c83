"""Runs that cannot work are refused before anything is built, with both numbers; or warned of."""

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import recipe_of

from relakit import limits
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.train.dry_run import dry_run
from relakit.train.feasibility import check_batches, check_corpus, check_model, warn_of_short_run
from relakit.train.recipe_file import make_recipe
from relakit.train.run import read_recipe, run_training

CPU = torch.device("cpu")


def test_a_model_larger_than_the_machine(
    text_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found before the corpus is prepared."""
    content: dict[str, Any] = {
        "data": {"folder": str(text_folder)},
        "model": {"dim": 100_000, "heads": 1},
        "training": {"epochs": 1, "device": "cpu"},
    }
    monkeypatch.setattr(limits, "machine_memory", lambda: 8 << 30)
    expected = (
        r"^training this model \(model\.dim = 100,000, model\.feed_forward = 2,048, 6 \+ 6 layers, "
        r"at least 260 tokens\) would need about 10\.\d TiB of memory, this machine has 8\.0 GiB; "
        "make it smaller$"
    )
    with pytest.raises(ValueError, match=expected):
        run_training(make_recipe(content, "test"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_vocabulary_counts(corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(corpus, model={"dim": 512})
    monkeypatch.setattr(limits, "machine_memory", lambda: 1 << 30)
    check_model(recipe, CPU)
    with pytest.raises(ValueError, match=r"at least 500,000 tokens\) would need about 3\.\d GiB"):
        check_model(recipe, CPU, 500_000)


def test_batches_smaller_than_a_sentence(corpus: PreparedCorpus, tmp_path: Path) -> None:
    longest = corpus.train.longest + 1
    recipe = recipe_of(corpus, training={"batch_tokens": longest})
    check_batches(recipe, corpus.train, CPU, corpus.tokenizer.size)
    expected = (
        rf"^training\.batch_tokens = 1, but the longest sentence of train has {longest} tokens "
        "with its end: give at least that many, or prepare the corpus with a smaller max_tokens$"
    )
    with pytest.raises(ValueError, match=expected):
        run_training(recipe_of(corpus, training={"batch_tokens": 1}), tmp_path / "run")


def test_batches_larger_than_memory(
    corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "machine_memory", lambda: 4 << 20)
    check_batches(recipe_of(corpus), corpus.train, CPU, corpus.tokenizer.size)
    recipe = recipe_of(corpus, training={"batch_tokens": 10**9})
    expected = r"training with batches of 2,\d\d\d tokens would need about \d\.\d MiB of memory"
    with pytest.raises(ValueError, match=expected):
        check_batches(recipe, corpus.train, CPU, corpus.tokenizer.size)


def test_absurd_threads(corpus: PreparedCorpus, tmp_path: Path) -> None:
    recipe = recipe_of(corpus, training={"threads": 100_000})
    with pytest.raises(ValueError, match=r"^training\.threads must be at most \d+ on this machine"):
        run_training(recipe, tmp_path / "run")


class TestShortRuns:
    """A run that ends within its warm-up is trained, with a warning that names both numbers."""

    def test_in_training_and_before(
        self, corpus: PreparedCorpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        recipe = recipe_of(corpus, training={"updates": 2, "warmup": 2000})
        expected = (
            "the run has 2 updates, all within the warm-up (training.warmup = 2,000), so it ends "
            "before the learning rate falls; for little data set training.update_tokens and "
            "training.warmup to less, or train for longer"
        )
        dry_run(recipe)
        assert caplog.messages == [expected]
        run_training(recipe, tmp_path / "run")
        assert caplog.messages == [expected, expected]

    def test_epochs_count_by_their_updates(
        self, corpus: PreparedCorpus, caplog: pytest.LogCaptureFixture
    ) -> None:
        epochs = {"updates": None, "epochs": 3, "warmup": 10**6}
        updates = dry_run(recipe_of(corpus, training=epochs)).updates
        assert updates is not None
        assert updates > 3
        assert f"the run has {updates:,} updates, all within" in caplog.text

    @pytest.mark.parametrize(("updates", "is_short"), [(None, False), (30, True), (31, False)])
    def test_the_last_update_must_be_after_the_peak(
        self,
        updates: int | None,
        is_short: bool,
        corpus: PreparedCorpus,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        warn_of_short_run(recipe_of(corpus, training={"warmup": 30}).training, updates)
        assert bool(caplog.messages) == is_short


@pytest.fixture(scope="module")
def other_way(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """A corpus prepared from German to English."""
    folder = tmp_path_factory.mktemp("prepared") / "corpus"
    files = {"train": ParallelFiles(text_folder / "train.de", text_folder / "train.en")}
    settings = PrepareSettings(vocab_size=300, source_language="de", target_language="en")
    prepare(files, folder, settings=settings)
    return PreparedCorpus.load(folder)


class TestLanguages:
    def test_others_than_the_recipe_says(self, other_way: PreparedCorpus, tmp_path: Path) -> None:
        data = {"prepared": str(other_way.folder), "source": "en", "target": "de"}
        expected = (
            r"was prepared for de to en, but the recipe says data\.source = 'en', data\.target = "
            "'de'; change the recipe, or prepare the corpus for these languages"
        )
        with pytest.raises(ValueError, match=expected):
            run_training(recipe_of(other_way, data=data), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_the_corpus_decides_where_the_recipe_is_silent(
        self, other_way: PreparedCorpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = tmp_path / "run"
        recipe = recipe_of(other_way, training={"updates": 2, "warmup": 1})
        run_training(recipe, folder)
        assert caplog.messages == [
            f"{other_way.folder} was prepared for de to en, and so is this run: the recipe names "
            "no languages"
        ]
        kept = read_recipe(folder)
        assert kept is not None
        assert (kept.data.source, kept.data.target) == ("de", "en")
        run_training(recipe, folder, resume=True)  # the same recipe still fits
        run_training(None, folder, resume=True)


def test_searches_larger_than_memory(
    corpus: PreparedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the validation, and those at the end, which may have a wider beam."""
    monkeypatch.setattr(limits, "machine_memory", lambda: 16 << 20)
    for settings in ({"beam": 900}, {"final_beam": 900}):
        recipe = recipe_of(corpus, validation={"bleu": True, **settings})
        with pytest.raises(ValueError, match=r"a search with a beam of 900 .* would need about"):
            check_corpus(recipe, corpus, CPU)
        without = recipe_of(corpus, validation={"bleu": False, **settings})
        check_corpus(without, corpus, CPU)
