"""Attention kernels: weights and statistics, and the paths for few queries and long sequences.

Each path is taken on purpose, and must give what the reference gives.
"""

from functools import cache
from typing import Any

import native_extension  # noqa: F401  (skips without it)
import pytest
import torch
from seeded_grid import grid, inputs, with_gradients
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import relakit
from relakit.ops.native.operators import can_keep_bits

OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "padding": {"attn_mask": torch.arange(70) < 50},
    "bias": {"attn_mask": torch.where(torch.arange(70) < 50, 0.25, -torch.inf)},
    "squared": {"power": 2.0},
    "by length": {"length_exponent": 0.5},
    "by visible length": {"length_exponent": 1.0, "is_causal": True},
    "by unmasked length": {"length_exponent": 1.0, "attn_mask": torch.arange(70) < 50},
}


@pytest.mark.parametrize("case", OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("queries", [3, 40])
@pytest.mark.parametrize("threshold", [0.03, -2.0])
class TestDetails:
    @staticmethod
    def result(
        case: str, dtype: torch.dtype, queries: int, threshold: float, form: str, backend: str
    ) -> relakit.AttentionResult:
        tensors = inputs(queries, 70, dtype=dtype)
        options = {"threshold": threshold, "weights": form, **OPTIONS[case]}
        return relakit.attention_details(*tensors, backend=backend, **options)

    expected = staticmethod(cache(result.__func__))  # the same for every instruction set

    def test_dense_weights_and_statistics(
        self, isa: str, case: str, dtype: torch.dtype, queries: int, threshold: float
    ) -> None:
        settings = (case, dtype, queries, threshold, "dense")
        native, reference = self.result(*settings, "native"), self.expected(*settings, "reference")
        tolerance = {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {}
        torch.testing.assert_close(native.output, reference.output, **tolerance)
        torch.testing.assert_close(native.weights, reference.weights, **tolerance)
        assert torch.equal(native.weights == 0, reference.weights == 0)
        assert torch.equal(native.statistics.nonzeros, reference.statistics.nonzeros)
        assert torch.equal(native.statistics.null, (reference.weights == 0).all(-1))
        sums = reference.weights.float().sum(-1)  # of weights that were rounded to their dtype
        torch.testing.assert_close(native.statistics.sums, sums, rtol=1e-2, atol=1e-3)
        if dtype == torch.float32:
            torch.testing.assert_close(native.statistics.sums, sums, **tolerance)

    def test_sparse_weights(
        self, isa: str, case: str, dtype: torch.dtype, queries: int, threshold: float
    ) -> None:
        settings = (case, dtype, queries, threshold, "csr")
        native, reference = self.result(*settings, "native"), self.expected(*settings, "reference")
        assert native.weights.layout == torch.sparse_csr
        assert native.weights.shape == (2 * 2 * queries, 70)
        assert torch.equal(native.weights.crow_indices(), reference.weights.crow_indices())
        assert torch.equal(native.weights.col_indices(), reference.weights.col_indices())
        torch.testing.assert_close(native.weights.values(), reference.weights.values())


def test_statistics_with_dropout_count_what_is_left(isa: str) -> None:
    tensors = tuple(x.abs() + 0.25 for x in inputs(40, 70))  # no score is 0
    torch.manual_seed(0)
    result = relakit.attention_details(*tensors, dropout_p=0.5, weights="dense", backend="native")
    assert torch.equal(result.statistics.nonzeros, (result.weights != 0).sum(-1, dtype=torch.int32))
    assert 0.4 < (result.weights != 0).float().mean() < 0.6
    torch.manual_seed(0)
    sparse = relakit.attention_details(*tensors, dropout_p=0.5, weights="csr", backend="native")
    assert torch.equal(sparse.weights.to_dense().view_as(result.weights), result.weights)


def test_statistics_where_gradients_are_recorded(isa: str) -> None:
    leaves = [x.requires_grad_() for x in inputs(40, 70)]
    result = relakit.attention_details(*leaves, threshold=0.03, backend="native")
    expected = relakit.attention_details(*leaves, threshold=0.03, backend="reference")
    assert torch.equal(result.statistics.nonzeros, expected.statistics.nonzeros)
    assert result.output.requires_grad
    assert not result.statistics.sums.requires_grad


def test_other_numbers_of_dimensions(isa: str) -> None:
    q, k, v = (grid(i, 3, 5, 2, 7, 8) for i in range(3))
    result = relakit.attention_details(q, k, v, threshold=0.03, weights="dense", backend="native")
    assert result.weights.shape == (3, 5, 2, 7, 7)
    assert result.statistics.nonzeros.shape == (3, 5, 2, 7)
    expected = relakit.attention_details(
        q, k, v, threshold=0.03, weights="dense", backend="reference"
    )
    torch.testing.assert_close(result.weights, expected.weights)


def test_an_unknown_form_of_weights() -> None:
    with pytest.raises(ValueError, match="weights must be 'dense', 'csr' or None, got 'coo'"):
        relakit.attention_details(*inputs(4, 4), weights="coo")


# With `all_ways`, scores are screened from 256 queries and keys on, if the instruction set can.


def long_sequences(queries: int, threshold: float, case: str, backend: str) -> list[Tensor]:
    options = dict(OPTIONS[case])
    if case == "padding":
        options["attn_mask"] = torch.arange(300) % 7 < 4
    tensors = inputs(queries, 300, dim=24)
    return with_gradients(tensors, backend=backend, threshold=threshold, scale=0.25, **options)


expected_of_long_sequences = cache(long_sequences)  # the same for every instruction set


@pytest.mark.usefixtures("all_ways")
@pytest.mark.parametrize("queries", [256, 333])
@pytest.mark.parametrize("threshold", [-3.0, 0.03, 1.03, 2.53])
@pytest.mark.parametrize("case", ["plain", "causal", "padding", "squared"])
def test_long_sequences(isa: str, queries: int, threshold: float, case: str) -> None:
    actual = long_sequences(queries, threshold, case, "native")
    expected = expected_of_long_sequences(queries, threshold, case, "reference")
    for x, y in zip(actual, expected, strict=True):
        scale = max(1.0, float(y.abs().max()))
        torch.testing.assert_close(x, y, atol=1e-5 * scale, rtol=0)


@pytest.mark.usefixtures("all_ways")
@pytest.mark.parametrize("outlier", ["one query", "one key", "one feature", "tiny", "huge"])
def test_screening_misses_nothing(isa: str, outlier: str) -> None:
    """Rows that 8-bit integers cannot follow: a single large entry, numbers of any magnitude."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 400, 64, generator=generator) for _ in range(3))
    if outlier == "one query":
        q[0, 0, 7, 5] = 1e4
    elif outlier == "one key":
        k[0, 0, 130, 5] = -1e4
    elif outlier == "one feature":
        q[..., 3], k[..., 3] = 30.0, 0.7 * k[..., 3] - 3.0
    else:
        q *= 1e-24 if outlier == "tiny" else 1e15
    result = relakit.attention_details(q, k, v, weights="dense", backend="native")
    scores = (q.double() * 0.125) @ k.double().mT
    # Float32 may round a score that is nearly 0 to either side; all others must be there.
    clear = scores.abs() > 1e-5 * (q.double().norm(dim=-1, keepdim=True) * k.double().norm(dim=-1))
    assert torch.equal((result.weights > 0)[clear], (scores > 0)[clear])
    kept = torch.where(result.weights > 0, scores, 0.0)
    torch.testing.assert_close(result.weights.double(), kept, rtol=1e-3, atol=1e-5 * kept.max())


def few_queries(
    queries: int, keys: int, dtype: torch.dtype, backend: str, is_heads_inside: bool = False
) -> list[Tensor]:
    """The outputs without a mask and with one."""
    q, k, v = (grid(i, 2, 3, n, 32).to(dtype) for i, n in enumerate((queries, keys, keys)))
    if is_heads_inside:
        q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    threshold = torch.tensor([0.03, 0.53, 100.0])
    return [
        relakit.attention(q, k, v, mask, threshold=threshold, backend=backend)
        for mask in (None, torch.arange(keys) % 3 > 0)
    ]


expected_of_few_queries = cache(few_queries)  # the same for every instruction set and layout


@pytest.mark.usefixtures("all_ways")
@pytest.mark.parametrize("queries", [1, 2, 8])
@pytest.mark.parametrize("keys", [1, 63, 128, 129, 5000])
@pytest.mark.parametrize("layout", ["contiguous", "heads inside"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_few_queries(isa: str, queries: int, keys: int, layout: str, dtype: torch.dtype) -> None:
    is_heads_inside = layout == "heads inside"
    actual = few_queries(queries, keys, dtype, "native", is_heads_inside)
    reference = expected_of_few_queries(queries, keys, dtype, "reference")
    for output, expected in zip(actual, reference, strict=True):
        tolerance = 1e-5 if dtype == torch.float32 else 8e-3
        scale = max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(output, expected, atol=tolerance * scale, rtol=0)


def test_few_queries_read_only_the_values_they_attend_to(isa: str) -> None:
    """A value with a weight of 0 is not multiplied: what is not finite in it stays where it is."""
    q, k, v = torch.ones(1, 1, 1, 16), torch.ones(1, 1, 200, 16), torch.ones(1, 1, 200, 16)
    k[0, 0, 100:] = -1.0
    k[0, 0, 0] = -1.0  # where lists are padded from
    v[0, 0, [0, 150]] = torch.nan
    assert relakit.attention(q, k, v, backend="native").isfinite().all()
    v[0, 0, 50] = torch.nan
    assert relakit.attention(q, k, v, backend="native").isnan().all()


def test_threads_change_nothing_for_few_queries(isa: str) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 32, generator=generator) for n in (2, 9000, 9000))
    results = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        try:
            results.append(relakit.attention(q, k, v, backend="native"))
        finally:
            torch.set_num_threads(1)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("threshold", [0.0, 1.2])
def test_threads_change_nothing_for_few_heads(isa: str, heads: int, threshold: float) -> None:
    """With more threads than heads, gradients of queries and of keys are computed apart."""
    generator = torch.Generator().manual_seed(0)
    shape = (1, heads, 1100, 32)
    tensors = tuple(torch.randn(shape, generator=generator) for _ in range(3))
    results = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        try:
            per_head = torch.full((heads,), threshold, requires_grad=True)
            leaves = [x.clone().requires_grad_() for x in tensors]
            output = relakit.attention(*leaves, threshold=per_head, backend="native")
            results.append(torch.autograd.grad(output.square().sum(), [*leaves, per_head]))
        finally:
            torch.set_num_threads(1)
    for other in results[1:]:
        assert all(torch.equal(x, y) for x, y in zip(results[0], other, strict=True))


@pytest.mark.parametrize("queries", [3, 70, 300])
def test_bits_change_nothing(isa: str, queries: int) -> None:
    """Backward with what forward found, and without."""
    q, k, v = inputs(queries, queries, dim=32)
    arguments = (q, k, v, None, torch.full((2,), 0.53), None, 0.25, 1, True, 0.0)
    output, bits = torch.ops.relakit.rela(*arguments, True)
    upstream = grid(9, *output.shape)
    with_bits = torch.ops.relakit.rela_backward(upstream, bits, *arguments)
    without = torch.ops.relakit.rela_backward(upstream, bits.new_empty(0), *arguments)
    for x, y in zip(with_bits, without, strict=True):
        torch.testing.assert_close(x, y, atol=1e-5 * float(y.abs().max() + 1), rtol=0)
    scores = ((q * 0.25) @ k.mT - 0.53).tril()
    found = (bits[..., None] >> torch.arange(64) & 1).flatten(-2)[..., :queries]
    assert torch.equal(found == 1, scores > 0)


@pytest.mark.parametrize("length", [8192, 8257])
def test_bits_are_kept_while_they_are_small(length: int) -> None:
    """By the rule for compilers, and by that of the extension."""
    x = torch.zeros(1, 1, length, 64, requires_grad=True)
    assert can_keep_bits(x, x, x) == (length == 8192)
    saved = relakit.attention(x, x, x, backend="native").grad_fn.saved_tensors
    assert any(y is not None and y.dtype == torch.int64 for y in saved) == (length == 8192)


@pytest.mark.parametrize("threshold", [0.0, 1.0])
@pytest.mark.parametrize("queries", [5, 300])
def test_half_precision_is_as_precise_as_pytorch(isa: str, threshold: float, queries: int) -> None:
    """At most twice as far from float64 as the same formula in plain PyTorch, in bfloat16."""
    generator = torch.Generator().manual_seed(0)
    tensors = tuple(
        torch.randn(2, 4, n, 64, generator=generator).bfloat16() for n in (queries, 300, 300)
    )

    def plain(dtype: torch.dtype) -> list[Tensor]:
        leaves = [x.detach().to(dtype).requires_grad_() for x in tensors]
        weights = torch.relu((leaves[0] * 0.125) @ leaves[1].mT - threshold)
        output = weights @ leaves[2]
        return [output, *torch.autograd.grad(output, leaves, grid(9, *output.shape).to(dtype))]

    exact, half = plain(torch.float64), plain(torch.bfloat16)
    native = with_gradients(tensors, backend="native", threshold=threshold)
    for x, y, z in zip(native, half, exact, strict=True):
        assert (x.double() - z).norm() <= 2 * (y.double() - z).norm()


def test_output_follows_the_layout_of_the_query() -> None:
    x = torch.randn(2, 9, 3, 16).transpose(1, 2)  # heads inside, as after a projection
    assert relakit.attention(x, x, x, backend="native").transpose(1, 2).is_contiguous()
    y = x.contiguous()
    assert relakit.attention(y, y, y, backend="native").is_contiguous()


class TestWatchedCalls:
    """Modes that see every operation, transforms, and gradients of gradients."""

    def test_weights_in_a_mode_come_from_the_reference(self) -> None:
        q, k, v = inputs(5, 7)
        with torch.device("cpu"):
            _, weights = relakit.attention(q, k, v, need_weights=True)
            assert relakit.attention_details(q, k, v).statistics.nonzeros.shape == (2, 2, 5)
        assert weights.shape == (2, 2, 5, 7)

    def test_gradients_in_a_mode(self) -> None:
        leaves = [x.requires_grad_() for x in inputs(5, 7)]
        output = relakit.attention(*leaves, dropout_p=0.5)
        expected = torch.autograd.grad(output.sum(), leaves, retain_graph=True)
        with FlopCounterMode(display=False):
            assert_all_close(torch.autograd.grad(output.sum(), leaves), expected)

    def test_batched_gradients(self) -> None:
        leaves = [x.requires_grad_() for x in inputs(5, 7)]
        output = relakit.attention(*leaves, threshold=0.03)
        vectors = grid(5, 3, *output.shape)
        batched = torch.autograd.grad(
            output, leaves, vectors, is_grads_batched=True, retain_graph=True
        )
        single = [torch.autograd.grad(output, leaves, x, retain_graph=True) for x in vectors]
        assert_all_close(batched, [torch.stack(x) for x in zip(*single, strict=True)])

    def test_gradients_of_gradients_where_inputs_depend_on_each_other(self) -> None:
        def gradient(backend: str) -> Tensor:
            x = grid(0, 1, 2, 5, 8).requires_grad_()
            output = relakit.attention(x, 2 * x, x, threshold=0.03, backend=backend)
            return torch.autograd.grad(output.sum(), x, create_graph=True)[0]

        torch.testing.assert_close(gradient("native"), gradient("reference"))

    def test_the_output_may_be_changed_in_place(self) -> None:
        x = torch.randn(2, 9, 3, 16, requires_grad=True).transpose(1, 2)
        output = relakit.attention(x, x, x)
        output *= 2
        output.sum().backward()

    def test_a_default_device_changes_nothing(self) -> None:
        q, k, v = inputs(5, 7)
        expected = relakit.attention(q, k, v, length_exponent=1.0)
        with torch.device("meta"):
            torch.testing.assert_close(relakit.attention(q, k, v, length_exponent=1.0), expected)
            assert relakit.attention(q, k, v, dropout_p=0.5).abs().max() < 100


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 1, 4, 16), (1, 1, 5, 100, 16), (1, 1, 5, 100, 16)],
        [(3, 3, 4, 16), (3, 3, 3, 5, 16), (3, 3, 3, 5, 16)],
        [(1, 2, 4, 16), (1, 2, 4, 16), (3, 2, 4, 16)],
        [(2, 4, 16), (2, 0, 16), (2, 0, 16)],
        [(3, 2, 4, 0), (3, 2, 4, 0), (3, 2, 4, 8)],
    ],
)
def test_shapes_that_are_rare(shapes: list[tuple[int, ...]]) -> None:
    tensors = [grid(i, *shape).requires_grad_() for i, shape in enumerate(shapes)]
    output = relakit.attention(*tensors, threshold=0.03)
    torch.testing.assert_close(
        output, relakit.attention(*tensors, threshold=0.03, backend="reference")
    )


def test_options_of_another_type() -> None:
    q, k, v = inputs(5, 7)
    expected = relakit.attention(q, k, v, is_causal=True, length_exponent=1.0)
    torch.testing.assert_close(
        relakit.attention(q, k, v, is_causal=1, length_exponent=1, scale=0.25), expected
    )


def test_a_threshold_that_is_not_a_number_is_not_hidden(isa: str) -> None:
    q, k, v = (torch.randn(1, 1, 300, 32) for _ in range(3))
    assert relakit.attention(q, k, v, threshold=torch.tensor([torch.nan])).isnan().all()
    assert (relakit.attention(q, k, v, threshold=torch.tensor([torch.inf])) == 0).all()


def assert_all_close(actual: Any, expected: Any) -> None:
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(x, y)
