"""`Backend`: the interface of an attention implementation."""

from abc import ABC, abstractmethod
from typing import ClassVar

from relakit.ops.call import AttentionCall, AttentionResult
from relakit.ops.options import ActivationName, BackendName


class Backend(ABC):
    name: ClassVar[BackendName]
    description: ClassVar[str]
    activations: ClassVar[tuple[ActivationName, ...]]
    """The activations that it computes; it is not asked about others."""

    def unavailable(self) -> list[str]:
        """Reasons why the backend does not work on this machine at all."""
        return []

    @abstractmethod
    def refusals(self, call: AttentionCall) -> list[str]:
        """Reasons why the backend cannot serve this call, apart from its activation."""

    def reservations(self, call: AttentionCall) -> list[str]:
        """Reasons why the backend should serve this call only if it is asked for by name."""
        return []

    @abstractmethod
    def run(self, call: AttentionCall) -> AttentionResult:
        """The output, plus weights and statistics if the call needs them."""

    def reasons_against(self, call: AttentionCall) -> list[str]:
        """All reasons why the backend cannot serve this call on this machine."""
        reasons = [*self.unavailable()]
        if call.activation not in self.activations:
            reasons.append(f"it computes {', '.join(self.activations)}, not {call.activation!r}")
        return reasons + self.refusals(call)
