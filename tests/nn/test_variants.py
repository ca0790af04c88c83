"""`relakit.MultiheadAttention` for every row of Table 1 and other specs, against the oracle."""

import itertools
import math
from typing import Any

import numpy as np
import paper_numpy
import pytest
import torch
from torch import Tensor

import relakit
from relakit import AttentionSpec

DIM, HEADS, BATCH = 12, 3, 2
NORMED = [name for name, row in paper_numpy.TABLE_1.items() if "norm" in row]
SPECS: dict[str, tuple[AttentionSpec, dict[str, Any]]] = {
    "learned-threshold": (
        AttentionSpec(threshold="learned"),
        {"activation": "relu", "norm": "rms", "gate": True},
    ),
    "learned-threshold-gelu": (
        AttentionSpec(activation="gelu", threshold="learned", norm="none", gate=False),
        {"activation": "gelu"},
    ),
    "threshold": (
        AttentionSpec(threshold=-0.3, norm="layer", gate=False),
        {"activation": "relu", "norm": "layer", "threshold": -0.3},
    ),
    "squared": (
        AttentionSpec(power=2.0, gate=False),
        {"activation": "relu", "norm": "rms", "power": 2.0},
    ),
    "per-valid-key": (
        AttentionSpec(length_exponent=1.0, norm="none", gate=False),
        {"activation": "relu", "length_exponent": 1.0},
    ),
    "xavier-head": (
        AttentionSpec(gain_init="xavier-head", gate=False),
        {"activation": "relu", "norm": "rms"},
    ),
    "large-eps": (
        AttentionSpec(norm_eps=0.5),
        {"activation": "relu", "norm": "rms", "gate": True, "norm_eps": 0.5},
    ),
    "sigmoid": (
        AttentionSpec(activation="sigmoid", norm="rms", gate=False),
        {"activation": "sigmoid", "norm": "rms"},
    ),
    "softpick": (
        AttentionSpec(activation="softpick", norm="none", gate=False),
        {"activation": "softpick"},
    ),
}
EVERY = [
    *(pytest.param(name, row, id=name) for name, row in paper_numpy.TABLE_1.items()),
    *(pytest.param(spec, row, id=name) for name, (spec, row) in SPECS.items()),
]


def _module(
    attention: str | AttentionSpec, dim: int = DIM, **options: Any
) -> relakit.MultiheadAttention:
    """In float64, no parameter at a value, such as 0 or 1, that hides it."""
    module = relakit.MultiheadAttention(
        dim, HEADS, batch_first=True, dtype=torch.float64, attention=attention, **options
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return module


def _parameters(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in module.state_dict().items()}


def _input(length: int, dim: int = DIM) -> Tensor:
    return torch.randn(BATCH, length, dim, dtype=torch.float64)


def _masks(kind: str, queries: int, keys: int) -> dict[str, Tensor]:
    """True = masked out. The second sequence is shorter; "all" leaves its first query no key."""
    causal = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    padding = torch.arange(keys) >= torch.tensor([[keys], [keys - 3]])
    match kind:
        case "none":
            return {}
        case "padding":
            return {"key_padding_mask": padding}
        case "causal":
            return {"attn_mask": causal}
        case "causal+padding":
            return {"attn_mask": causal, "key_padding_mask": padding}
        case "bias":
            bias = torch.randn(queries, keys, dtype=torch.float64)
            return {"attn_mask": bias.masked_fill(causal, -math.inf)}
        case "all":
            return {
                "attn_mask": causal,
                "key_padding_mask": torch.arange(keys) < torch.tensor([[0], [2]]),
            }
    raise AssertionError(kind)


@pytest.mark.parametrize("mask", ["none", "padding", "causal", "causal+padding", "bias", "all"])
@pytest.mark.parametrize(("attention", "row"), EVERY)
def test_self_attention_equals_the_oracle(
    attention: str | AttentionSpec, row: dict[str, Any], mask: str
) -> None:
    module, x, masks = _module(attention), _input(7), _masks(mask, 7, 7)
    _assert_equals_oracle(module, x, x, x, masks, row)


@pytest.mark.parametrize("mask", ["none", "padding", "bias", "all"])
@pytest.mark.parametrize(("attention", "row"), EVERY)
def test_cross_attention_equals_the_oracle(
    attention: str | AttentionSpec, row: dict[str, Any], mask: str
) -> None:
    module, masks = _module(attention), _masks(mask, 5, 9)
    _assert_equals_oracle(module, _input(5), _input(9), _input(9), masks, row)


def _assert_equals_oracle(
    module: relakit.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: dict[str, Tensor],
    row: dict[str, Any],
) -> None:
    expected, expected_weights = paper_numpy.multihead(
        _parameters(module),
        HEADS,
        *(x.numpy() for x in (query, key, value)),
        **{name: mask.numpy() for name, mask in masks.items()},
        **row,
    )
    output, weights = module(query, key, value, average_attn_weights=False, **masks)
    output_alone = module(query, key, value, need_weights=False, **masks)[0]
    tolerance = {"rtol": 1e-10, "atol": 1e-11}
    torch.testing.assert_close(output, torch.from_numpy(expected), **tolerance)
    torch.testing.assert_close(output_alone, torch.from_numpy(expected), **tolerance)
    torch.testing.assert_close(weights, torch.from_numpy(expected_weights), **tolerance)


def test_names_are_the_rows_of_table_1() -> None:
    assert list(relakit.ATTENTIONS) == list(paper_numpy.TABLE_1)


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_name_and_its_spec_are_the_same(name: str) -> None:
    module, x = _module(name), _input(5)
    twin = _module(relakit.ATTENTIONS[name])
    twin.load_state_dict(module.state_dict())
    assert torch.equal(module(x, x, x)[0], twin(x, x, x)[0])


@pytest.mark.parametrize("name", relakit.ATTENTIONS)
def test_no_weights_unless_asked_for(name: str) -> None:
    module, x = _module(name), _input(5)
    assert module(x, x, x, need_weights=False)[1] is None
    assert module(x, x, x)[1].shape == (BATCH, 5, 5)


def test_rela_g_is_the_default() -> None:
    module = relakit.MultiheadAttention(DIM, HEADS)
    assert "norm.gate" in module.state_dict()
    assert "norm.bias" not in module.state_dict()


@pytest.mark.parametrize(("attention", "row"), EVERY)
def test_extra_parameters(attention: str | AttentionSpec, row: dict[str, Any]) -> None:
    plain = set(torch.nn.MultiheadAttention(DIM, HEADS).state_dict())
    extra = {
        "none": set(),
        "rms": {"norm.weight"},
        "layer": {"norm.weight", "norm.bias"},
    }[row.get("norm", "none")]
    if row.get("gate"):
        extra |= {"norm.gate"}
    if isinstance(attention, AttentionSpec) and attention.threshold == "learned":
        extra |= {"threshold"}
    state = relakit.MultiheadAttention(DIM, HEADS, attention=attention).state_dict()
    assert set(state) - plain == extra
    assert plain <= set(state)
    assert all(state[name].shape == (DIM,) for name in extra if name.startswith("norm"))


def _reaches(sample: Tensor, bound: float) -> bool:
    """Within ±bound, and with so many numbers close to both ends."""
    return bool(
        sample.abs().max() <= bound and sample.min() < -0.9 * bound and sample.max() > 0.9 * bound
    )


@pytest.mark.parametrize(
    ("attention", "fan"),
    [("rela-i", 512), (AttentionSpec(gate=False, gain_init="xavier-head"), 64)],
    ids=["rela-i", "xavier-head"],
)
def test_rela_i_gain_starts_uniform(attention: str | AttentionSpec, fan: int) -> None:
    module = relakit.MultiheadAttention(512, 8, attention=attention)
    assert _reaches(module.state_dict()["norm.weight"], math.sqrt(3 / fan))


@pytest.mark.parametrize("name", [name for name in NORMED if name != "rela-i"])
def test_gain_starts_at_one(name: str) -> None:
    module = relakit.MultiheadAttention(512, 8, attention=name)
    assert (module.state_dict()["norm.weight"] == 1).all()


@pytest.mark.parametrize("name", [name for name in NORMED if "rela-g" in name])
def test_gate_starts_uniform(name: str) -> None:
    module = relakit.MultiheadAttention(512, 8, attention=name)
    assert _reaches(module.state_dict()["norm.gate"], math.sqrt(3 / 512))


def test_learned_threshold_starts_at_zero_for_every_head() -> None:
    module = relakit.MultiheadAttention(DIM, HEADS, attention=AttentionSpec(threshold="learned"))
    assert module.threshold.tolist() == [0.0] * HEADS
    assert module.threshold.requires_grad


def test_learned_threshold_gets_a_gradient_per_head() -> None:
    module, x = _module(AttentionSpec(threshold="learned")), _input(7)
    module(x, x, x)[0].square().sum().backward()
    assert module.threshold.grad is not None
    assert (module.threshold.grad != 0).all()


@pytest.mark.parametrize("name", NORMED)
def test_norm_is_over_the_concatenated_heads(name: str) -> None:
    """Not per head: the two differ, and the module is with the former."""
    module, x = _module(name), _input(7)
    row = dict(paper_numpy.TABLE_1[name])
    parameters, array = _parameters(module), x.numpy()
    norm = {"norm": row.pop("norm"), "gate": row.pop("gate", False)}
    z, _ = paper_numpy.concatenated_heads(parameters, HEADS, array, array, array, **row)
    together = paper_numpy.normalise(parameters, z, **norm)
    per_head = np.concatenate(
        [
            paper_numpy.normalise(
                {k: np.split(v, HEADS)[h] for k, v in parameters.items() if k.startswith("norm.")},
                head,
                **norm,
            )
            for h, head in enumerate(np.split(z, HEADS, axis=-1))
        ],
        axis=-1,
    )
    assert np.abs(together - per_head).max() > 0.1

    output = module(x, x, x)[0] - module.out_proj.bias
    actual = torch.linalg.solve(module.out_proj.weight, output.mT).mT
    np.testing.assert_allclose(actual.detach().numpy(), together, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in NORMED if "relu" in name or name == "rela-i"])
def test_dropout_acts_on_the_weights_before_the_norm(name: str) -> None:
    """With one key, dropout switches a head off or leaves it as it is, but for a factor. RMSNorm
    does not see a factor that all heads share: a query's output is one of 2^heads vectors."""
    module = _module(name, dropout=0.5)
    with torch.no_grad():  # scores far above 0: no head is null by itself
        module.in_proj_weight[: 2 * DIM] = 0
        module.in_proj_bias[: 2 * DIM] = 3
    query, key = _input(200), _input(1)[:, :1]
    parameters, row = _parameters(module), dict(paper_numpy.TABLE_1[name])
    del row["norm"]
    z, _ = paper_numpy.concatenated_heads(
        parameters, HEADS, query.numpy(), key.numpy(), key.numpy(), **row
    )
    candidates = []
    for kept in itertools.product([0, 1], repeat=HEADS):
        dropped = z * np.repeat(kept, DIM // HEADS) / 0.5
        normed = paper_numpy.normalise(parameters, dropped, norm="rms")
        projected = normed @ parameters["out_proj.weight"].T + parameters["out_proj.bias"]
        candidates.append(torch.from_numpy(projected))

    module.train()
    output = module(query, key, key)[0]
    matches = torch.stack([(output - c).abs().amax(-1) < 1e-9 for c in candidates])
    assert (matches.sum(0) == 1).all()
    counts = matches.sum((1, 2))  # how often each choice of heads was drawn, 50 on average
    assert counts.min() > 20
    assert counts.max() < 90

    module.eval()
    torch.testing.assert_close(module(query, key, key)[0], candidates[-1], rtol=1e-9, atol=1e-9)


def test_dropout_of_the_function() -> None:
    """A weight is dropped, or divided by the probability to keep it; values = I show which."""
    q, k = (torch.randn(2, 4, length, 8, dtype=torch.float64) for length in (50, 40))
    v = torch.eye(40, dtype=torch.float64).expand(2, 4, 40, 40)
    for activation in ("relu", "softmax", "gelu"):
        weights = relakit.attention(q, k, v, activation=activation)
        dropped = relakit.attention(q, k, v, activation=activation, dropout_p=0.3)
        kept = dropped != 0
        torch.testing.assert_close(dropped[kept], weights[kept] / 0.7)
        share = kept.sum() / (weights != 0).sum()
        assert abs(share - 0.7) < 0.02, "of about 8,000 weights or more"


def test_dropout_is_off_in_evaluation() -> None:
    module, x = _module("rela-g", dropout=0.5).eval(), _input(7)
    assert torch.equal(module(x, x, x)[0], module(x, x, x)[0])
    _assert_equals_oracle(module, x, x, x, {}, dict(paper_numpy.TABLE_1["rela-g"]))


@pytest.mark.parametrize(("attention", "row"), EVERY)
def test_gradients_of_the_whole_module(attention: str | AttentionSpec, row: dict[str, Any]) -> None:
    """Of the input and of every parameter, by finite differences; a query sees no key at all."""
    module = _module(attention, dim=2 * HEADS)  # small: each weight takes two runs
    names = [name for name, _ in module.named_parameters()]
    mask = torch.tensor([[False, True, False], [True, True, True], [False, False, True]])

    def forward(x: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        values = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, values, (x, x, x), {"attn_mask": mask})

    x = _input(3, dim=2 * HEADS)
    _check_distance_to_kinks(module, x)
    inputs = [tensor.detach().clone().requires_grad_() for tensor in (x, *module.parameters())]
    assert torch.autograd.gradcheck(forward, inputs, atol=1e-6)


def _check_distance_to_kinks(module: relakit.MultiheadAttention, x: Tensor) -> None:
    """No score may be so near its threshold that a finite difference crosses it."""
    size = module.head_dim
    projected = torch.nn.functional.linear(x, module.in_proj_weight, module.in_proj_bias)
    query, key, _ = projected.chunk(3, dim=-1)
    query, key = (t.unflatten(-1, (HEADS, size)).transpose(1, 2) for t in (query, key))
    scores = query @ key.mT / math.sqrt(size)
    threshold = module.threshold
    if threshold is None:
        scores = scores - module.attention.threshold
    else:
        scores = scores - threshold[:, None, None]
    assert scores.abs().min() > 1e-4
