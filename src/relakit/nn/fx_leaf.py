"""Modules that `torch.fx` keeps whole, as it keeps those of torch.nn."""

from torch import nn


def make_leaf(module: nn.Module) -> None:
    """Have `torch.fx.symbolic_trace` call the module, instead of tracing its forward.

    Our forwards look at shapes, which symbolic tracing cannot do. A tracer takes a module for a
    leaf if the module's ``__module__`` starts with "torch.nn"; that is the rule which
    `torch.fx.Tracer.is_leaf_module` documents, and tracers of other packages copy. So the
    *instance* says so. Its class keeps its own, by which it is pickled.
    """
    module.__module__ = nn.Module.__module__
