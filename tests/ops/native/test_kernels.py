"""Attention kernels: output and gradients equal the reference, with each instruction set here."""

import os
import signal

import pytest
import torch
from grid_attention import assert_same, grid, run
from hypothesis import given, settings
from hypothesis import strategies as st
from native_extension import ISAS
from peak_memory import growth_below
from torch import Tensor

import relakit
from relakit.ops.native import extension

lengths = st.sampled_from([1, 2, 7, 16, 63, 64, 65, 111, 128, 129, 200])
dims = st.sampled_from([1, 3, 8, 16, 17, 33, 64, 80])


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Tensor], Tensor, dict[str, object]]:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    batch, key_heads, group = draw(st.tuples(*[st.integers(1, 2)] * 3))
    heads, queries, keys = key_heads * group, draw(lengths), draw(lengths)
    dim, value_dim = draw(dims), draw(dims)
    shapes = [
        (batch, heads, queries, dim),
        (batch, key_heads, keys, dim),
        (batch, key_heads, keys, value_dim),
    ]
    inputs = [grid(generator, *shape) for shape in shapes]
    layout = draw(st.sampled_from(["contiguous", "heads inside", "every other row", "transposed"]))
    if layout == "heads inside":  # as after a projection
        inputs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    elif layout == "every other row":
        inputs = [x.repeat_interleave(2, 2)[:, :, ::2] for x in inputs]
    elif layout == "transposed":  # features are not contiguous
        inputs = [x.mT.contiguous().mT for x in inputs]
    if draw(st.booleans()):
        inputs = [x.bfloat16() for x in inputs]
    # Off the grid of the scores by half a step: no score is at its threshold. Or on it, at 0.
    shift = draw(st.sampled_from([-1.0, -0.25, 0.0, 0.0, 0.5, 100.0, -100.0]))
    threshold = shift + grid(generator, heads) * (shift != 0) + (shift != 0) / 32
    options: dict[str, object] = {
        "scale": draw(st.sampled_from([0.25, 1.0])),
        "enable_gqa": True,
        "power": draw(st.sampled_from([1.0, 2.0])),
    }
    mask = draw(st.sampled_from(["none", "causal", "bool", "padding", "bias", "rows", "heads"]))
    full = (batch, heads, queries, keys)
    if mask == "causal":
        options["is_causal"] = True
    elif mask == "bool":
        options["attn_mask"] = torch.rand(full, generator=generator) < 0.6
    elif mask == "padding":
        options["attn_mask"] = torch.rand((batch, 1, 1, keys), generator=generator) < 0.6
    elif mask == "rows":
        options["attn_mask"] = torch.rand((queries, 1), generator=generator) < 0.6
    elif mask == "heads":
        options["attn_mask"] = (torch.rand((heads, keys, queries), generator=generator) < 0.6).mT
    elif mask == "bias":
        hidden = torch.rand((queries, keys), generator=generator) < 0.2
        bias = grid(generator, queries, keys).masked_fill(hidden, -torch.inf)
        options["attn_mask"] = bias.to(inputs[0].dtype) if draw(st.booleans()) else bias
    return inputs, threshold, options


@settings(max_examples=150)
@given(problem=problems())
def test_equals_the_reference(
    problem: tuple[list[Tensor], Tensor, dict[str, object]],
) -> None:
    inputs, threshold, options = problem
    expected = run(inputs, threshold, "reference", **options)
    for isa in ISAS:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(extension.ISA_VARIABLE, isa)
            assert_same(run(inputs, threshold, "native", **options), expected)


@pytest.fixture
def _poisoned_memory() -> object:
    """Fresh memory is full of NaN, as is what the kernels left in their scratch memory."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    nan = torch.full((1, 2, 300, 96), torch.nan)
    run([nan, nan, nan], torch.zeros(2), "native")
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("_poisoned_memory")
@pytest.mark.parametrize("shift", [-100.0, 0.03, 0.5, 100.0])
def test_with_poisoned_memory(isa: str, shift: float) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [grid(generator, 2, 2, length, 20) for length in (111, 63, 63)]
    threshold = torch.full((2,), shift)
    assert_same(run(inputs, threshold, "native"), run(inputs, threshold, "reference"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dropout_p", [0.0, 0.3])
def test_threads_change_nothing(isa: str, dtype: torch.dtype, dropout_p: float) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(2, 3, 300, 40, generator=generator).to(dtype) for _ in range(3)]
    results = []
    for threads in (1, 2, 5, 2):
        torch.set_num_threads(threads)
        try:
            torch.manual_seed(0)
            results.append(run(inputs, torch.zeros(3), "native", dropout_p=dropout_p))
        finally:
            torch.set_num_threads(1)
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            assert torch.equal(x, y)


def test_dropout(isa: str) -> None:
    q, k = torch.rand(2, 1, 2, 150, 8)  # positive: no score is 0
    v = torch.eye(150).expand(1, 2, 150, 150)  # the output is the weights
    full = relakit.attention(q, k, v, backend="native")
    torch.manual_seed(3)
    value = v.clone().requires_grad_()
    weights = relakit.attention(q, k, value, dropout_p=0.25, backend="native")
    kept = weights != 0
    torch.testing.assert_close(weights[kept], full[kept] / 0.75)
    assert abs(kept.float().mean() - 0.75) < 0.01
    assert abs(kept.float().mean((0, 1, 2)) - 0.75).max() < 0.12  # no key, and
    assert abs(kept.float().mean((0, 1, 3)) - 0.75).max() < 0.12  # no query is favoured
    (gradient,) = torch.autograd.grad(weights.sum(), value)  # draws the same numbers again
    torch.testing.assert_close(gradient, weights.sum(2, keepdim=True).mT.expand_as(gradient))
    torch.manual_seed(3)
    assert torch.equal(relakit.attention(q, k, v, dropout_p=0.25, backend="native"), weights)
    assert not torch.equal(relakit.attention(q, k, v, dropout_p=0.25, backend="native"), weights)
    assert (relakit.attention(q, k, v, dropout_p=1.0, backend="native") == 0).all()


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("position", "power"), [(70, 1), (139, 1), (70, 2)])
def test_what_is_not_finite(
    isa: str, where: str, bad: float, is_causal: bool, position: int, power: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [grid(generator, 1, 2, 140, 8) for _ in range(3)]
    inputs[("query", "key", "value").index(where)][0, 1, position, 3] = bad
    threshold = torch.full((2,), 0.03)
    results = run(inputs, threshold, "native", is_causal=is_causal, power=power)
    expected = run(inputs, threshold, "reference", is_causal=is_causal, power=power)
    for x, y in zip(results[:4], expected[:4], strict=True):
        torch.testing.assert_close(x, y, equal_nan=True, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("queries", [1, 9])
@pytest.mark.parametrize("attended", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bad", [torch.inf, -torch.inf])
def test_an_infinite_value_that_is_attended_to(
    isa: str, queries: int, attended: int, bad: float
) -> None:
    """Few queries or many, and however many keys one attends to."""
    query, key, value = (
        torch.ones(1, 1, queries, 16),
        torch.ones(1, 1, 7, 16),
        torch.ones(1, 1, 7, 16),
    )
    key[:, :, attended:] = -1.0
    value[:, :, attended - 1, 3] = bad
    output = relakit.attention(query, key, value, backend="native")
    expected = relakit.attention(query, key, value, backend="reference")
    assert (expected[..., 3] == bad).all()
    torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("as_bias", [False, True])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_mask_hides_scores_that_are_not_finite(isa: str, bad: float, as_bias: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [grid(generator, 1, 2, 140, 8) for _ in range(3)]
    inputs[0][0, 1, 70] = bad
    mask = torch.ones(140, 140, dtype=torch.bool)
    mask[70] = False
    if as_bias:
        mask = torch.zeros(140, 140).masked_fill(~mask, -torch.inf)
    output = relakit.attention(*inputs, mask, threshold=0.03, backend="native")
    expected = relakit.attention(*inputs, mask, threshold=0.03, backend="reference")
    assert (output[:, :, 70] == 0).all()
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", [(5, 8), (3, 5, 8), (2, 2, 3, 5, 8)])
def test_other_numbers_of_dimensions(isa: str, shape: tuple[int, ...]) -> None:
    q, k, v = (grid(torch.Generator().manual_seed(i), *shape) for i in range(3))
    mask = torch.rand(5, 5) < 0.7
    for options in ({}, {"attn_mask": mask}, {"is_causal": True}):
        expected = relakit.attention(q, k, v, threshold=0.03, backend="reference", **options)
        output = relakit.attention(q, k, v, threshold=0.03, backend="native", **options)
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_do(isa: str, queries: int, keys: int) -> None:
    inputs = [torch.randn(2, 2, length, 8) for length in (queries, keys, keys)]
    results = run(inputs, torch.zeros(2), "native")
    assert all((result == 0).all() for result in results)
    empty = [torch.randn(0, 2, 3, 8) for _ in range(3)]
    assert relakit.attention(*empty, backend="native").shape == (0, 2, 3, 8)


def test_operators_are_well_formed() -> None:
    q, k, v = (torch.randn(2, 2, 9, 8, requires_grad=True) for _ in range(3))
    threshold = torch.full((2,), 0.1, requires_grad=True)
    mask, seed = torch.rand(2, 2, 9, 9) < 0.7, torch.tensor([5])
    for options in (
        (None, threshold, None, 0.3, 1, True, 0.0, True),
        (mask, threshold, seed, 0.3, 2, False, 0.5, False),
        (mask, None, None, 0.3, 1, False, 0.0, True),
    ):
        torch.library.opcheck(torch.ops.relakit.rela.default, (q, k, v, *options))


def test_compiles() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return relakit.attention(q, k, v, is_causal=True, threshold=0.03, backend="native")

    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True, dynamic=True, backend="aot_eager")
    for length in (5, 70):
        generator = torch.Generator().manual_seed(0)
        inputs = [grid(generator, 2, 2, length, 8).requires_grad_() for _ in range(3)]
        output, expected = compiled(*inputs), attend(*inputs)
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(
            torch.autograd.grad(output.sum(), inputs), torch.autograd.grad(expected.sum(), inputs)
        )


def test_second_derivatives() -> None:
    def penalty(backend: str) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        inputs = [grid(generator, 1, 2, 5, 8).requires_grad_() for _ in range(3)]
        output = relakit.attention(*inputs, threshold=0.03, backend=backend)
        gradients = torch.autograd.grad(output.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in gradients), inputs)

    torch.testing.assert_close(penalty("native"), penalty("reference"))


def test_model_with_the_native_backend() -> None:
    module = relakit.MultiheadAttention(24, 3, batch_first=True)
    x = torch.randn(2, 70, 24, requires_grad=True)
    padding = torch.zeros(2, 70, dtype=torch.bool)
    padding[1, 50:] = True
    results = []
    for backend in ("reference", "native"):
        module.backend = backend
        for context in (
            torch.autocast("cpu", enabled=False),
            torch.autocast("cpu", torch.bfloat16),
        ):
            with context:
                output, _ = module(x, x, x, key_padding_mask=padding, need_weights=False)
            results.append((output.float(), *torch.autograd.grad(output.float().sum(), x)))
    torch.testing.assert_close(results[2], results[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(results[3], results[1], atol=0.05, rtol=0.05)


REFUSED = {
    "activation": ({"activation": "gelu"}, "it computes relu, sparsemax, entmax15, not 'gelu'"),
    "dtype": ({"dtype": torch.float64}, "float32 and bfloat16, not torch.float64"),
    "power": ({"power": 1.5}, "the powers 1 and 2, not 1.5"),
    "mask": ({"attn_mask": torch.zeros(5, 5, requires_grad=True)}, "no gradient for the mask"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_what_it_cannot_do(case: str) -> None:
    options, message = REFUSED[case]
    options = dict(options)
    x = torch.randn(2, 2, 5, 8, dtype=options.pop("dtype", torch.float32))
    with pytest.raises(ValueError, match=f"backend 'native' cannot serve this call: .*{message}"):
        relakit.attention(x, x, x, backend="native", **options)


def test_refuses_transforms_and_unknown_instruction_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    def attend(x: Tensor) -> Tensor:
        return relakit.attention(x, x, x, backend="native")

    x = torch.randn(2, 2, 5, 8)
    with pytest.raises(ValueError, match=r"torch\.func transforms such as vmap"):
        torch.func.vmap(attend)(x)
    monkeypatch.setenv(extension.ISA_VARIABLE, "sse9")
    with pytest.raises(ValueError, match="RELAKIT_CPU_ISA='sse9' is not usable here; choose one"):
        attend(x)


def test_memory_does_not_grow_with_the_square_of_the_length() -> None:
    """16k positions: their weights alone would take 2 GiB."""
    x = torch.randn(1, 2, 16384, 8) - 2.0  # few scores are positive... of negated keys
    with growth_below(200):
        run([x, -x, x], torch.zeros(2), "native", is_causal=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """As data loaders fork. The child has none of the threads that the parent's kernels use."""
    x = torch.randn(2, 2, 200, 8)
    torch.set_num_threads(2)
    try:
        expected = relakit.attention(x, x, x, backend="native")
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a child that hangs must not hang the tests
            output = relakit.attention(x, x, x, backend="native")
            os._exit(0 if torch.equal(output, expected) else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        torch.set_num_threads(1)
