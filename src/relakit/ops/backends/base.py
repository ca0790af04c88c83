"""What a backend is."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, TypeAlias

from relakit.ops.activations import ActivationName
from relakit.ops.call import AttentionCall, AttentionResult

BackendName: TypeAlias = Literal["sdpa", "native", "reference"]


class Backend(ABC):
    """One implementation of attention."""

    name: ClassVar[BackendName]
    description: ClassVar[str]
    activations: ClassVar[tuple[ActivationName, ...]]
    """What it computes; calls with another activation are not for it."""

    def unavailable(self) -> list[str]:
        """Reasons why the backend cannot work on this machine at all."""
        return []

    @abstractmethod
    def refusals(self, call: AttentionCall) -> list[str]:
        """Reasons why the backend cannot serve this call, its activation aside."""

    def reservations(self, call: AttentionCall) -> list[str]:
        """Reasons why it should serve this call only if asked for by name."""
        return []

    @abstractmethod
    def run(self, call: AttentionCall) -> AttentionResult:
        """The output, and the weights and statistics if the call needs them."""

    def reasons_against(self, call: AttentionCall) -> list[str]:
        """All reasons why the backend cannot serve this call, here and now."""
        reasons = [*self.unavailable()]
        if call.activation not in self.activations:
            reasons.append(f"it computes {', '.join(self.activations)}, not {call.activation!r}")
        return reasons + self.refusals(call)
