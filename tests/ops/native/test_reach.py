"""Windows, alignment and packed sequences: the reference against masks, the kernels against it."""

import pytest
import torch
from grid_attention import assert_same, grid, run
from hypothesis import given, settings
from hypothesis import strategies as st
from native_extension import ISAS
from peak_memory import growth_below
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

import relakit
from relakit.ops.native import extension

lengths = st.sampled_from([0, 1, 2, 5, 8, 9, 63, 64, 65, 111, 129, 200, 300])
windows = st.sampled_from(
    [None, 1, 3, 64, 100, 1000, (None, 0), (0, None), (5, 2), (70, 130), (0, 0)]
)


def plain_mask(
    queries: list[int], keys: list[int], *, causal: bool, window: object, lower_right: bool
) -> Tensor:
    """The definition, pair by pair."""
    if isinstance(window, int):
        window = (window - 1, window - 1)
    before, after = window or (None, None)
    blocks = []
    for n, m in zip(queries, keys, strict=True):
        rows = [
            [
                (not causal or j <= place)
                and (before is None or place - j <= before)
                and (after is None or j - place <= after)
                for j in range(m)
            ]
            for place in (i + (m - n if lower_right else 0) for i in range(n))
        ]
        blocks.append(torch.tensor(rows, dtype=torch.bool).reshape(n, m))
    return torch.block_diag(*(block.float() for block in blocks)).bool()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lower_right", [False, True])
@pytest.mark.parametrize("window", [None, 1, 3, (2, 1), (None, 0), (0, None)])
@pytest.mark.parametrize("activation", ["relu", "softmax", "sparsemax"])
def test_the_reference_sees_what_the_definition_says(
    causal: bool, lower_right: bool, window: object, activation: str
) -> None:
    queries, keys = [4, 0, 3, 1], [4, 2, 7, 3]
    starts = [torch.tensor([0, *n]).cumsum(0) for n in (queries, keys)]
    q, k, v = (torch.randn(2, 3, n, 8) for n in (sum(queries), sum(keys), sum(keys)))
    mask = plain_mask(queries, keys, causal=causal, window=window, lower_right=lower_right)
    expected = relakit.attention(q, k, v, mask, activation=activation, backend="reference")
    options = {
        "is_causal": causal,
        "window": window,
        "align": "lower_right" if lower_right else "upper_left",
        "sequence_starts": starts,
        "activation": activation,
    }
    torch.testing.assert_close(relakit.attention(q, k, v, backend="reference", **options), expected)
    torch.testing.assert_close(relakit.attention(q, k, v, **options), expected)  # sdpa, native


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Tensor], Tensor, dict[str, object]]:
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    batch, key_heads, group = draw(st.tuples(*[st.integers(1, 2)] * 3))
    heads = key_heads * group
    options: dict[str, object] = {
        "enable_gqa": True,
        "scale": 0.25,
        "power": draw(st.sampled_from([1.0, 2.0])),
        "window": draw(windows),
        "align": draw(st.sampled_from(["upper_left", "lower_right"])),
    }
    if draw(st.booleans()):
        count = draw(st.integers(1, 5))
        queries, keys = (draw(st.lists(lengths, min_size=count, max_size=count)) for _ in range(2))
        options["sequence_starts"] = [torch.tensor([0, *n]).cumsum(0) for n in (queries, keys)]
        shape = sum(queries), sum(keys)
    else:
        shape = draw(lengths), draw(lengths)
    dim = draw(st.sampled_from([16, 20, 64]))
    inputs = [
        grid(generator, batch, heads, shape[0], dim),
        grid(generator, batch, key_heads, shape[1], dim),
        grid(generator, batch, key_heads, shape[1], dim),
    ]
    if draw(st.booleans()):  # heads inside, as after a projection
        inputs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    if draw(st.booleans()):
        inputs = [x.bfloat16() for x in inputs]
    mask = draw(st.sampled_from(["none", "causal", "bool", "bias", "padding"]))
    if mask == "causal":
        options["is_causal"] = True
    elif mask == "bool":
        options["attn_mask"] = torch.rand((batch, 1, *shape), generator=generator) < 0.6
    elif mask == "padding":
        options["attn_mask"] = torch.rand((batch, 1, 1, shape[1]), generator=generator) < 0.6
    elif mask == "bias":
        options["attn_mask"] = grid(generator, heads, *shape).to(
            draw(st.sampled_from([torch.float32, inputs[0].dtype]))
        )
    # Off the grid of the scores: no score is at its threshold.
    shift = draw(st.sampled_from([-0.25, 0.0, 0.5, 1.0])) + 1 / 32
    return inputs, torch.full((heads,), shift), options


@settings(max_examples=120)
@given(problem=problems())
def test_the_kernels_equal_the_reference(
    problem: tuple[list[Tensor], Tensor, dict[str, object]],
) -> None:
    inputs, threshold, options = problem
    expected = run(inputs, threshold, "reference", **options)
    details = relakit.attention_details(
        *inputs, threshold=threshold, weights="csr", backend="reference", **options
    )
    for isa in ISAS:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(extension.ISA_VARIABLE, isa)
            assert_same(run(inputs, threshold, "native", **options), expected)
            native = relakit.attention_details(
                *inputs, threshold=threshold, weights="csr", backend="native", **options
            )
        assert torch.equal(native.statistics.nonzeros, details.statistics.nonzeros)
        torch.testing.assert_close(
            native.statistics.sums, details.statistics.sums, atol=1e-3, rtol=1e-2
        )
        assert torch.equal(native.weights.crow_indices(), details.weights.crow_indices())
        assert torch.equal(native.weights.col_indices(), details.weights.col_indices())


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("dropout_p", [0.0, 0.3])
def test_threads_change_nothing(isa: str, threads: int, dropout_p: float) -> None:
    generator = torch.Generator().manual_seed(0)
    starts = torch.tensor([0, 3, 3, 1300, 1304, 1500])
    inputs = [torch.randn(1, 1, 1500, 32, generator=generator) for _ in range(3)]
    options = {"window": (200, 10), "sequence_starts": starts, "dropout_p": dropout_p}
    results = []
    for count in (1, threads):
        torch.set_num_threads(count)
        try:
            torch.manual_seed(0)
            results.append(run(inputs, torch.zeros(1), "native", **options))
        finally:
            torch.set_num_threads(1)
    assert all(torch.equal(x, y) for x, y in zip(*results, strict=True))


def test_dropout_keeps_the_same_in_both_directions(isa: str) -> None:
    """The gradient of values is the weights that were kept, summed over queries."""
    q, k = torch.rand(2, 1, 2, 150, 16)  # positive: no score is 0
    value = torch.eye(150).expand(1, 2, 150, 150).clone().requires_grad_()
    starts = torch.tensor([0, 5, 80, 150])
    options = {"window": 40, "sequence_starts": starts, "is_causal": True}
    full = relakit.attention(q, k, value, backend="native", **options)
    weights = relakit.attention(q, k, value, dropout_p=0.25, backend="native", **options)
    kept = weights != 0
    torch.testing.assert_close(weights[kept], full[kept] / 0.75)
    assert abs(kept.sum() / (full != 0).sum() - 0.75) < 0.02
    (gradient,) = torch.autograd.grad(weights.sum(), value)
    torch.testing.assert_close(gradient, weights.sum(2, keepdim=True).mT.expand_as(gradient))


@pytest.mark.parametrize("length_exponent", [0.0, 1.0])
def test_weights_are_those_of_the_reference(length_exponent: float) -> None:
    q, k, v = torch.randn(3, 1, 2, 40, 16)
    options = {
        "window": 7,
        "sequence_starts": torch.tensor([0, 13, 40], dtype=torch.int32),
        "length_exponent": length_exponent,
        "need_weights": True,
    }
    for x, y in zip(
        relakit.attention(q, k, v, backend="native", **options),
        relakit.attention(q, k, v, backend="reference", **options),
        strict=True,
    ):
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize("queries", [3, 30])
def test_lower_right_biases_need_no_mask(queries: int) -> None:
    q, k, v = (torch.randn(1, 2, n, 16) for n in (queries, 50, 50))
    bias = causal_lower_right(queries, 50)
    mask = torch.ones(queries, 50, dtype=torch.bool).tril(50 - queries)
    output = relakit.attention(q, k, v, bias, backend="native")
    torch.testing.assert_close(output, relakit.attention(q, k, v, mask))
    windowed = relakit.attention(q, k, v, bias, window=9, backend="native")
    torch.testing.assert_close(
        windowed, relakit.attention(q, k, v, mask & ~mask.tril(41 - queries))
    )


def test_compiles() -> None:
    def attend(x: Tensor, starts: Tensor) -> Tensor:
        return relakit.attention(x, x, x, is_causal=True, window=5, sequence_starts=starts)

    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    x = grid(torch.Generator().manual_seed(0), 1, 2, 30, 16).requires_grad_()
    starts = torch.tensor([0, 11, 30])
    output, expected = compiled(x, starts), attend(x, starts)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(
        torch.autograd.grad(output.sum(), x), torch.autograd.grad(expected.sum(), x)
    )


@pytest.mark.parametrize("starts", [[0, 11, 1200], [0, 20, 11, 30], [1, 30]])
def test_compiled_code_says_which_starts_are_wrong(starts: list[int]) -> None:
    torch._dynamo.reset()
    attend = torch.compile(relakit.attention, fullgraph=True, backend="aot_eager")
    x = torch.zeros(1, 2, 30, 16)
    with pytest.raises(ValueError, match=r"sequence_starts of queries must ascend from 0 to.*30"):
        attend(x, x, x, sequence_starts=torch.tensor(starts))


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_starts_may_be_changed_before_backward(backend: str) -> None:
    starts = torch.tensor([0, 3, 8])
    leaves = [torch.randn(1, 2, 8, 16, requires_grad=True) for _ in range(3)]
    grads = []
    for later in (starts.clone(), torch.tensor([0, 6, 8])):
        given = starts.clone()
        output = relakit.attention(*leaves, sequence_starts=given, backend=backend)
        given.copy_(later)
        grads.append(torch.autograd.grad(output.square().sum(), leaves))
    for x, y in zip(*grads, strict=True):
        assert torch.equal(x, y)


def test_second_derivatives() -> None:
    def penalty(backend: str) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(0)
        inputs = [grid(generator, 1, 2, 9, 8).requires_grad_() for _ in range(3)]
        output = relakit.attention(
            *inputs,
            threshold=0.03,
            window=(2, 1),
            sequence_starts=torch.tensor([0, 4, 9]),
            backend=backend,
        )
        gradients = torch.autograd.grad(output.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in gradients), inputs)

    torch.testing.assert_close(penalty("native"), penalty("reference"))


def test_capture_sees_the_window() -> None:
    class Local(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return relakit.attention(x, x, x, window=1)

    model = Local()
    with relakit.capture(model) as records:
        model(torch.randn(1, 2, 6, 8))
    assert torch.equal(records[""][0].valid[0, 0], torch.eye(6, dtype=torch.bool))


WRONG = {
    "zero": ({"window": 0}, "window must be at least 1, got 0"),
    "text": ({"window": "5"}, "window must be a whole number, or two"),
    "negative": ({"window": (-1, 2)}, r"at least 0, or None for no limit, got \(-1, 2\)"),
    "align": ({"align": "right"}, "'upper_left' or 'lower_right', got 'right'"),
    "starts": (
        {"sequence_starts": torch.tensor([0, 3, 5])},
        r"of queries must ascend from 0 to the number of queries, 4; got \[0, 3, 5\]",
    ),
    "descending": (
        {"sequence_starts": torch.tensor([0, 3, 2, 4])},
        r"must ascend .* got \[0, 3, 2, 4\]",
    ),
    "counts": (
        {"sequence_starts": [torch.tensor([0, 4]), torch.tensor([0, 2, 6])]},
        "as many sequences of queries as of keys, got 1 and 2",
    ),
    "dtype": ({"sequence_starts": torch.tensor([0.0, 4.0])}, "torch.int64 or torch.int32"),
    "mask": (
        {"is_causal": True, "window": 2, "attn_mask": torch.ones(4, 6, dtype=torch.bool)},
        "attn_mask and is_causal=True exclude each other",
    ),
    "bias": (
        {"attn_mask": causal_upper_left(4, 6), "align": "lower_right"},
        "attn_mask is causal_upper_left",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_named(case: str) -> None:
    options, message = WRONG[case]
    q, k = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 6, 8)
    with pytest.raises(ValueError, match=message):
        relakit.attention(q, k, k, **options)


def test_memory_does_not_grow_with_the_square_of_the_length() -> None:
    x = torch.randn(1, 2, 16384, 8)
    with growth_below(200):
        run([x, x, x], torch.zeros(2), "native", is_causal=True, window=100)
