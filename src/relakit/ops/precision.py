"""Which precision to compute in: one rule for the function, the norms and the module.

Half-precision input is processed in float32 and the result cast back. Unlike softmax weights, ReLU
weights have no upper bound, so float16 would overflow.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

HALF_DTYPES = (torch.float16, torch.bfloat16)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in the precision to compute in: float32 for half precision, else unchanged."""
    return tensor.float() if tensor.dtype in HALF_DTYPES else tensor


def without_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """Switch autocast off on the tensor's device; it would cast float32 results back down."""
    device = tensor.device.type
    if device == "meta" or not torch.is_autocast_enabled(device):  # "meta" has no autocast
        return nullcontext()
    return torch.autocast(device, enabled=False)


def follow_autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Under autocast, cast the tensors that autocast would cast for SDPA: all but float64."""
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    castable = (*HALF_DTYPES, torch.float32)
    return tuple(t.to(dtype) if t.dtype in castable else t for t in tensors)
