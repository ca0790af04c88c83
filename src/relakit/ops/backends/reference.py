"""The backend that serves every call: the formula in plain PyTorch."""

from torch import Tensor

from relakit.ops.activations import ACTIVATIONS
from relakit.ops.backends.base import Backend
from relakit.ops.call import AttentionCall, AttentionResult, statistics_of
from relakit.ops.reference import Activations, reference_attention


class ReferenceBackend(Backend):
    name = "reference"
    description = "the formula in plain PyTorch; every activation, device and option"
    activations = tuple(ACTIVATIONS)

    def refusals(self, call: AttentionCall) -> list[str]:
        return []

    def run(self, call: AttentionCall) -> AttentionResult:
        return run_in_steps(call, ACTIVATIONS)


def run_in_steps(call: AttentionCall, activations: Activations) -> AttentionResult:
    """Scores, weights and output one after the other, with the activations of this table."""
    output, weights = reference_attention(call, activations)
    return AttentionResult(
        output,
        _in_wanted_form(weights, call) if call.need_weights else None,
        # From float32 weights: rounded to float16, some would be infinite and others 0.
        statistics_of(weights) if call.need_statistics else None,
    )


def _in_wanted_form(weights: Tensor, call: AttentionCall) -> Tensor:
    weights = weights.to(call.query.dtype)
    return weights.flatten(0, -2).to_sparse_csr() if call.need_weights == "csr" else weights
