"""The C++ kernels as PyTorch operators: ``relakit::rela`` and ``relakit::rela_backward``.

They compute ``relu(scale * Q K^T + mask - threshold) ** power @ V`` for 4-D input on the CPU and
skip what is zero. `NativeBackend` in `relakit.attention.backends` says which calls they serve.
"""

import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from relakit.attention.call import AttentionCall
from relakit.attention.reference import reference_attention

ISA_VARIABLE: Final = "RELAKIT_CPU_ISA"
LARGEST_DIM: Final = 256


def load_extension() -> ModuleType:
    """The C++ extension; ImportError where it was not built."""
    return import_module("relakit._native")


def choose_kernels() -> str:
    """The instruction set to use: the best one, or the one that RELAKIT_CPU_ISA names."""
    usable: list[str] = load_extension().kernels()
    wanted = os.environ.get(ISA_VARIABLE)
    if not wanted:
        return usable[0]
    if wanted not in usable:
        raise ValueError(
            f"{ISA_VARIABLE}={wanted!r} is not usable here; choose one of {', '.join(usable)}"
        )
    return wanted


def _why_unavailable() -> list[str]:
    """Reasons why the kernels cannot run on this machine."""
    try:
        choose_kernels()
    except ImportError as error:
        return [f"the C++ extension is not there: {error}"]
    except ValueError as error:
        return [str(error)]
    return []


# The compiler cannot look into imports and the environment, and need not.
why_unavailable: Callable[[], list[str]] = torch.compiler.assume_constant_result(  # type: ignore[no-untyped-call]
    _why_unavailable
)


def is_transforming() -> bool:
    """Whether vmap, grad or another torch.func transform is at work."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.peek_interpreter_stack() is not None


def native_attention(call: AttentionCall) -> Tensor:
    """Run a call that `NativeBackend.refusals` had nothing against."""
    lead = call.weights_shape[:-2]
    query = _as_4d(call.query, lead)
    key_lead = (*lead[:-1], call.key.size(-3)) if call.enable_gqa else lead
    value_lead = (*lead[:-1], call.value.size(-3)) if call.enable_gqa else lead
    key, value = _as_4d(call.key, key_lead), _as_4d(call.value, value_lead)
    if key.size(1) != value.size(1):  # grouped queries with a group size of their own for values
        key, value = (x.repeat_interleave(query.size(1) // x.size(1), 1) for x in (key, value))
    heads = query.size(1)
    if isinstance(call.threshold, Tensor):
        threshold = call.threshold.to(torch.float32).expand(heads)
    else:
        threshold = torch.full((heads,), call.threshold, dtype=torch.float32)
    output = torch.ops.relakit.rela(
        query,
        key,
        value,
        None if call.attn_mask is None else _mask_as_4d(call.attn_mask, lead),
        threshold,
        # One draw per call, so that torch.manual_seed makes dropout repeatable.
        torch.randint(2**62, (1,)) if call.dropout_p > 0 else None,
        call.score_scale,
        int(call.power),
        call.is_causal,
        call.dropout_p,
    )
    result: Tensor = output.reshape(*lead, *output.shape[-2:])
    return result


def _as_4d(tensor: Tensor, lead: tuple[int, ...]) -> Tensor:
    """``[batch, heads, positions, features]``, features contiguous; a view if possible."""
    tensor = tensor.expand(*lead, *tensor.shape[-2:])
    heads = lead[-1] if lead else 1
    tensor = tensor.reshape(-1, heads, *tensor.shape[-2:]) if tensor.dim() != 4 else tensor
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _mask_as_4d(mask: Tensor, lead: tuple[int, ...]) -> Tensor:
    """Broadcast views stay views where the call has the usual four dimensions."""
    if mask.dtype != torch.bool:
        mask = mask.to(torch.float32)
    while mask.dim() < 4:
        mask = mask[None]
    if len(lead) <= 2:
        return mask
    mask = mask.expand(*lead, *mask.shape[-2:])
    return mask.reshape(-1, lead[-1], *mask.shape[-2:])


class _Arguments(NamedTuple):
    """Arguments of the operators, in their order."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    threshold: Tensor
    seed: Tensor | None
    scale: float
    power: int
    is_causal: bool
    dropout_p: float


@torch.library.custom_op("relakit::rela", mutates_args=(), device_types="cpu")
def rela(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    threshold: Tensor,
    seed: Tensor | None,
    scale: float,
    power: int,
    is_causal: bool,
    dropout_p: float,
) -> Tensor:
    """Attention over ``[batch, heads, positions, features]``; the mask broadcasts to 4-D."""
    output = query.new_empty((*query.shape[:-1], value.size(-1)))
    threshold = threshold.contiguous()
    arguments = _Arguments(
        query, key, value, mask, threshold, seed, scale, power, is_causal, dropout_p
    )
    problem = _problem(arguments)
    load_extension().rela_forward(
        choose_kernels(), torch.get_num_threads(), problem, output.data_ptr()
    )
    return output


@rela.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *others: object) -> Tensor:
    return query.new_empty((*query.shape[:-1], value.size(-1)))


@torch.library.custom_op("relakit::rela_backward", mutates_args=(), device_types="cpu")
def rela_backward(
    grad_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    threshold: Tensor,
    seed: Tensor | None,
    scale: float,
    power: int,
    is_causal: bool,
    dropout_p: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, value and threshold."""
    grads = [x.new_empty(x.shape) for x in (query, key, value)]
    grad_threshold = query.new_empty(query.shape[:2], dtype=torch.float32)
    if grad_output.stride(-1) != 1:
        grad_output = grad_output.contiguous()
    threshold = threshold.contiguous()
    arguments = _Arguments(
        query, key, value, mask, threshold, seed, scale, power, is_causal, dropout_p
    )
    problem = _problem(arguments)
    extension = load_extension()
    extension.rela_backward(
        choose_kernels(),
        torch.get_num_threads(),
        problem,
        extension.View(grad_output.data_ptr(), *grad_output.stride()[:3]),
        *(x.data_ptr() for x in grads),
        grad_threshold.data_ptr(),
    )
    return grads[0], grads[1], grads[2], grad_threshold.sum(0)


@rela_backward.register_fake
def _(
    grad_output: Tensor, query: Tensor, key: Tensor, value: Tensor, *others: object
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dq, dk, dv = (x.new_empty(x.shape) for x in (query, key, value))
    return dq, dk, dv, query.new_empty((query.size(1),), dtype=torch.float32)


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6])
    ctx.options = inputs[6:]


def _differentiate(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
    arguments = _Arguments(*ctx.saved_tensors, *ctx.options)
    if torch.is_grad_enabled():  # create_graph=True: these gradients are differentiated again
        dq, dk, dv, dt = _differentiable_backward(grad_output, arguments)
    else:
        dq, dk, dv, dt = torch.ops.relakit.rela_backward(grad_output, *arguments)
    return dq, dk, dv, None, dt, None, None, None, None, None


rela.register_autograd(_differentiate, setup_context=_save_for_backward)


def _differentiable_backward(grad_output: Tensor, arguments: _Arguments) -> tuple[Tensor, ...]:
    """The same gradients by the reference, which autograd can differentiate."""
    if arguments.dropout_p > 0:
        raise RuntimeError(
            "the native backend has no second derivatives with dropout; use backend='reference'"
        )
    differentiated = (arguments.query, arguments.key, arguments.value, arguments.threshold)
    inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in differentiated]
    call = AttentionCall(
        query=inputs[0],
        key=inputs[1],
        value=inputs[2],
        attn_mask=arguments.mask,
        is_causal=arguments.is_causal,
        scale=arguments.scale,
        enable_gqa=True,
        threshold=inputs[3],
        power=float(arguments.power),
    )
    output, _ = reference_attention(call)
    return torch.autograd.grad(output, inputs, grad_output, create_graph=True)


def _problem(arguments: _Arguments) -> Any:
    """The call as the kernels read it. It holds addresses: the tensors must outlive it."""
    query, key, value, mask = arguments[:4]
    extension = load_extension()
    problem = extension.Problem()
    problem.batch, problem.heads, problem.queries, problem.dim = query.shape
    problem.key_heads, problem.keys, problem.value_dim = value.shape[1:]
    problem.is_bfloat16 = query.dtype == torch.bfloat16
    problem.query, problem.key, problem.value = (
        extension.View(x.data_ptr(), *x.stride()[:3]) for x in (query, key, value)
    )
    if mask is not None:
        weights_shape = (*query.shape[:3], key.size(2))
        mask = mask.expand(weights_shape)  # strides of 0 where it broadcasts
        problem.mask = extension.Mask(mask.data_ptr(), mask.dtype == torch.bool, *mask.stride())
    problem.causal = arguments.is_causal
    problem.scale = arguments.scale
    problem.threshold = arguments.threshold.data_ptr()
    problem.power = arguments.power
    problem.dropout = arguments.dropout_p
    problem.seed = 0 if arguments.seed is None else int(arguments.seed)
    return problem
