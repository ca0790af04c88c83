"""Which engine a search runs on: C++ where possible, PyTorch elsewhere."""

import logging

from relakit.decode.engine import Engine
from relakit.decode.native_engine import NativeEngine, why_not_native
from relakit.decode.torch_engine import TorchEngine
from relakit.model import Transformer
from relakit.ops.backends import backend_from_environment
from relakit.ops.native.extension import BACKEND_VARIABLE, why_unavailable

logger = logging.getLogger(__name__)


def forbidden_by_environment() -> list[str]:
    """Why no model may translate in C++, if the environment forbids it.

    Raises:
        ValueError: the environment names a backend that does not exist.
    """
    is_forbidden = backend_from_environment() == "reference"
    return [f"{BACKEND_VARIABLE}=reference forbids it"] if is_forbidden else []


def choose_engine(model: Transformer, *, in_bytes: bool = False) -> Engine:
    """A model, ready for searches. RELAKIT_BACKEND=reference forces PyTorch.

    Args:
        model: in the precision to compute in.
        in_bytes: use weights of one byte, which only C++ can do.

    Raises:
        ValueError: weights of one byte are wanted but impossible here (says why), or the
            environment names a backend that does not exist.
    """
    reasons = why_not_native(model) + forbidden_by_environment()
    if not reasons:
        return NativeEngine(model, in_bytes=in_bytes)
    if in_bytes:
        raise ValueError(
            f"int8 needs translation in C++, which is not possible here: {'; '.join(reasons)}; "
            "choose another precision"
        )
    # Translation is slow without the extension, and that can be fixed: say so.
    level = logging.WARNING if why_unavailable() else logging.INFO
    logger.log(level, "translating with PyTorch, not in C++: %s", "; ".join(reasons))
    return TorchEngine(model)
