"""The loss of an update is one mean over all of its batches, however they are cut."""

import numpy as np
import pytest
import torch
from small_runs import MODEL

from relakit.data.prepared_reader import PreparedCorpus
from relakit.model import Transformer
from relakit.train.distributed import World
from relakit.train.plan import Update
from relakit.train.recipe import ModelSection, TrainingSection
from relakit.train.step import GradientStep, UpdateLoss

SENTENCES = np.arange(40)


def gradients(
    corpus: PreparedCorpus, pieces: list[np.ndarray], loss_mean: str
) -> tuple[UpdateLoss, dict[str, torch.Tensor]]:
    """Of an update with these batches, of a model that is always the same."""
    torch.manual_seed(0)
    section = ModelSection.model_validate({**MODEL, "dropout": 0.0, "attention_dropout": 0.0})
    model = Transformer(section.config(corpus.tokenizer.size)).double()
    training = TrainingSection.model_validate({"updates": 1, "loss_mean": loss_mean})
    step = GradientStep(model, corpus.train, World(), training, precision=torch.float32)
    tokens = sum(int(corpus.train.target_lengths[i]) + 1 for i in np.concatenate(pieces))
    loss = step(Update(1, 0, tuple(pieces), tokens, is_last_of_epoch=False))
    return loss, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("loss_mean", ["tokens", "sentences"])
def test_batches_of_different_sizes_make_one_mean(corpus: PreparedCorpus, loss_mean: str) -> None:
    whole, expected = gradients(corpus, [SENTENCES], loss_mean)
    for cuts in ([1], [7, 30]):
        loss, found = gradients(corpus, np.split(SENTENCES, cuts), loss_mean)
        assert loss == pytest.approx(whole, rel=1e-5)
        assert found.keys() == expected.keys()
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-7)


def test_the_mean_over_sentences_is_the_mean_of_each_alone(corpus: PreparedCorpus) -> None:
    loss, found = gradients(corpus, [SENTENCES], "sentences")
    alone = [gradients(corpus, [SENTENCES[i : i + 1]], "tokens") for i in range(len(SENTENCES))]
    assert loss.smoothed == pytest.approx(np.mean([one.smoothed for one, _ in alone]), rel=1e-5)
    mean = torch.stack([each["embedding.weight"] for _, each in alone]).mean(0)
    torch.testing.assert_close(found["embedding.weight"], mean, rtol=1e-4, atol=1e-7)
    by_tokens, _ = gradients(corpus, [SENTENCES], "tokens")
    assert loss.smoothed != pytest.approx(by_tokens.smoothed, rel=1e-3)
    assert loss.negative_log_likelihood == pytest.approx(by_tokens.negative_log_likelihood)
