def compiler() -> str:
    """The compiler that built this extension, such as "GCC 12.2.0"."""

def cpu_features() -> dict[str, bool]:
    """Instruction sets by name, and whether code may use them on this machine.

    Only the sets of the architecture that the extension was built for are listed. True means that
    the processor has it and that the operating system saves its registers.
    """

class View:
    """Where a tensor `[batch, head, row, feature]` is: address and strides, features contiguous."""

    def __init__(self, data: int, batch: int, head: int, row: int) -> None: ...

class Mask:
    """Where a mask is: address and strides. One byte per entry if boolean, else float32."""

    def __init__(
        self, data: int, is_boolean: bool, batch: int, head: int, row: int, column: int
    ) -> None: ...

class Problem:
    """One attention call: relu(scale * Q K^T + mask - threshold) ** power, times V."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    dim: int
    value_dim: int
    is_bfloat16: bool
    query: View
    key: View
    value: View
    mask: Mask
    causal: bool
    scale: float
    threshold: int
    """Address of one float32 per head."""
    power: int
    dropout: float
    seed: int

    def __init__(self) -> None: ...

def kernels() -> list[str]:
    """Instruction sets whose kernels this machine can run, best first."""

def rela_forward(kernels: str, threads: int, problem: Problem, output: int) -> None:
    """Write the output, `[batch, heads, queries, value_dim]`, to an address."""

def rela_backward(
    kernels: str,
    threads: int,
    problem: Problem,
    grad_output: View,
    grad_query: int,
    grad_key: int,
    grad_value: int,
    grad_threshold: int,
) -> None:
    """Write the gradients, contiguous, to addresses; the threshold's: `[batch, heads]`, float32."""

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
