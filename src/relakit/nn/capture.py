"""`capture`: collect the attention weights of a running model."""

import inspect
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from relakit.nn.convert import is_pytorchs_own
from relakit.nn.module_names import (
    Where,
    attention_like,
    check_patterns,
    is_selected,
    names_of_modules,
)
from relakit.nn.multihead import MultiheadAttention
from relakit.nn.projection import project
from relakit.ops.call import AttentionCall
from relakit.ops.listeners import add_listener, remove_listener
from relakit.ops.reference import reference_weights


@dataclass(frozen=True)
class AttentionRecord:
    """The attention of one module in one forward pass, without dropout and without gradient."""

    weights: Tensor
    """``[batch, heads, queries, keys]`` (for `relakit.attention`: whatever dimensions its input had
    before ``queries``). float32 for half-precision models."""
    valid: Tensor | None
    """True where a key was not masked, same shape as the weights; None if nothing was masked."""


Records = Mapping[str, list[AttentionRecord]]
"""Records by module name, one for each call of the module, in order."""


@contextmanager
def capture(model: nn.Module, where: Where = None) -> Iterator[Records]:
    """Collect the weights of all attention, by module name, while the model runs in the block.

    ::

        with relakit.capture(model) as records:
            model(source, target)
        records["decoder.layers.0.multihead_attn"][0].weights  # [batch, heads, queries, keys]

    It covers `relakit.MultiheadAttention`, PyTorch's own `nn.MultiheadAttention`, and every module
    that calls `relakit.attention` itself. It does not cover calls from outside the model's modules,
    modules that are added inside the block, ``forward`` called directly instead of the module, or
    subclasses of `nn.MultiheadAttention` with their own ``forward``.

    Weights are computed a second time for the record, without dropout, whatever backend ran. A
    compiled model runs uncompiled inside the block, and PyTorch's fused encoder layers are off.
    Every record is kept on the model's device: for a large corpus, capture batch by batch. With
    activation checkpointing, a module runs again in the backward pass and is recorded again, so
    keep ``backward`` out of the block. If the block ends without a record, a warning says why.

    Args:
        model: the model whose attention to record.
        where: which modules, as in `relakit.convert_attention`; None for all.

    Yields:
        A mapping from module name to a list with one `AttentionRecord` per call. A module appears
        when it is first called; a shared module is listed under its first name. The model itself
        has the name ``""``.
    """
    names = names_of_modules(model)
    attentions = [n for m, ns in names.items() if isinstance(m, nn.MultiheadAttention) for n in ns]
    all_names = [name for several in names.values() for name in several]
    check_patterns(where, all_names, shown=attentions or all_names)
    session = _Session({m: ns for m, ns in names.items() if is_selected(where, ns, m)})
    with ExitStack() as stack:
        # Compiled code would bypass the hooks below; so would PyTorch's fused encoder layers.
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.callback(torch.backends.mha.set_fastpath_enabled, _fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
        for module in names:
            for handle in session.watch(module):
                stack.callback(handle.remove)
        add_listener(session.on_call)
        stack.callback(remove_listener, session.on_call)
        yield session.records
    if not session.records:
        reason = _why_empty(model, names, session)
        warnings.warn(f"capture recorded nothing: {reason}", stacklevel=3)  # at the with statement


def _why_empty(model: nn.Module, names: Mapping[nn.Module, list[str]], session: "_Session") -> str:
    if not session.has_run:
        return "the model did not run in the block (its forward, called directly, does not count)"
    if not session.selected:
        return "where selects none of the model's modules"
    attentions = [
        ns[0]
        for m, ns in session.selected.items()
        if is_pytorchs_own(m) or isinstance(m, MultiheadAttention)
    ]
    if attentions:
        return f"of the attention modules, none ran: {', '.join(attentions)}"
    return (
        f"in {type(model).__name__} ran no torch.nn.MultiheadAttention with PyTorch's forward, and "
        f"nothing called relakit.attention; {attention_like(names)}"
    )


class _Session:
    """One capture: which module is running, and the records so far."""

    def __init__(self, selected: dict[nn.Module, list[str]]) -> None:
        self.records: dict[str, list[AttentionRecord]] = {}
        self.selected = selected
        self.has_run = False
        self._adding = threading.Lock()
        self._thread = threading.local()  # each thread has its own stack of running modules

    @property
    def _running(self) -> list[nn.Module]:
        if not hasattr(self._thread, "running"):
            self._thread.running = []
        running: list[nn.Module] = self._thread.running
        return running

    def watch(self, module: nn.Module) -> list[torch.utils.hooks.RemovableHandle]:
        def enter(module: nn.Module, args: Any) -> None:
            self.has_run = True
            self._running.append(module)

        def leave(module: nn.Module, args: Any, output: Any) -> None:
            self._running.pop()

        handles = [
            module.register_forward_pre_hook(enter, prepend=True),
            module.register_forward_hook(leave, always_call=True),
        ]
        if is_pytorchs_own(module) and module in self.selected:
            handles.append(
                module.register_forward_hook(self._on_torch_module, with_kwargs=True, prepend=True)
            )
        return handles

    def on_call(self, call: AttentionCall) -> None:
        """Record a call of `relakit.attention`."""
        if not self._running or self._running[-1] not in self.selected:
            return
        name = self.selected[self._running[-1]][0]
        with torch.no_grad():
            record = AttentionRecord(*reference_weights(call))
        with self._adding:
            self.records.setdefault(name, []).append(record)

    def _on_torch_module(
        self,
        module: nn.MultiheadAttention,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
    ) -> None:
        """Record a run of PyTorch's own module, which computes softmax attention."""
        given = _TORCH_FORWARD.bind(module, *args, **kwargs)
        given.apply_defaults()
        arguments = given.arguments
        with torch.no_grad():
            projections = project(
                module,
                arguments["query"],
                arguments["key"],
                arguments["value"],
                key_padding_mask=arguments["key_padding_mask"],
                need_weights=arguments["need_weights"],
                attn_mask=arguments["attn_mask"],
                is_causal=arguments["is_causal"],
            )
            query, key, value = projections.apart()
        self.on_call(
            AttentionCall(
                query=query,
                key=key,
                value=value,
                attn_mask=projections.attn_mask,
                is_causal=projections.is_causal,
                reach=projections.reach,
                activation="softmax",
            )
        )


_TORCH_FORWARD: Final = inspect.signature(nn.MultiheadAttention.forward)


def _fastpath_enabled() -> bool:
    return bool(torch.backends.mha.get_fastpath_enabled())
