"""Parameters that conversion adds too late: after an optimizer or a wrapper took the model's.

Nothing fails in that case. The new parameters stay unchanged, or differ between processes.
"""

import gc
from collections.abc import Collection, Iterable
from typing import Final

from torch import nn
from torch.optim import Optimizer

from relakit.ops.torch_private import optimizers_in_use

_WRAPPERS: Final = ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule")
"""Classes that take a model's parameters when they wrap it. Given by name, because
torch.distributed may be missing, and importing FSDP takes long."""


def why_not_trained(model: nn.Module, before: Collection[nn.Parameter]) -> list[str]:
    """Sentences naming the wrappers and optimizers that miss the parameters not in ``before``."""
    names = [name for name, parameter in model.named_parameters() if parameter not in before]
    if not names:
        return []
    added = f"the {len(names)} parameters that conversion adds, such as {names[0]}"
    reasons = []
    wrappers = dict.fromkeys(
        kind.__name__
        for module in model.modules()
        for kind in type(module).__mro__
        if kind.__name__ in _WRAPPERS
    )
    if wrappers:
        reasons.append(
            f"the model was wrapped in {' and '.join(wrappers)} before the conversion: gradients "
            f"of {added}, will not be shared between processes; convert first, wrap afterwards"
        )
    optimizers = _optimizers_of(before)
    if optimizers:
        reasons.append(
            f"an optimizer ({', '.join(optimizers)}) was built before the conversion: it will not "
            f"train {added}; build it after converting, or give them to its add_param_group"
        )
    return reasons


def _optimizers_of(parameters: Iterable[nn.Parameter]) -> list[str]:
    """The classes of all optimizers that hold one of the parameters.

    Optimizers know their parameters but not the other way round, and torch keeps no list of
    optimizers. So we look at every object that Python's garbage collector knows, which takes 0.1
    seconds in a process with 300,000 of them, but only if there ever was an optimizer.
    """
    wanted = {id(parameter) for parameter in parameters}
    kinds = optimizers_in_use()
    if not kinds:
        return []

    def search() -> list[str]:
        return [
            type(thing).__name__
            for thing in gc.get_objects()
            # Not isinstance, which asks an object for its class and so triggers lazy objects.
            if type(thing) in kinds and not wanted.isdisjoint(_held_by(thing))
        ]

    if not search():
        return []
    gc.collect()  # an optimizer that is no longer reachable does not count
    return sorted(set(search()))


def _held_by(optimizer: Optimizer) -> list[int]:
    # An optimizer whose constructor failed has no groups.
    groups = getattr(optimizer, "param_groups", [])
    return [id(parameter) for group in groups for parameter in group["params"]]
