"""Modules that `torch.fx` keeps whole, as it does with torch.nn's modules."""

from torch import nn


def make_leaf(module: nn.Module) -> None:
    """Have `torch.fx.symbolic_trace` call the module instead of tracing its ``forward``.

    Our ``forward`` methods look at shapes, which symbolic tracing cannot do. A tracer treats a
    module as a leaf if its ``__module__`` starts with "torch.nn"; `torch.fx.Tracer.is_leaf_module`
    documents this rule, and tracers of other packages copy it. So the *instance* gets such a
    ``__module__``. Its class keeps its own, which pickling uses.
    """
    module.__module__ = nn.Module.__module__
