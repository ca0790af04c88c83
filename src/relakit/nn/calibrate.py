"""`calibrate`: initialise a converted model's norms so that its outputs resemble softmax's."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import torch
from torch import Tensor, nn

from relakit.nn.core import AttentionParts
from relakit.nn.module_names import (
    Where,
    check_patterns,
    is_selected,
    modules_by_name,
    names_of_modules,
)
from relakit.nn.multihead import MultiheadAttention
from relakit.nn.norms import LayerNorm, RMSNorm
from relakit.ops.call import AttentionCall
from relakit.ops.listeners import add_listener, remove_listener
from relakit.ops.norms import layer_norm, rms_norm
from relakit.ops.precision import wide
from relakit.ops.reference import reference_attention

_NOTHING: Final = 1e-12
"""A feature whose mean square is below this counts as 0."""


@dataclass(frozen=True)
class Calibration:
    """How far an attention module's output, after its norm, is from softmax's output."""

    before: float
    """Mean square of the difference, relative to the mean square of softmax's output; with the
    norm's old parameters"""
    after: float
    """The same with the norm's new parameters"""


def calibrate(
    model: nn.Module, batches: Iterable[Any], *, where: Where = None
) -> dict[str, Calibration]:
    """Set a converted model's norms so that it starts close to the softmax model that it was.

    ReLU weights are on a different scale from softmax weights, and the initial gain of a norm does
    not take into account what the output projection after it expects. Here the model reads some
    batches as if it still had softmax, and each feature's gain becomes the factor that brings
    ReLA's output closest to softmax's (least squares); gates start half open. The model then loses
    less by its conversion, and needs fewer updates to recover::

        relakit.convert_attention(model)  # or relakit.hf.convert(model)
        relakit.calibrate(model, batches)

    This works for all modules in which a norm of relakit follows `relakit.attention`: those that
    conversion creates, and your own. Attention without a norm is left unchanged.

    Args:
        model: a model that was trained with softmax attention, then converted.
        batches: some of the model's training data; a few thousand tokens are enough. A tensor is
            the model's only argument, a tuple or list its arguments, a mapping its keyword
            arguments.
        where: which norms, by the attention module that contains them, as in
            `relakit.convert_attention`; None for all. The others are not changed. If one module has
            several `AttentionCore`, it is asked for each of them, by its own name.

    Returns:
        For each attention module, by name, how far its output is from softmax's. If one module has
        several `AttentionCore`, each is listed under its own name.

    Raises:
        ValueError: there is no norm to calibrate, no batch, or an output that is not finite.
    """
    meters = [_Meter(norm, name) for name, norm in _chosen_norms(model, where).items()]
    has_batches = False
    with _as_if_softmax(model, meters):
        for batch in batches:
            _run(model, batch)
            has_batches = True
    if not has_batches:
        raise ValueError("there are no batches to calibrate with")
    idle = [meter.name for meter in meters if not meter.has_run]
    if idle:
        reason = f"in these batches no attention was in front of the norm of {', '.join(idle)}"
        if len(idle) == len(meters):
            raise ValueError(f"{reason}, so there is nothing to calibrate")
        warnings.warn(f"{reason}, which stays as it is", stacklevel=2)
        meters = [meter for meter in meters if meter.has_run]
    results = {meter.name: meter.result() for meter in meters}  # raises before anything is changed
    for meter in meters:
        meter.install()
    return results


def _chosen_norms(model: nn.Module, where: Where) -> dict[str, RMSNorm]:
    """Norms by the names of the attention modules they belong to, or else by their own.

    If one module has several `AttentionParts`, each goes by its own name.
    """
    modules = names_of_modules(model)
    found: dict[RMSNorm, list[str]] = {}
    own_names: dict[RMSNorm, list[str]] = {}
    for module, names in modules.items():
        norm = getattr(module, "norm", None)
        if isinstance(norm, RMSNorm) and isinstance(module, (AttentionParts, MultiheadAttention)):
            is_part = isinstance(module, AttentionParts)  # of the attention module
            found[norm] = [name.rpartition(".")[0] for name in names] if is_part else names
            own_names[norm] = names
    times = Counter(names[0] for names in found.values())
    for norm, names in found.items():
        if times[names[0]] > 1:
            found[norm] = own_names[norm]
    for module, names in modules.items():
        if isinstance(module, RMSNorm) and module not in found:
            found[module] = names
    if not found:
        raise ValueError(
            f"{type(model).__name__} has no attention with a norm of relakit; convert it first "
            "with relakit.convert_attention(model) or relakit.hf.convert(model), to an attention "
            "that has one, such as 'rela-g'"
        )
    shown = [names[0] for names in found.values()]
    check_patterns(where, chain.from_iterable(found.values()), shown=shown)
    by_name = modules_by_name(model)
    chosen = {
        names[0]: norm
        for norm, names in found.items()
        if any(is_selected(where, [name], by_name[name]) for name in names)
    }
    if not chosen:
        raise ValueError(f"where selects none of {', '.join(shown)}")
    return chosen


@contextmanager
def _as_if_softmax(model: nn.Module, meters: Sequence["_Meter"]) -> Iterator[None]:
    """A block in which the model uses softmax wherever there is a meter, and the meters count.

    Every layer thus reads what it read before the conversion, however bad the norms before it are.
    """
    with ExitStack() as stack:
        for module in model.modules():  # one by one: some may be frozen in eval mode
            stack.callback(setattr, module, "training", module.training)
        model.eval()
        stack.enter_context(torch.no_grad())
        # Compiled code would bypass the hooks.
        stack.enter_context(torch.compiler.set_stance("force_eager"))
        last = _LastCall()
        add_listener(last.take)
        stack.callback(remove_listener, last.take)
        for meter in meters:
            stack.callback(meter.norm.register_forward_hook(meter.hook(last)).remove)
        yield


def _run(model: nn.Module, batch: Any) -> None:
    if isinstance(batch, Mapping):
        model(**batch)
    elif isinstance(batch, (tuple, list)):
        model(*batch)
    else:
        model(batch)


class _LastCall:
    """Holds the latest attention call, for the norm after it."""

    def __init__(self) -> None:
        self._call: AttentionCall | None = None

    def take(self, call: AttentionCall) -> None:
        self._call = call

    def give(self) -> AttentionCall | None:
        """The latest call, once; then None until there is another."""
        call, self._call = self._call, None
        return call


class _Meter:
    """Accumulates, feature by feature, the sums for the least squares of one norm."""

    def __init__(self, norm: RMSNorm, name: str) -> None:
        self.norm = norm
        self.name = name
        self.has_run = False
        self._opening = 0.5 if hasattr(norm, "gate") else 1.0
        """The share that a gate of 0 lets through, after the sigmoid"""
        self._sums = torch.zeros(5, norm.dim, dtype=torch.float64)
        """Per feature: sums of ones, ours, softmax's, ours squared, and ours times softmax's"""
        self._squares = torch.zeros(2, dtype=torch.float64)
        """Sums of squares: softmax's output, and its difference from the norm's current output"""

    def hook(self, last: _LastCall) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Any]:
        def replace_output(norm: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Any:
            call = last.give()
            target = None if call is None else _softmax_output(call, args[0])
            if target is None:  # a norm that does not follow attention
                return None
            self._add(args[0], output, target)
            return target.to(output.dtype)

        return replace_output

    def _add(self, z: Tensor, output: Tensor, target: Tensor) -> None:
        self.has_run = True
        ours, target = (x.flatten(0, -2).double().cpu() for x in (self._plain(z), target))
        parts = (torch.ones_like(ours), ours, target, ours * ours, ours * target)
        self._sums += torch.stack([part.sum(0) for part in parts])
        missed = output.flatten(0, -2).double().cpu() - target
        self._squares += torch.stack([target.square().sum(), missed.square().sum()])

    def _plain(self, z: Tensor) -> Tensor:
        """The norm's output with a gain of 1, no bias and half-open gates."""
        ones = torch.ones(self.norm.dim, device=z.device)
        if isinstance(self.norm, LayerNorm):
            plain = layer_norm(wide(z), ones, torch.zeros_like(ones), eps=self.norm.eps)
        else:
            plain = rms_norm(wide(z), ones, eps=self.norm.eps)
        return self._opening * plain

    def _fit(self) -> tuple[Tensor, Tensor]:
        """Gain and bias by least squares, per feature; the bias is 0 if the norm has none."""
        count, ours, target, ours_squared, product = self._sums
        bias = torch.zeros_like(ours)
        if isinstance(self.norm, LayerNorm):
            spread = ours_squared - ours.square() / count
            gain = (product - ours * target / count) / spread
            gain = torch.where(spread > _NOTHING * count, gain, 0.0)
            bias = (target - gain * ours) / count
        else:
            gain = product / ours_squared
            # A head that is always null gives no information; it gets the average of the others.
            is_seen = ours_squared > _NOTHING * count
            usual = gain[is_seen].mean() if is_seen.any() else torch.ones((), dtype=gain.dtype)
            gain = torch.where(is_seen, gain, usual)
        return gain, bias

    def result(self) -> Calibration:
        gain, bias = self._fit()
        count, ours, target, ours_squared, product = self._sums
        whole, missed = self._squares.tolist()
        # The sum of (target - gain * ours - bias)^2, expanded.
        left = (gain.square() * ours_squared - 2 * gain * product).sum() + whole
        left += (count * bias.square() + 2 * bias * (gain * ours - target)).sum()
        if not (math.isfinite(missed) and math.isfinite(float(left))):
            raise ValueError(f"the attention of {self.name} is NaN or infinite in these batches")
        whole = whole or 1.0  # if softmax's output is all zeros
        return Calibration(missed / whole, max(0.0, float(left)) / whole)

    def install(self) -> None:
        gain, bias = self._fit()
        with torch.no_grad():
            self.norm.weight.copy_(gain)
            if isinstance(self.norm, LayerNorm):
                self.norm.bias.copy_(bias / self._opening)
            gate = getattr(self.norm, "gate", None)
            if isinstance(gate, Tensor):
                gate.zero_()


def _softmax_output(call: AttentionCall, z: Tensor) -> Tensor | None:
    """The output of softmax with the same scores, in the layout of ``z``, the actual output.

    None if ``z`` is not the output of the call.
    """
    found, _ = reference_attention(replace(call, dropout_p=0.0))
    softmax = replace(
        call, activation="softmax", threshold=0.0, power=1.0, length_exponent=0.0, dropout_p=0.0
    )
    target, _ = reference_attention(softmax)
    if found.dim() != 4:
        return None
    for order in ((0, 2, 1, 3), (2, 0, 1, 3)):  # batch first, or positions first
        joined = found.permute(order).flatten(2)
        if joined.shape == z.shape and _is_close(z, joined):
            return target.permute(order).flatten(2)
    return None


def _is_close(z: Tensor, joined: Tensor) -> bool:
    """Whether they are the same up to rounding, even in half precision."""
    difference = torch.linalg.vector_norm(wide(z) - wide(joined))
    # "not above", so that NaN passes; it is reported later.
    return not bool(difference > 0.05 * torch.linalg.vector_norm(wide(joined)))
