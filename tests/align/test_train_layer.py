"""A layer learns planted links, of a model that stays as it is."""

import copy
from collections.abc import Iterable

import pytest
import torch
from planted_links import null_words, planted_pairs, planted_tokenizer
from random_models import random_model

from relakit.align.aligner import Aligner
from relakit.align.layer import AlignmentLayer
from relakit.align.lessons import Lesson, make_lessons
from relakit.align.train_layer import Exam, LayerSettings, TrainedLayer, train_layer
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.pairs import AnalysisPair
from relakit.broken_model import BrokenModelError
from relakit.data.tokenizer import Tokenizer
from relakit.model import Transformer

QUICK = LayerSettings(epochs=1, update_tokens=256)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return planted_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return random_model("rela-g", vocabulary=tokenizer.size)


def lessons(tokenizer: Tokenizer, pairs: list[AnalysisPair]) -> list[Lesson]:
    links = [pair.gold or GoldAlignment(frozenset()) for pair in pairs]
    return list(make_lessons(tokenizer, pairs, links, are_complete=True))


@pytest.fixture(scope="module")
def trained(model: Transformer, tokenizer: Tokenizer) -> TrainedLayer:
    settings = LayerSettings(epochs=6, update_tokens=512, learning_rate=0.01)
    exam = Exam(lessons(tokenizer, planted_pairs(40, seed=2)), "gold")
    return train_layer(model, lessons(tokenizer, planted_pairs(400)), exam, settings)


def test_planted_links_are_learnt(
    model: Transformer, tokenizer: Tokenizer, trained: TrainedLayer
) -> None:
    pairs = planted_pairs(60, seed=3)
    found = list(Aligner(model, tokenizer, layer=trained.layer).align(pairs))
    right = sum(len(one.links & p.gold.sure) for one, p in zip(found, pairs, strict=True) if p.gold)
    assert right / sum(len(p.gold.sure) for p in pairs if p.gold) > 0.9, "recall"
    assert right / sum(len(one.links) for one in found) > 0.9, "precision"
    assert trained.scores.aer is not None
    assert trained.scores.aer < 0.1
    assert (trained.scores.against, trained.scores.pairs, trained.epochs) == ("gold", 40, 6.0)


def test_words_from_nowhere_are_null(
    model: Transformer, tokenizer: Tokenizer, trained: TrainedLayer
) -> None:
    pairs = planted_pairs(60, seed=4)
    found = Aligner(model, tokenizer, layer=trained.layer).align(pairs)
    kept = total = 0
    for pair, alignment in zip(pairs, found, strict=True):
        nulls = null_words(pair)
        total += len(nulls)
        kept += len(nulls & set(alignment.unaligned_target))
    assert total > 20
    assert kept / total > 0.9


def loss_after(model: Transformer, some: Iterable[Lesson], tokenizer: Tokenizer) -> float:
    """What a layer that learns from these lessons loses in an exam of all links."""
    settings = LayerSettings(epochs=4, update_tokens=512, learning_rate=0.01)
    exam = Exam(lessons(tokenizer, planted_pairs(40, seed=2)))
    return train_layer(model, list(some), exam, settings).scores.loss


def test_disputed_links_are_left_open(model: Transformer, tokenizer: Tokenizer) -> None:
    """With half of the links disputed instead of absent, words are surer to be linked."""
    pairs = planted_pairs(400)
    half = [
        GoldAlignment(frozenset(sorted(p.gold.sure)[::2]), p.gold.sure) for p in pairs if p.gold
    ]
    absent = [GoldAlignment(links.sure) for links in half]
    losses = [
        loss_after(model, make_lessons(tokenizer, pairs, links, are_complete=True), tokenizer)
        for links in (half, absent)
    ]
    assert losses[0] < 0.5 * losses[1]


def test_silence_about_words_without_a_link_is_no_lesson(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    """With half of the links unknown, words are surer to be linked if that is said."""
    pairs = planted_pairs(400)
    half = [GoldAlignment(frozenset(sorted(p.gold.sure)[::2])) for p in pairs if p.gold]
    losses = [
        loss_after(model, make_lessons(tokenizer, pairs, half, are_complete=known), tokenizer)
        for known in (False, True)
    ]
    assert losses[0] < 0.5 * losses[1]


def test_the_model_stays_as_it_is(model: Transformer, tokenizer: Tokenizer) -> None:
    before = copy.deepcopy(model.state_dict())
    model.train()
    some = lessons(tokenizer, planted_pairs(20))
    train_layer(model, some, Exam(some[:5]), QUICK)
    assert model.training
    model.eval()
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_seed_decides(model: Transformer, tokenizer: Tokenizer) -> None:
    some = lessons(tokenizer, planted_pairs(30))

    def weights(seed: int) -> torch.Tensor:
        torch.rand(3)  # random numbers that others draw do not matter
        settings = LayerSettings(epochs=1, update_tokens=128, seed=seed)
        return train_layer(model, some[5:], Exam(some[:5]), settings).layer.query.weight

    state = torch.random.get_rng_state()
    first = weights(1)
    assert torch.equal(first, weights(1))
    assert not torch.equal(first, weights(2))
    torch.random.set_rng_state(state)
    torch.rand(3)
    expected = torch.rand(1)
    torch.random.set_rng_state(state)
    weights(1)
    assert torch.equal(torch.rand(1), expected), "nor does training draw from others' numbers"


def test_progress_reaches_the_end(model: Transformer, tokenizer: Tokenizer) -> None:
    some = lessons(tokenizer, planted_pairs(30))
    told: list[tuple[int, int]] = []
    settings = LayerSettings(epochs=2, update_tokens=64)
    train_layer(model, some, Exam(some[:3]), settings, lambda *numbers: told.append(numbers))
    assert told[-1] == (60, 60)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_no_time_at_all(model: Transformer, tokenizer: Tokenizer) -> None:
    """It ends after an update, and the layer is examined all the same."""
    some = lessons(tokenizer, planted_pairs(30))
    settings = LayerSettings(epochs=50, minutes=1e-9, update_tokens=64)
    found = train_layer(model, some, Exam(some[:3]), settings)
    assert found.epochs < 1
    assert found.scores.loss > 0


def test_passes_and_rates() -> None:
    settings = LayerSettings()
    assert [settings.passes(n) for n in (100, 40_000, 100_000, 5_000_000)] == [10, 3, 1, 1]
    assert LayerSettings(epochs=4).passes(5_000_000) == 4
    rates = [settings.rate(share / 100, 128) for share in range(101)]
    assert max(rates) == rates[5] == pytest.approx(0.002)
    assert rates[:6] == sorted(rates[:6])
    assert rates[5:] == sorted(rates[5:], reverse=True)
    assert settings.rate(0.05, 512) == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"update_tokens": 0}, "update_tokens must be at least 1, got 0"),
        ({"minutes": 0.0}, "minutes must be a number above 0, got 0.0"),
        ({"learning_rate": float("inf")}, "learning_rate must be a number above 0, got inf"),
    ],
)
def test_wrong_settings(changes: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        LayerSettings(**changes)  # type: ignore[arg-type]


def test_nothing_to_learn(model: Transformer, tokenizer: Tokenizer) -> None:
    pairs = planted_pairs(4)
    some = lessons(tokenizer, pairs)
    nothing = [GoldAlignment(frozenset())] * 4
    none = list(make_lessons(tokenizer, pairs, nothing, are_complete=True))
    with pytest.raises(ValueError, match="no link to learn from in 4 pairs"):
        train_layer(model, none, Exam(some), QUICK)
    with pytest.raises(ValueError, match="no link to examine in 4 pairs"):
        train_layer(model, some, Exam(none), QUICK)


def test_a_broken_model(model: Transformer, tokenizer: Tokenizer) -> None:
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.encoder.layers[0].feed_forward.inner.weight.fill_(torch.nan)  # type: ignore[union-attr]
    some = lessons(tokenizer, planted_pairs(20))
    with pytest.raises(BrokenModelError):
        train_layer(broken, some, Exam(some[:5]), QUICK)
    layer = AlignmentLayer(model.config.dim)
    with pytest.raises(BrokenModelError):
        list(Aligner(broken, tokenizer, layer=layer).align(planted_pairs(2)))
