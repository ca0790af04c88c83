"""Which decoder a search runs on: C++ where it can, PyTorch elsewhere."""

import logging
import os

from relakit.attention.extension import BACKEND_VARIABLE
from relakit.decode.native_steps import NativeSteps, why_not_native
from relakit.decode.steps import DecoderSteps, PyTorchSteps
from relakit.model import Transformer

logger = logging.getLogger(__name__)


def choose_steps(model: Transformer, *, in_bytes: bool = False) -> DecoderSteps:
    """The decoder of a model, ready for searches. RELAKIT_BACKEND=reference forces PyTorch's.

    Args:
        model: in the precision to compute in.
        in_bytes: with weights of one byte, which only C++ can do.

    Raises:
        ValueError: weights of one byte are wanted and cannot be had, and why.
    """
    reasons = why_not_native(model)
    if os.environ.get(BACKEND_VARIABLE) == "reference":
        reasons.append(f"{BACKEND_VARIABLE}=reference forbids it")
    if not reasons:
        return NativeSteps(model, in_bytes=in_bytes)
    if in_bytes:
        raise ValueError(
            f"int8 needs the decoder in C++, which cannot be used here: {'; '.join(reasons)}; "
            "choose another precision"
        )
    logger.info("decoding with PyTorch, not in C++: %s", "; ".join(reasons))
    return PyTorchSteps(model)
