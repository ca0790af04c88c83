"""Computing without dropout and gradients leaves no trace in the model."""

import pytest
import torch

from relakit.model import ModelConfig, Transformer
from relakit.model.evaluation import evaluation_mode, inference


def make_model() -> Transformer:
    return Transformer(
        ModelConfig(
            vocabulary=23, dim=16, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=32
        )
    )


def are_training(model: Transformer) -> set[bool]:
    return {module.training for module in model.modules()}


def test_every_model_gets_its_own_mode_back() -> None:
    trained, still = make_model(), make_model().eval()
    with evaluation_mode(trained, still):
        assert are_training(trained) == are_training(still) == {False}
    assert are_training(trained) == {True}
    assert are_training(still) == {False}


def test_an_error_does_not_leave_it_in_evaluation_mode() -> None:
    model = make_model()

    def fail() -> None:
        assert not model.training
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), inference(model, positions=3):
        fail()
    assert are_training(model) == {True}
    assert not torch.is_inference_mode_enabled()


def test_positions_are_grown_outside_of_inference_mode() -> None:
    model = make_model()
    source = torch.randint(4, 23, (1, 300))
    with inference(model, positions=300):
        assert model(source, source).is_inference()
    assert model.embedding.positions.size(0) >= 300
    assert not model.embedding.positions.is_inference()
