from collections.abc import Sequence
from typing import Any

from torch import Tensor

def compiler() -> str:
    """The compiler that built this extension, such as "GCC 12.2.0"."""

def cpu_features() -> dict[str, bool]:
    """Instruction sets by name, and whether code may use them on this machine.

    Only the sets of the architecture that the extension was built for are listed. True means that
    the processor has it and that the operating system saves its registers.
    """

class Problem:
    """One attention call: relu(scale * Q K^T + mask - threshold) ** power, times V.

    It holds addresses of tensors `[batch, head, row, feature]` whose features are contiguous: they
    must outlive it. Shapes and strides have four entries. All arguments are positional.
    """

    def __init__(
        self,
        is_bfloat16: bool,
        query: int,
        query_shape: tuple[int, ...],
        query_strides: tuple[int, ...],
        key: int,
        key_strides: tuple[int, ...],
        value: int,
        value_shape: tuple[int, ...],
        value_strides: tuple[int, ...],
        scale: float,
        power: int,
        causal: bool,
        /,
    ) -> None: ...
    def set_mask(
        self, data: int, is_boolean: bool, is_bfloat16: bool, strides: tuple[int, ...], /
    ) -> None:
        """One byte per entry if boolean, bfloat16, or else float32; strides of 0 to broadcast."""

    def set_threshold(self, data: int, /) -> None:
        """One float32 per head."""

    def set_dropout(self, probability: float, seed: int, /) -> None: ...

class WeightsSink:
    """Takes the weights that are not zero, as forward finds them."""

class DenseWeights(WeightsSink):
    """Writes them into a matrix `[rows, keys]` of zeros."""

    def __init__(self, data: int, is_bfloat16: bool, keys: int, /) -> None: ...

class SparseWeights(WeightsSink):
    """Collects them as compressed sparse rows."""

    def __init__(self, rows: int, /) -> None: ...
    def size(self) -> int:
        """How many there are."""

    def write(self, starts: int, columns: int, weights: int, /) -> None:
        """Write `[rows + 1]` and `[size]` int64 and `[size]` float32 to addresses."""

def kernels() -> list[str]:
    """Instruction sets whose kernels this machine can run, best first."""

def rela_forward(
    kernels: str,
    threads: int,
    problem: Problem,
    output: int,
    output_strides: tuple[int, ...],
    bits: int,
    row_counts: int,
    row_sums: int,
    sink: WeightsSink | None,
    /,
) -> None:
    """Write the output `[batch, heads, queries, value_dim]`, and what else is wanted, to addresses.

    Address 0: not wanted. For each of the `[batch, heads, queries]` rows, `bits` takes one bit per
    key, 64 to a word: whether the score is above its threshold; `row_counts` (int32) the number of
    weights that are not zero, and `row_sums` (float32) their sum.
    """

def rela_backward(
    kernels: str,
    threads: int,
    problem: Problem,
    grad_output: int,
    grad_output_strides: tuple[int, ...],
    bits: int,
    grad_query: int,
    grad_key: int,
    grad_value: int,
    grad_rows: int,
    /,
) -> None:
    """Write the gradients, contiguous, to addresses.

    `bits` is what forward wrote, or 0. `grad_rows` takes, unless it is 0, one float32 per row: the
    sum of the gradients of its scores.
    """

def connect_torch(parts: dict[str, Any], /) -> bool:
    """Learn how to read torch's tensors; False if DLPack's exchange interface is not a known one.

    The parts are those of `relakit.ops.native.direct.connection_parts`.
    """

def direct_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    threshold: float | Tensor,
    power: float,
    backend: str | None,
    /,
) -> Tensor | tuple[Tensor, Tensor | bytes | None] | None:
    """Attention for a call as it usually is; None where anything is not.

    Where autograd is to record the call, output and, unless they take much memory, bits: one per
    score, for backward. In bytes where there are few, else as int64 with the shape of the scores.
    """

def direct_backward(
    grad_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bits: Tensor | bytes | None,
    is_causal: bool,
    scale: float | None,
    threshold: float | Tensor,
    power: float,
    /,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Gradients of query, key and value; None where anything is unusual."""

class NormCall:
    """RMSNorm of ``outer * rows`` rows, each of ``pieces`` pieces of ``size`` contiguous features.

    Addresses and, in elements, strides. Gain and gate are contiguous; without a gate its address
    is 0. What is not bfloat16 is float32.
    """

    def __init__(
        self,
        outer: int,
        rows: int,
        pieces: int,
        size: int,
        is_bfloat16: bool,
        input: int,
        outer_stride: int,
        row_stride: int,
        piece_stride: int,
        gain: int,
        is_gain_bfloat16: bool,
        gate: int,
        is_gate_bfloat16: bool,
        eps: float,
        /,
    ) -> None: ...

def norm_forward(
    kernels: str, threads: int, call: NormCall, output: int, inverse_rms: int, /
) -> None:
    """Write the output, ``[outer, rows, features]``, to an address, and 1 / RMS of each row.

    The second, ``[outer, rows]`` in float32, is left out where its address is 0.
    """

def norm_backward(
    kernels: str,
    threads: int,
    call: NormCall,
    inverse_rms: int,
    grad_output: int,
    grad_output_outer_stride: int,
    grad_output_row_stride: int,
    grad_input: int,
    grad_input_outer_stride: int,
    grad_input_row_stride: int,
    grad_input_piece_stride: int,
    grad_gain: int,
    grad_gate: int,
    /,
) -> None:
    """Write the gradients to addresses, each in the dtype of what it belongs to."""

class PackedLinear:
    """A copy of a linear layer's weights ``[outputs, inputs]`` and bias, laid out for translation.

    In float32, or in bytes with a scale for each output. The bias may have the address 0: none.
    ``filling`` is what outputs are that fill up the last vector.
    """

    def __init__(
        self,
        weight: int,
        bias: int,
        outputs: int,
        inputs: int,
        in_bytes: bool,
        filling: float,
        /,
    ) -> None: ...

class PackedLayerNorm:
    """A copy of gain and bias, from their addresses."""

    def __init__(self, gain: int, bias: int, dim: int, eps: float, /) -> None: ...

class PackedAttention:
    """One attention: ``input`` gives query, key and value, or in cross-attention the query alone.

    ``memory`` gives key and value in cross-attention. Softmax ignores thresholds ``[heads]``, power
    and length exponent. Gain and gate are those of RMSNorm. Address 0: none. The last argument is
    the norm of the residual connection.
    """

    def __init__(
        self,
        input: PackedLinear,
        memory: PackedLinear | None,
        output: PackedLinear,
        is_softmax: bool,
        thresholds: int,
        heads: int,
        power: float,
        length_exponent: float,
        gain: int,
        gate: int,
        dim: int,
        eps: float,
        residual_norm: PackedLayerNorm,
        /,
    ) -> None: ...

class PackedFeedForward:
    def __init__(
        self, inner: PackedLinear, outer: PackedLinear, residual_norm: PackedLayerNorm, /
    ) -> None: ...

class PackedModel:
    """A Transformer. The embeddings ``[vocabulary, dim]`` are not copied: they must outlive it."""

    def __init__(
        self,
        dim: int,
        heads: int,
        norm_first: bool,
        embeddings: int,
        embedding_scale: float,
        output: PackedLinear,
        /,
    ) -> None: ...
    def add_encoder_layer(
        self, attention: PackedAttention, feed_forward: PackedFeedForward, /
    ) -> None: ...
    def add_decoder_layer(
        self, target: PackedAttention, source: PackedAttention, feed_forward: PackedFeedForward, /
    ) -> None: ...
    def set_last_norms(self, encoder: PackedLayerNorm, decoder: PackedLayerNorm, /) -> None: ...

class Search:
    """The beams of a batch of sentences, which it encodes when it is made.

    ``tokens`` are those of all sentences, ``lengths`` how many each has; ``positions`` is the
    address of position vectors ``[longest, dim]``. Addresses are of contiguous tensors: int64
    tokens and beams, float32 scores and states, one byte for a truth value.
    """

    def __init__(
        self,
        kernels: str,
        threads: int,
        model: PackedModel,
        tokens: Sequence[int],
        lengths: Sequence[int],
        positions: int,
        beams: int,
        /,
    ) -> None: ...
    def step(self, kernels: str, threads: int, tokens: int, position: int, states: int, /) -> None:
        """Read a token of each beam; write the states ``[rows, dim]`` unless that address is 0."""

    def choose(
        self,
        kernels: str,
        threads: int,
        scores: int,
        count: int,
        forbidden: Sequence[int],
        must_end: int,
        end: int,
        best_scores: int,
        best_beams: int,
        best_tokens: int,
        /,
    ) -> bool:
        """Write the best candidates, ``[batch, count]`` each; False if a score is not finite."""

    def reorder(self, parents: int, /) -> None:
        """``[batch, beams]``: let every beam go on from where another one is."""

    def keep(self, sentences: Sequence[int], /) -> None:
        """Drop all sentences but those at these places, which rise."""
