"""Calls of the C++ kernels for attention, on tensors: nothing here knows of autograd.

All tensors are ``[batch, heads, positions, features]`` with contiguous features. The kernels
compute ``relu(scale * Q K^T + mask - threshold) ** power @ V`` and skip what is zero.
"""

from typing import Any, NamedTuple

import torch
from relakit.ops.call import RowStatistics
from relakit.ops.native.extension import choose_isa, load_extension
from torch import Tensor


class Arguments(NamedTuple):
    """What the kernels work on; also the arguments of the operators, in their order."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    """Broadcasts to ``[batch, heads, queries, keys]``; bool, float32 or bfloat16."""
    threshold: Tensor | None
    """One float32 per head; None: 0."""
    seed: Tensor | None
    """One integer, for dropout."""
    scale: float
    power: int
    is_causal: bool
    dropout_p: float


def empty_output(query: Tensor, value: Tensor) -> Tensor:
    """Memory for the output, with heads inside positions where the query has them so."""
    size = value.size(3)
    if query.size(3) == size:
        output = torch.empty_like(query)
        if output.stride(3) == 1 or size == 1:  # not so where rows of the query overlap
            return output
    batch, heads, queries, _ = query.shape
    _, head_stride, row_stride, _ = query.stride()
    if heads > 1 and head_stride < row_stride:
        # Not a transposed tensor: autograd would not let the caller change a view in place.
        strides = (queries * heads * size, size, heads * size, 1)
        return query.new_empty_strided((batch, heads, queries, size), strides)
    return query.new_empty((batch, heads, queries, size))


def can_keep_bits(arguments: Arguments) -> bool:
    """Whether to keep one bit per score from forward to backward, which then need not search again.

    Only where they take no more memory than the tensors of the call, so that memory grows with the
    length and not with its square.
    """
    query, key, value = arguments[:3]
    batch, heads, queries, _ = query.shape
    bytes_of_bits = batch * heads * queries * _words_per_row(key) * 8
    output = batch * heads * queries * value.size(3)
    numbers = query.numel() + key.numel() + value.numel() + output
    return bool(bytes_of_bits <= numbers * query.element_size())


def empty_bits(arguments: Arguments) -> Tensor:
    """Memory for one bit per score."""
    batch, heads, queries, _ = arguments.query.shape
    words = _words_per_row(arguments.key)
    return arguments.query.new_empty((batch, heads, queries, words), dtype=torch.int64)


def _words_per_row(key: Tensor) -> int:
    """Words of 64 bits that hold one bit for each key."""
    return (key.size(2) + 63) // 64


def empty_gradients(arguments: Arguments) -> tuple[Tensor, Tensor, Tensor]:
    """Memory for the gradients of query, key and value, contiguous whatever these are."""
    query, key, value = (
        torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in arguments[:3]
    )
    return query, key, value


def forward(
    arguments: Arguments,
    *,
    bits: Tensor | None = None,
    statistics: RowStatistics | None = None,
    sink: Any = None,
) -> Tensor:
    """The output. Bits, statistics and a sink for the weights are filled if they are given."""
    output = empty_output(arguments.query, arguments.value)
    threshold = _contiguous(arguments.threshold)
    load_extension().rela_forward(
        choose_isa(),
        torch.get_num_threads(),
        _problem(arguments, threshold),
        output.data_ptr(),
        output.stride(),
        0 if bits is None else bits.data_ptr(),
        0 if statistics is None else statistics.nonzeros.data_ptr(),
        0 if statistics is None else statistics.sums.data_ptr(),
        sink,
    )
    return output


def backward(
    grad_output: Tensor, arguments: Arguments, bits: Tensor | None, *, for_threshold: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of query, key, value and, if wanted, of the threshold."""
    query = arguments.query
    grads = empty_gradients(arguments)
    grad_rows = query.new_empty(query.shape[:3], dtype=torch.float32) if for_threshold else None
    if grad_output.stride(-1) != 1:
        grad_output = grad_output.contiguous()
    bits = _contiguous(bits)  # hooks for saved tensors may have changed it
    threshold = _contiguous(arguments.threshold)
    load_extension().rela_backward(
        choose_isa(),
        torch.get_num_threads(),
        _problem(arguments, threshold),
        grad_output.data_ptr(),
        grad_output.stride(),
        0 if bits is None else bits.data_ptr(),
        *(x.data_ptr() for x in grads),
        0 if grad_rows is None else grad_rows.data_ptr(),
    )
    # In float64, as the sum has one term per row.
    grad_threshold = None if grad_rows is None else -grad_rows.double().sum((0, 2)).float()
    return grads[0], grads[1], grads[2], grad_threshold


def dense_sink(arguments: Arguments) -> tuple[Any, Tensor]:
    """A sink for the weights, and the matrix ``[batch, heads, queries, keys]`` it writes to."""
    query, keys = arguments.query, arguments.key.size(2)
    weights = query.new_zeros((*query.shape[:3], keys))
    is_bfloat16 = query.dtype == torch.bfloat16
    return load_extension().DenseWeights(weights.data_ptr(), is_bfloat16, keys), weights


def sparse_sink(arguments: Arguments) -> Any:
    """A sink for the weights, to be read by `sparse_weights`."""
    return load_extension().SparseWeights(arguments.query.shape[:3].numel())


def sparse_weights(sink: Any, arguments: Arguments) -> Tensor:
    """Weights as a sparse CSR tensor ``[batch * heads * queries, keys]``."""
    rows, keys = arguments.query.shape[:3].numel(), arguments.key.size(2)
    new = arguments.query.new_empty
    starts, columns = (new(n, dtype=torch.int64) for n in (rows + 1, sink.size()))
    values = new(sink.size(), dtype=torch.float32)
    sink.write(starts.data_ptr(), columns.data_ptr(), values.data_ptr())
    values = values.to(arguments.query.dtype)
    return torch.sparse_csr_tensor(starts, columns, values, (rows, keys), check_invariants=False)


def _contiguous(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _problem(arguments: Arguments, threshold: Tensor | None) -> Any:
    """The call as the kernels read it. It holds addresses: the tensors must outlive it."""
    query, key, value, mask = arguments[:4]
    problem = load_extension().Problem(
        query.dtype == torch.bfloat16,
        query.data_ptr(),
        query.shape,
        query.stride(),
        key.data_ptr(),
        key.stride(),
        value.data_ptr(),
        value.shape,
        value.stride(),
        arguments.scale,
        arguments.power,
        arguments.is_causal,
    )
    if threshold is not None:
        problem.set_threshold(threshold.data_ptr())
    if mask is not None:
        mask = mask.expand(*query.shape[:3], key.size(2))  # strides of 0 where it broadcasts
        dtype = mask.dtype
        problem.set_mask(
            mask.data_ptr(), dtype == torch.bool, dtype == torch.bfloat16, mask.stride()
        )
    if arguments.dropout_p > 0 and arguments.seed is not None:
        problem.set_dropout(arguments.dropout_p, int(arguments.seed))
    return problem
