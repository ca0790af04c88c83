"""Runs with BPE-dropout: resumed to the same weights, with losses over the tokens computed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import assert_same, recipe_of, weights

from relakit.data.prepared_reader import PreparedCorpus
from relakit.model import Transformer
from relakit.train.corpus import split_anew
from relakit.train.distributed import World
from relakit.train.plan import plan_updates
from relakit.train.recipe import Recipe
from relakit.train.run import run_training
from relakit.train.step import GradientStep


def with_dropout(corpus: PreparedCorpus, rate: Any = 0.2, **changed: Any) -> Recipe:
    data = {"prepared": str(corpus.folder), "bpe_dropout": rate}
    return recipe_of(corpus, data=data, **changed)


def test_a_resumed_run_draws_the_same(
    corpus: PreparedCorpus, undisturbed: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    whole, _ = run_training(with_dropout(corpus), tmp_path / "whole")
    run_training(with_dropout(corpus, training={"updates": 10}), tmp_path / "parts")
    parts, _ = run_training(with_dropout(corpus), tmp_path / "parts", resume=True)
    assert_same(weights(tmp_path / "parts"), weights(tmp_path / "whole"))
    assert parts.target_tokens == whole.target_tokens
    name = "embedding.weight"
    assert not torch.equal(weights(tmp_path / "whole")[name], undisturbed[name])


def test_another_rate_is_another_run(corpus: PreparedCorpus, tmp_path: Path) -> None:
    run_training(with_dropout(corpus, training={"updates": 5}), tmp_path / "run")
    with pytest.raises(ValueError, match=r"data\.bpe_dropout\.source = 0\.2, the recipe says 0\.1"):
        run_training(with_dropout(corpus, 0.1), tmp_path / "run", resume=True)


def test_rates() -> None:
    rates = {0.1: (0.1, 0.1), 0: (0.0, 0.0)}
    for rate, expected in rates.items():
        section = Recipe.model_validate(
            {"data": {"generated": {}, "bpe_dropout": rate}, "training": {"epochs": 1}}
        ).data.bpe_dropout
        assert (section.source, section.target) == expected


@pytest.mark.parametrize("rate", [1.0, -0.1, {"target": 1.0}])
def test_rates_that_are_none(corpus: PreparedCorpus, rate: Any) -> None:
    with pytest.raises(ValueError, match=r"data\.bpe_dropout\.(source|target)"):
        with_dropout(corpus, rate)


def test_the_loss_is_a_mean_over_the_tokens_computed(corpus: PreparedCorpus) -> None:
    """A batch in parts has the gradient of the whole, and the mean counts its new tokens."""
    recipe = with_dropout(corpus, 0.5, model={"dropout": 0.0, "attention_dropout": 0.0})
    torch.manual_seed(1)
    model = Transformer(recipe.model.config(corpus.tokenizer.size)).double()
    results = []
    update = next(plan_updates(corpus.train, batch_tokens=150, update_tokens=300, seed=1))
    for batch_tokens in (150, 100_000):
        training = recipe.training.model_copy(update={"batch_tokens": batch_tokens})
        step = GradientStep(
            model, corpus.train, World(), training, precision=torch.float32,
            split_anew=split_anew(recipe.data, corpus.tokenizer),
        )  # fmt: skip
        model.zero_grad()
        loss = step(update)
        gradient = model.embedding.weight.grad
        assert gradient is not None
        results.append((loss, gradient.clone()))
    (parts, part_gradient), (whole, gradient) = results
    assert parts.target_tokens == whole.target_tokens > update.target_tokens
    assert parts.smoothed == pytest.approx(whole.smoothed)
    torch.testing.assert_close(part_gradient, gradient)
