"""What encoder and decoder read: matrices, bias, first input and positions, by hand."""

import math

import pytest
import torch

from relakit.data.tokenizer import BEGIN, PAD
from relakit.model import ModelConfig, Transformer
from relakit.model.config import Timescales
from relakit.model.embedding import Embedding, sinusoids


def make_config(**changed: object) -> ModelConfig:
    fields = {
        "vocabulary": 23, "dim": 16, "heads": 4, "encoder_layers": 1, "decoder_layers": 1,
        "feed_forward": 24, "dropout": 0.0, "attention_dropout": 0.0, **changed,
    }  # fmt: skip
    return ModelConfig.model_validate(fields)


def make_embedding(**changed: object) -> Embedding:
    torch.manual_seed(0)
    embedding = Embedding(make_config(**changed))
    embedding.reset_parameters()
    return embedding


TOKENS = torch.tensor([[BEGIN, 7, 9], [BEGIN, 5, PAD]])


def test_one_matrix_by_default() -> None:
    embedding = make_embedding()
    assert [name for name, _ in embedding.named_parameters()] == ["weight"]
    expected = 4 * embedding.weight[TOKENS] + sinusoids(3, 16, "vaswani")
    for side in ("source", "target"):
        torch.testing.assert_close(embedding(TOKENS, side=side), expected)


def test_a_separate_source_matrix() -> None:
    embedding = make_embedding(source_embedding="separate")
    assert embedding.source_weight is not None
    assert not torch.equal(embedding.source_weight, embedding.weight)
    assert embedding.source_weight.std().item() == pytest.approx(16**-0.5, rel=0.1)
    positions = sinusoids(3, 16, "vaswani")
    for side, matrix in (("source", embedding.source_weight), ("target", embedding.weight)):
        torch.testing.assert_close(embedding(TOKENS, side=side), 4 * matrix[TOKENS] + positions)


def test_with_a_separate_source_matrix_the_target_stays_tied_to_the_output() -> None:
    torch.manual_seed(0)
    model = Transformer(make_config(source_embedding="separate"))
    states = torch.randn(2, 3, 16)
    torch.testing.assert_close(model.logits(states), states @ model.embedding.weight.t())
    found = model(torch.tensor([[5, 6, 3]]), torch.tensor([[BEGIN, 10]]))
    (found * torch.randn(16)).sum().backward()
    embedding = model.embedding
    assert embedding.source_weight is not None
    for matrix, tokens in ((embedding.source_weight, {3, 5, 6}), (embedding.weight, {BEGIN, 10})):
        assert matrix.grad is not None
        assert set(matrix.grad.abs().sum(1).nonzero().flatten().tolist()) == tokens


def test_a_bias_for_both_sides() -> None:
    embedding = make_embedding(embedding_bias=True, dim=300, heads=1)
    assert embedding.bias is not None
    bound = math.sqrt(3 / 300)
    assert 0.95 * bound < embedding.bias.abs().max().item() <= bound
    positions = sinusoids(3, 300, "vaswani")
    expected = math.sqrt(300) * embedding.weight[TOKENS] + embedding.bias + positions
    for side in ("source", "target"):
        torch.testing.assert_close(embedding(TOKENS, side=side), expected)
    torch.testing.assert_close(embedding.at(2, TOKENS[:, 2]), expected[:, 2])


def test_the_first_input_may_be_zeros() -> None:
    """The bias is left out too, the position is not; all other inputs are as they were."""
    embedding = make_embedding(first_input="zeros", embedding_bias=True)
    usual = make_embedding(embedding_bias=True)
    read = embedding(TOKENS, side="target")
    positions = sinusoids(3, 16, "vaswani")
    assert torch.equal(read[:, 0], positions[0].expand(2, 16))
    assert torch.equal(read[:, 1:], usual(TOKENS, side="target")[:, 1:])
    assert torch.equal(embedding.at(0, TOKENS[:, 0]), read[:, 0])
    read.sum().backward()
    assert embedding.weight.grad is not None
    assert not embedding.weight.grad[BEGIN].any()


@pytest.mark.parametrize(("timescales", "slowest"), [("vaswani", 3), ("tensor2tensor", 2)])
def test_sinusoids_by_hand(timescales: Timescales, slowest: int) -> None:
    vectors = sinusoids(4, 6, timescales)
    for position in range(4):
        for i in range(3):
            angle = position / 10000 ** (i / slowest)
            assert vectors[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert vectors[position, 3 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("timescales", ["vaswani", "tensor2tensor"])
def test_positions_grow(timescales: Timescales) -> None:
    model = Transformer(make_config(timescales=timescales)).eval()
    source = torch.randint(4, 23, (1, 300))
    assert model(source, source).shape == (1, 300, 16)
    grown = model.embedding.position_vectors(300)
    assert torch.equal(grown, sinusoids(300, 16, timescales))
    assert not any("position" in name for name in model.state_dict())


def test_a_dim_of_two_has_one_timescale() -> None:
    assert torch.equal(sinusoids(9, 2, "tensor2tensor"), sinusoids(9, 2, "vaswani"))
