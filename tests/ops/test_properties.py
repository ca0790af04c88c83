"""Properties that hold for every input (hypothesis)."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import relakit
from relakit.ops.activations import ACTIVATIONS

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)
activations = st.sampled_from(list(ACTIVATIONS))


def make_inputs(seed: int, queries: int, keys: int, scale: float = 1.0) -> list[Tensor]:
    """Query, key and value with 2 sequences, 3 heads and 4 features."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(2, 3, queries, 4), (2, 3, keys, 4), (2, 3, keys, 5)]
    return [
        (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
        for shape in shapes
    ]


def make_mask(seed: int, queries: int, keys: int) -> Tensor:
    """True = attend; rows without a single True are likely."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand((2, 3, queries, keys), generator=generator) < 0.4


def output_and_gradients(inputs: list[Tensor], **arguments: object) -> list[Tensor]:
    output = relakit.attention(*inputs, **arguments)
    weighted = (output * torch.arange(1, output.size(-1) + 1)).sum()
    return [output, *torch.autograd.grad(weighted, inputs)]


@given(seed=seeds, queries=sizes, keys=sizes, activation=activations, as_bias=st.booleans())
def test_masked_keys_have_no_influence(
    seed: int, queries: int, keys: int, activation: str, as_bias: bool
) -> None:
    query, key, value = make_inputs(seed, queries, keys)
    seen = make_mask(seed, 1, keys)  # for each head, the same keys for all queries
    mask: Tensor = seen
    if as_bias:
        mask = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, -torch.inf)
    hidden = ~seen.squeeze(2).unsqueeze(-1)  # [batch, heads, keys, 1]
    other_key = (key + 1000.0 * hidden).detach().requires_grad_()
    other_value = (value - 1000.0 * hidden).detach().requires_grad_()
    results = output_and_gradients([query, key, value], attn_mask=mask, activation=activation)
    others = output_and_gradients(
        [query, other_key, other_value], attn_mask=mask, activation=activation
    )
    for result, other in zip(results, others, strict=True):
        torch.testing.assert_close(result, other)
    for gradient in results[2:]:  # of key and value
        assert (gradient[hidden.expand_as(gradient)] == 0).all()


@given(seed=seeds, queries=sizes, keys=sizes, activation=activations)
def test_masking_a_key_equals_removing_it(
    seed: int, queries: int, keys: int, activation: str
) -> None:
    query, key, value = make_inputs(seed, queries, keys)
    seen = torch.rand(keys, generator=torch.Generator().manual_seed(seed)) < 0.5
    masked = relakit.attention(query, key, value, seen[None], activation=activation)
    removed = relakit.attention(query, key[:, :, seen], value[:, :, seen], activation=activation)
    torch.testing.assert_close(masked, removed)


@given(
    seed=seeds,
    queries=sizes,
    keys=sizes,
    activation=activations,
    length_exponent=st.sampled_from([0.0, 1.0]),
    power=st.sampled_from([1.0, 2.0]),
)
def test_permuting_keys_changes_nothing(
    seed: int, queries: int, keys: int, activation: str, length_exponent: float, power: float
) -> None:
    options: dict[str, object] = {"activation": activation}
    if activation == "relu":
        options |= {"length_exponent": length_exponent, "power": power}
    query, key, value = make_inputs(seed, queries, keys)
    mask = make_mask(seed, queries, keys)
    order = torch.randperm(keys, generator=torch.Generator().manual_seed(seed))
    results = output_and_gradients([query, key, value], attn_mask=mask, **options)
    permuted = [x[:, :, order].detach().requires_grad_() for x in (key, value)]
    others = output_and_gradients([query, *permuted], attn_mask=mask[..., order], **options)
    torch.testing.assert_close(others[:2], results[:2])
    for gradient, other in zip(results[2:], others[2:], strict=True):
        torch.testing.assert_close(other, gradient[:, :, order])


@given(
    seed=seeds,
    queries=sizes,
    keys=sizes,
    threshold=st.floats(-2, 2),
    power=st.sampled_from([0.5, 1.0, 2.0]),
    margin=st.floats(0, 3),
)
def test_scores_below_the_threshold_give_null_rows(
    seed: int, queries: int, keys: int, threshold: float, power: float, margin: float
) -> None:
    query, key, value = make_inputs(seed, queries, keys)
    scores = (query / 2) @ key.mT
    # Shift every other query's scores so that the highest lies at the threshold or below it.
    is_shifted = (torch.arange(queries) % 2 == 0)[:, None]
    shift = (threshold - margin - scores.amax(-1, keepdim=True)) * is_shifted - 1e-9 * is_shifted
    output, weights = relakit.attention(
        query,
        key,
        value,
        attn_mask=shift.expand_as(scores).detach(),
        threshold=threshold,
        power=power,
        need_weights=True,
    )
    shifted = is_shifted[:, 0]
    assert (weights[:, :, shifted] == 0).all()
    assert (output[:, :, shifted] == 0).all()
    expected = (scores - threshold).clamp(min=0)[:, :, ~shifted]
    torch.testing.assert_close(weights[:, :, ~shifted], expected**power)
    gradients = torch.autograd.grad(output.sum(), [query, key, value])
    assert (gradients[0][:, :, shifted] == 0).all()
    assert all(gradient.isfinite().all() for gradient in gradients)


@given(seed=seeds, queries=sizes, keys=sizes, activation=activations, scale=st.floats(0.01, 30))
def test_finite_input_gives_finite_output_and_gradients(
    seed: int, queries: int, keys: int, activation: str, scale: float
) -> None:
    inputs = make_inputs(seed, queries, keys, scale)
    mask = make_mask(seed, queries, keys)
    for result in output_and_gradients(inputs, attn_mask=mask, activation=activation):
        assert result.isfinite().all()


@given(
    seed=seeds,
    queries=sizes,
    keys=sizes,
    activation=st.sampled_from(["softmax", "sparsemax", "entmax15"]),
    scale=st.floats(0.01, 30),
)
def test_normalised_weights_sum_to_one(
    seed: int, queries: int, keys: int, activation: str, scale: float
) -> None:
    mask = make_mask(seed, queries, keys)
    _, weights = relakit.attention(
        *make_inputs(seed, queries, keys, scale),
        attn_mask=mask,
        activation=activation,
        need_weights=True,
    )
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).to(weights))


@given(seed=seeds, queries=sizes, keys=sizes, activation=activations)
def test_causal_equals_its_mask(seed: int, queries: int, keys: int, activation: str) -> None:
    inputs = make_inputs(seed, queries, keys)
    mask = torch.ones(queries, keys, dtype=torch.bool).tril()
    causal = output_and_gradients(inputs, is_causal=True, activation=activation)
    masked = output_and_gradients(inputs, attn_mask=mask, activation=activation)
    torch.testing.assert_close(causal, masked)
