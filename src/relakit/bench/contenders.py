"""The contenders: ReLA, and the methods that it is compared with."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from relakit.bench.cases import Case
from relakit.bench.inputs import Inputs
from relakit.bench.presets import RELA
from relakit.ops.attention import attention
from relakit.ops.backends import BACKENDS, BackendName, choose_backend
from relakit.ops.call import AttentionCall


@dataclass(frozen=True)
class Prepared:
    """A method applied to a case's tensors: what to call, and the tensors that get gradients."""

    forward: Callable[[], Tensor]
    leaves: tuple[Tensor, ...]
    """Query, key and value as used by ``forward``; they share the case's memory."""


Prepare = Callable[[Inputs, BackendName | None], Prepared]


@dataclass(frozen=True)
class Method:
    """One way to compute attention."""

    description: str
    prepare: Prepare
    bytes_per_score: tuple[int, int] = (0, 0)
    """Measured bytes of peak memory per score in float32: forward, and both passes. 0: memory does
    not grow with the number of scores."""
    needs: str | None = None
    """A required package that may be missing."""


def _rela(inputs: Inputs, backend: BackendName | None) -> Prepared:
    query, key, value, mask = inputs.query, inputs.key, inputs.value, inputs.mask

    def forward() -> Tensor:
        return attention(
            query,
            key,
            value,
            mask,
            is_causal=inputs.is_causal,
            threshold=inputs.threshold,
            backend=backend,
        )

    return Prepared(forward, (query, key, value))


def _sdpa(inputs: Inputs, _: str | None) -> Prepared:
    query, key, value, mask = inputs.query, inputs.key, inputs.value, inputs.mask

    def forward() -> Tensor:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=inputs.is_causal
        )

    return Prepared(forward, (query, key, value))


def _two_products(weights_of: Callable[[Tensor], Tensor]) -> Prepare:
    """Attention with a function from scores to weights between two batched products.

    The leanest way without custom kernels: heads are flattened into the batch, and the first
    product includes scale and mask.
    """

    def prepare(inputs: Inputs, _: str | None) -> Prepared:
        leaves = tuple(
            x.detach().flatten(0, 1).requires_grad_(x.requires_grad)
            for x in (inputs.query, inputs.key, inputs.value)
        )
        query, key, value = leaves  # [batch * heads, positions, dim]
        scale = query.size(-1) ** -0.5
        bias = additive_mask(inputs)
        beta = 0 if bias is None else 1  # with 0, `added` is not even read
        added = query.new_zeros(1, 1, 1) if bias is None else bias

        def forward() -> Tensor:
            scores = torch.baddbmm(added, query, key.mT, beta=beta, alpha=scale)
            return torch.bmm(weights_of(scores), value)

        return Prepared(forward, leaves)

    return prepare


def additive_mask(inputs: Inputs) -> Tensor | None:
    """The case's mask as numbers to add: broadcasts to ``[batch * heads, queries, keys]``."""
    mask, query = inputs.mask, inputs.query
    if inputs.is_causal:
        hidden = torch.ones(query.size(2), inputs.key.size(2), dtype=torch.bool).triu(1)
        return query.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)[None]
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        mask = query.new_zeros(mask.shape).masked_fill_(~mask, -torch.inf)
    return mask.expand(query.size(0), query.size(1), -1, -1).flatten(0, 1)


def _softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, -1)


def _sparsemax(scores: Tensor) -> Tensor:
    from entmax import sparsemax  # type: ignore[import-untyped]

    weights: Tensor = sparsemax(scores, -1)
    return weights


def _entmax15(scores: Tensor) -> Tensor:
    from entmax import entmax15

    weights: Tensor = entmax15(scores, -1)
    return weights


CONTENDERS: Final[dict[str, Method]] = {
    RELA: Method("relakit.attention, ReLU", _rela),
    "sdpa": Method("PyTorch's scaled_dot_product_attention", _sdpa),
    "bmm-softmax": Method("two batched products around softmax", _two_products(_softmax), (9, 13)),
    "sparsemax": Method(
        "two batched products around entmax.sparsemax",
        _two_products(_sparsemax),
        (34, 34),
        "entmax",
    ),
    "entmax15": Method(
        "two batched products around entmax.entmax15",
        _two_products(_entmax15),
        (54, 54),
        "entmax",
    ),
}
REFERENCE_BYTES_PER_SCORE: Final = (17, 18)
"""ReLA's ``bytes_per_score`` where the reference backend serves it."""


def why_left_out(
    name: str, inputs: Inputs, backend: BackendName | None, memory_limit: float
) -> str | None:
    """Why a contender does not run: its package is missing, or it needs too much memory."""
    method = CONTENDERS[name]
    if method.needs is not None and find_spec(method.needs) is None:
        return f"needs the package {method.needs}: pip install 'relakit[bench]'"
    needed = estimate_gib(name, inputs, backend)
    if needed > memory_limit:
        return f"would need {needed:.1f} GiB, over the limit of {memory_limit:g} GiB"
    return None


def estimate_gib(name: str, inputs: Inputs, backend: BackendName | None) -> float:
    """A contender's approximate peak memory in GiB, above the inputs."""
    batch, heads, queries, _ = inputs.query.shape
    method, item = CONTENDERS[name], inputs.query.element_size()
    per_score = method.bytes_per_score
    if name == RELA and serving_backend(inputs, backend) == "reference":
        per_score, item = REFERENCE_BYTES_PER_SCORE, 4  # it always computes in float32
    elif method.needs is not None:
        item = 4  # mostly indices, whose size does not depend on the dtype
    scores = batch * heads * queries * inputs.key.size(2)
    outputs = sum(x.numel() for x in (inputs.query, inputs.key, inputs.value))
    needed = per_score[inputs.grad_output is not None] * item / 4 * scores + 2 * item * outputs
    return needed / 2**30


def serving_backend(inputs: Inputs, backend: BackendName | None) -> BackendName:
    """The name of the backend that ReLA runs on."""
    call = AttentionCall(
        query=inputs.query,
        key=inputs.key,
        value=inputs.value,
        attn_mask=inputs.mask,
        is_causal=inputs.is_causal,
        threshold=inputs.threshold,
    )
    return choose_backend(call, backend).name


def why_kernels_cannot_run() -> list[str]:
    """Reasons why the native kernels cannot run here; empty if they can."""
    return BACKENDS["native"].unavailable()


def make_step(
    name: str, case: Case, inputs: Inputs, backend: BackendName | None
) -> Callable[[], object]:
    """What is timed: one forward pass, or one forward and backward pass."""
    prepared = CONTENDERS[name].prepare(inputs, backend)
    forward, leaves, grad = prepared.forward, prepared.leaves, inputs.grad_output
    if not case.has_backward:
        return forward
    assert grad is not None
    if leaves[0].dim() == 3:
        grad = grad.flatten(0, 1)

    def both() -> object:
        return torch.autograd.grad(forward(), leaves, grad)

    return both
