"""The cost of the parts where softmax attention and ReLA-g differ, from the paper's Table 4."""


def softmax_flops(length: int, heads: int) -> int:
    """Floating-point operations of the softmax in self-attention over ``length`` positions."""
    return 3 * heads * length**2 - heads * length


def rela_g_flops(length: int, heads: int, dim: int) -> int:
    """The same for ReLU and gated RMSNorm, with ``dim`` features across all heads."""
    return heads * length**2 + 10 * length * dim + length
