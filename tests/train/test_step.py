"""The loss of an update is one mean over all of its batches, however they are cut, and a whole
update is what plain PyTorch computes."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_runs import MODEL

from relakit.data.batches import collate
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.tokenizer import PAD
from relakit.model import Transformer
from relakit.train.distributed import World
from relakit.train.plan import Update
from relakit.train.recipe import ModelSection, TrainingSection
from relakit.train.step import GradientStep, UpdateLoss, make_optimizer, update_weights

SENTENCES = np.arange(40)


def same_model(corpus: PreparedCorpus) -> Transformer:
    torch.manual_seed(0)
    section = ModelSection.model_validate({**MODEL, "dropout": 0.0, "attention_dropout": 0.0})
    return Transformer(section.config(corpus.tokenizer.size)).double()


def update_of(corpus: PreparedCorpus, number: int, pieces: list[np.ndarray]) -> Update:
    tokens = sum(int(corpus.train.target_lengths[i]) + 1 for i in np.concatenate(pieces))
    return Update(number, 0, tuple(pieces), tokens, is_last_of_epoch=False)


def gradients(
    corpus: PreparedCorpus, pieces: list[np.ndarray], loss_mean: str
) -> tuple[UpdateLoss, dict[str, torch.Tensor]]:
    """Of an update with these batches, of a model that is always the same."""
    model = same_model(corpus)
    training = TrainingSection.model_validate({"updates": 1, "loss_mean": loss_mean})
    step = GradientStep(model, corpus.train, World(), training, precision=torch.float32)
    loss = step(update_of(corpus, 1, pieces))
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


PLAIN = {
    "updates": 4, "warmup": 3, "learning_rate_factor": 0.2, "label_smoothing": 0.0,
    "adam_betas": (0.9, 0.98), "adam_eps": 1e-3,
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"label_smoothing": 0.3},
        {"label_smoothing": 0.3, "smoothing_over": "wrong"},
        {"clip_norm": 0.5},
        {"adam_betas": (0.5, 0.98)},
        {"adam_betas": (0.9, 0.6)},
        {"adam_eps": 0.1},
        {"cooldown": 0.5},
    ],
    ids=str,
)
def test_updates_are_those_of_plain_torch(corpus: PreparedCorpus, changed: dict[str, Any]) -> None:
    """Four of them: Adam's betas cancel out in the first."""
    settings = PLAIN | changed
    batches = np.split(SENTENCES, 4)
    model = same_model(corpus)
    training = TrainingSection.model_validate(settings)
    optimizer = make_optimizer(model, training)
    step = GradientStep(model, corpus.train, World(), training, precision=torch.float32)
    plain_model = same_model(corpus)
    plain = torch.optim.Adam(
        plain_model.parameters(), betas=settings["adam_betas"], eps=settings["adam_eps"]
    )
    for number, batch in enumerate(batches, start=1):
        update = update_of(corpus, number, [batch])
        done = update_weights(update, model, optimizer, step, training)
        rate = expected_rate(number, settings)
        loss, norm = plain_update(plain_model, plain, corpus, batch, rate, settings)
        assert done.loss.smoothed == pytest.approx(loss, rel=1e-5)
        assert done.gradient_norm == pytest.approx(norm, rel=1e-5)
        assert norm > 0.5, "what is clipped"
        assert done.learning_rate == pytest.approx(rate)
    for (name, found), expected in zip(
        model.named_parameters(), plain_model.parameters(), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6, msg=name)


def expected_rate(number: int, settings: dict[str, Any]) -> float:
    """A warm-up of 3 updates; a cooldown over the last two of four leaves the last one half."""
    rate = settings["learning_rate_factor"] * MODEL["dim"] ** -0.5
    rate *= {1: 3**-1.5, 2: 2 * 3**-1.5, 3: 3**-0.5, 4: 4**-0.5}[number]
    return rate / 2 if "cooldown" in settings and number == 4 else rate


def plain_update(
    model: Transformer,
    optimizer: torch.optim.Adam,
    corpus: PreparedCorpus,
    sentences: np.ndarray,
    rate: float,
    settings: dict[str, Any],
) -> tuple[float, float]:
    """Loss and norm of the gradients of an update as anyone would write it."""
    batch = collate(corpus.train, sentences)
    source, target, expected = map(
        torch.from_numpy, (batch.source, batch.target_in, batch.target_out)
    )
    logits, expected = model.logits(model(source, target)).flatten(0, 1), expected.flatten()
    smoothing = settings["label_smoothing"]
    if settings.get("smoothing_over") == "wrong":
        logits, expected = logits[expected != PAD], expected[expected != PAD]
        wanted = torch.full_like(logits, smoothing / (logits.size(1) - 1))
        wanted[torch.arange(len(expected)), expected] = 1 - smoothing
        loss = F.cross_entropy(logits, wanted)
    else:
        loss = F.cross_entropy(logits, expected, ignore_index=PAD, label_smoothing=smoothing)
    optimizer.zero_grad()
    loss.backward()
    limit = settings.get("clip_norm", float("inf"))
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    optimizer.param_groups[0]["lr"] = rate
    optimizer.step()
    return loss.item(), norm.item()
