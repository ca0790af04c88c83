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

def usable_isas() -> list[str]:
    """Instruction sets that there are kernels for and this machine can run, best first."""

def chosen_isa() -> str:
    """The best of them, or the one that RELAKIT_CPU_ISA names; ValueError if it is not usable."""

def connect(parts: dict[str, Any], /) -> bool:
    """Learn how to read torch's tensors; False if DLPack's exchange interface is not a known one.

    The parts are those of `relakit.ops.native.connection.connection_parts`. Until then the
    functions below return None.
    """

def is_plain(*tensors: Tensor | None) -> bool:
    """Whether torch does nothing but run operations, and all tensors are ordinary ones on a CPU.

    False while tracing, inside a mode for dispatch or for torch functions, inside a transform of
    torch.func, and with forward-mode derivatives; and for tensor subclasses, and tensors whose
    numbers are not simply what is in memory at their address. None is skipped.
    """

LARGEST_DIM: int
"""Features per head that the kernels can take."""

def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float | tuple[float, int],
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    threshold: float | Tensor | None,
    power: float,
    weights: bool | str | None,
    statistics: bool,
    backend: str | None,
    keep_bits: bool | None,
    reach: tuple[int, int, bool, Tensor | None, Tensor | None] | None,
    /,
) -> Any:
    """ReLU attention over ``[batch, heads, positions, features]``; None if it is not for us.

    The reach is a `relakit.ops.reach.Reach`, and then ``is_causal`` is False; None for all keys.
    Dropout is a probability, for which a seed is drawn from torch's generator; for an operator (see
    ``keep_bits``) that and a seed.

    Returns the output, recorded by autograd where it should be. If weights (True, "dense" or "csr")
    or statistics are wanted: (output, weights, non-zeros, sums), with sparse weights as (starts,
    columns, numbers, rows, keys). With ``keep_bits`` True or False, which is for torch's operators:
    (output, bits or None), whatever torch is doing, and not recorded.
    """

def multihead_attention(
    projections: tuple[Tensor, ...],
    heads: int,
    positions: int,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    threshold: float | Tensor,
    power: float,
    weights: bool,
    backend: str | None,
    gain: Tensor | None,
    gate: Tensor | None,
    eps: float,
    reach: tuple[int, int, bool, Tensor | None, Tensor | None] | None,
    /,
) -> Any:
    """Attention over heads that lie side by side, and the norm that follows if there is a gain.

    The arguments are those of `relakit.nn.fused.attend_and_normalise`. Returns as `attention`.
    """

def attention_backward(
    grad_output: Tensor,
    mixed: Tensor | None,
    inverse_rms: Tensor | bytes | None,
    bits: Tensor | bytes | None,
    options: tuple[Any, ...],
    mask: Tensor | None,
    threshold: float | Tensor | None,
    gain: Tensor | None,
    gate: Tensor | None,
    tensors: tuple[Tensor, ...],
    wants_threshold: bool,
    is_trusted: bool,
    /,
) -> tuple[Tensor | None, ...] | None:
    """A gradient for each input of `relakit.ops.native.attention.Attention`; None if it cannot.

    That of the threshold is the gradient of each row's scores, still to be summed and negated.
    ``is_trusted`` is for torch's operators: whatever torch is doing.
    """

def attention_thresholds(isa: str, dtype: str) -> dict[str, Any]:
    """By name, the thresholds of native/attention/thresholds.h that the kernels use.

    ``dtype`` is that of the inputs: "float32" or "bfloat16".
    """

def set_attention_thresholds(
    isa: str,
    dtype: str,
    *,
    dense_forward: float,
    dense_backward: float,
    most_candidates: float,
    least_to_screen: int,
    most_to_fetch: float,
) -> None:
    """Use other ones. Not while another thread runs kernels; results change by rounding."""

def has_screening(isa: str) -> bool:
    """Whether scores are screened in integers; without, two of the thresholds mean nothing."""

def vector_width(isa: str) -> int:
    """How many floats a vector has; few queries are served best if heads fill whole vectors."""

def multiply_and_add(isa: str, times: int) -> float:
    """The most that the processor can multiply and add; returns the number of operations."""

def score_products(isa: str, queries: int, keys: int, dim: int, times: int) -> float:
    """A head's scores, computed densely and dropped; returns the number of operations."""

def norm(
    x: Tensor, gain: Tensor, gate: Tensor | None, eps: float, feature_dims: int, /
) -> Tensor | None:
    """RMSNorm, gated or not, recorded by autograd where it should be; None if it cannot."""

def norm_backward(
    grad_output: Tensor,
    x: Tensor,
    gain: Tensor,
    gate: Tensor | None,
    inverse_rms: Tensor,
    eps: float,
    feature_dims: int,
    /,
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Gradients of x, gain and gate; None if it cannot."""

def smoothed_losses(
    logits: Tensor,
    targets: Tensor,
    smoothing: float,
    shares: Tensor | None,
    wants_gradient: bool,
    /,
) -> Tensor | None:
    """Smoothed cross-entropies of rows, and negative log-likelihoods: ``[rows, 2]``.

    With ``wants_gradient`` the logits become their gradients, times the row's share. None if the
    kernels cannot serve the call.
    """

def simplex(scores: Tensor, is_squared: bool, /) -> Tensor | None:
    """Sparsemax of rows of scores, or 1.5-entmax if squared, not recorded; None if it cannot."""

def simplex_backward(grad_weights: Tensor, weights: Tensor, is_squared: bool, /) -> Tensor | None:
    """The gradient of the scores; None if it cannot."""

class PackedLinear:
    """A copy of a linear layer's weights ``[outputs, inputs]`` and bias, laid out for translation.

    ``isa`` is the instruction set whose kernels will read them, of all layers of a model.
    In float32, or in bytes with a scale for each output. The bias may have the address 0: none.
    ``filling`` is what outputs are that pad them to a multiple of 64.
    """

    def __init__(
        self,
        isa: str,
        weight: int,
        bias: int,
        outputs: int,
        inputs: int,
        in_bytes: bool,
        filling: float,
        /,
    ) -> None: ...
    def multiply(self, isa: str, threads: int, x: int, rows: int, y: int, /) -> None:
        """Rows ``[rows, inputs]`` to ``[rows, outputs]``, these padded to a multiple of 64."""

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
    """A Transformer.

    The embeddings ``[vocabulary, dim]`` are what it reads for each token, but for the position.
    They are not copied, so they must outlive it.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        norm_first: bool,
        source_embeddings: int,
        target_embeddings: int,
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
        isa: str,
        threads: int,
        model: PackedModel,
        tokens: Sequence[int],
        lengths: Sequence[int],
        positions: int,
        beams: int,
        /,
    ) -> None: ...
    def allow(self, isa: str, threads: int, tokens: int, lengths: Sequence[int], /) -> None:
        """Let each sentence have a list of the tokens that may be chosen, its end the first one.

        ``tokens`` are those of all lists, ``lengths`` how many each has.
        """

    def step(self, isa: str, threads: int, tokens: int, position: int, states: int, /) -> None:
        """Read a token of each beam; write the states ``[rows, dim]`` unless that address is 0.

        The first token must be the same for all beams of a sentence.
        """

    def choose(
        self,
        isa: str,
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
        """Write the best candidates, ``[batch, count]`` each; False if a score is not finite.

        After the first step those of the first beams, which the others are like.
        RuntimeError before the first step, and between ``keep`` and the next.
        """

    def reorder(self, parents: int, /) -> None:
        """``[batch, beams]``: continue each beam from this one of its sentence."""

    def keep(self, sentences: Sequence[int], /) -> None:
        """Drop all sentences except those at these places, given in ascending order."""
