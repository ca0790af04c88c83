"""Norms of the attention output as modules: equations 4 and 5 of the paper, and LayerNorm.

They hold the parameters; the formulas are in `relakit.ops.norms`.
"""

import math
from typing import ClassVar, Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from relakit.known_names import known_name
from relakit.nn.arguments import check_dtype, check_number, check_size, check_usable
from relakit.nn.fx_leaf import make_leaf
from relakit.nn.variants import AttentionSpec
from relakit.ops.call import check_tensor
from relakit.ops.native.connection import connected_extension
from relakit.ops.norms import gated, layer_norm, rms_norm
from relakit.ops.options import DEFAULT_EPS, SMALLEST_EPS

NormInit: TypeAlias = Literal["ones", "xavier"]


class RMSNorm(nn.Module):
    """RMSNorm (eq. 4) over the last dimension.

    Args:
        dim: size of the last dimension; in multi-head attention, the size of all heads together.
        eps: added to the mean square under the root.
        init: initial gain: ``"ones"``, or ``"xavier"``, which is uniform in ``±sqrt(3 / fan)``, as
            in ReLA-i.
        fan: for ``"xavier"``; ``dim`` if None. The head's dimension gives exactly the paper's
            formula, which is written for a single head.
    """

    _has_kernels: ClassVar[bool] = True
    """Whether the C++ extension computes the formula, with or without a gate."""

    def __init__(
        self,
        dim: int,
        *,
        eps: float = DEFAULT_EPS,
        init: NormInit = "ones",
        fan: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_size("dim", dim)
        check_number("eps", eps)
        if not SMALLEST_EPS <= eps < math.inf:
            raise ValueError(
                f"eps must be a finite number of at least {SMALLEST_EPS}, got {eps}: without it, "
                "a query that attends to nothing would become NaN"
            )
        known_name("init", init, get_args(NormInit))
        if fan is not None:
            check_size("fan", fan)
        check_usable(device)
        check_dtype(dtype)
        make_leaf(self)
        self.dim = dim
        self.eps = eps
        self.init = init
        self.fan = dim if fan is None else fan
        self.weight = nn.Parameter(torch.empty(dim, device=device, dtype=dtype))
        self._add_parameters(device, dtype)
        self.reset_parameters()

    def _add_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Where subclasses add parameters besides the gain."""

    def reset_parameters(self) -> None:
        """Set every parameter to its starting value."""
        if self.init == "ones":
            nn.init.ones_(self.weight)
        else:
            _xavier_uniform_(self.weight, self.fan)

    def forward(self, z: Tensor, *, heads_apart: bool = False, heads: int = 1) -> Tensor:
        """Normalise ``z``, in one pass over memory if the C++ extension can do it.

        Args:
            z: ``[..., dim]``; with ``heads_apart`` ``[..., heads, dim / heads]``. Heads may be
                strided: a transposed ``[batch, heads, positions, dim / heads]`` is not copied.
            heads_apart: heads have their own dimension; the features of all heads are normalised
                together, as one vector.
            heads: how many heads lie side by side in ``[..., dim]``. The result is bit-identical to
                that with ``heads_apart``: sums are taken head by head.

        Returns:
            ``[..., dim]``, in the dtype of ``z``.
        """
        if heads_apart:
            if z.dim() < 2 or z.size(-2) * z.size(-1) != self.dim:
                raise ValueError(
                    f"the last two dimensions must have {self.dim} features together, got shape "
                    f"{tuple(z.shape)}"
                )
        elif not isinstance(z, Tensor) or z.dim() == 0 or z.size(-1) != self.dim:
            self._raise_for_shape(z)  # a last dimension of 1 would broadcast
        elif heads > 1:
            if self.dim % heads != 0:
                raise ValueError(f"heads must divide dim, got heads={heads} and dim={self.dim}")
            z, heads_apart = z.view(*z.shape[:-1], heads, self.dim // heads), True
        if self._has_kernels and not is_dynamo_compiling():  # a compiler fuses the formula itself
            extension = connected_extension()
            if extension is not None:
                gate: Tensor | None = getattr(self, "gate", None)
                feature_dims = 2 if heads_apart else 1
                result: Tensor | None = extension.norm(z, self.weight, gate, self.eps, feature_dims)
                if result is not None:
                    return result
        self._check_kind(z)
        return self._normalise(z.flatten(-2) if heads_apart else z)

    def _raise_for_shape(self, z: object) -> None:
        check_tensor("z", z)
        assert isinstance(z, Tensor)
        raise ValueError(
            f"the last dimension must have size {self.dim}, got shape {tuple(z.shape)}"
        )

    def _check_kind(self, z: Tensor) -> None:
        """Raise for input that the formula cannot take; the kernels, tried before, take less."""
        if not z.is_floating_point():
            raise ValueError(f"z must be floating point, got {z.dtype}")
        if z.device != self.weight.device:
            raise ValueError(
                f"z is on {z.device} and the norm's weights are on {self.weight.device}; move one "
                f"of them: z.to({str(self.weight.device)!r}) or norm.to({str(z.device)!r})"
            )

    def _normalise(self, z: Tensor) -> Tensor:
        return rms_norm(z, self.weight, eps=self.eps)

    def extra_repr(self) -> str:
        fan = "" if self.init == "ones" else f", fan={self.fan}"
        return f"{self.dim}, eps={self.eps:g}, init={self.init!r}{fan}"


class LayerNorm(RMSNorm):
    """LayerNorm, with the arguments of `RMSNorm` and a bias that starts at 0."""

    _has_kernels = False
    bias: nn.Parameter

    def _add_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        super()._add_parameters(device, dtype)
        self.bias = nn.Parameter(torch.empty(self.dim, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Set every parameter to its starting value."""
        super().reset_parameters()
        nn.init.zeros_(self.bias)

    def _normalise(self, z: Tensor) -> Tensor:
        return layer_norm(z, self.weight, self.bias, eps=self.eps)


class _Gated(RMSNorm):
    """Adds the gate of eq. 5 to the norm that comes next in the method resolution order."""

    gate: nn.Parameter

    def _add_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        super()._add_parameters(device, dtype)
        self.gate = nn.Parameter(torch.empty(self.dim, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Set every parameter to its starting value."""
        super().reset_parameters()
        # As in the authors' code: small, so that the sigmoid starts near 0.5.
        _xavier_uniform_(self.gate, self.dim)

    def _normalise(self, z: Tensor) -> Tensor:
        return gated(z, super()._normalise, self.gate)


class GatedRMSNorm(_Gated, RMSNorm):
    """The norm of ReLA-g (eq. 5): ``sigmoid(gate * z) * RMSNorm(z)``.

    Arguments as for `RMSNorm`. The gate starts uniform in ``±sqrt(3 / dim)``.
    """


class GatedLayerNorm(_Gated, LayerNorm):
    """Row 8 of Table 1: ``sigmoid(gate * z) * LayerNorm(z)``, arguments as for `RMSNorm`."""


def _xavier_uniform_(tensor: Tensor, fan: int) -> None:
    """Xavier's uniform initialisation with fan in = fan out = ``fan``."""
    bound = math.sqrt(3 / fan)
    nn.init.uniform_(tensor, -bound, bound)


def build_norm(
    spec: AttentionSpec,
    dim: int,
    head_dim: int,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> RMSNorm | None:
    """The norm over the ``dim`` features of all heads together; None if the spec has none."""
    if spec.norm == "none":
        return None
    norms: dict[tuple[str, bool], type[RMSNorm]] = {
        ("rms", False): RMSNorm,
        ("rms", True): GatedRMSNorm,
        ("layer", False): LayerNorm,
        ("layer", True): GatedLayerNorm,
    }
    return norms[spec.norm, bool(spec.gate)](
        dim,
        eps=spec.norm_eps,
        init="ones" if spec.gain_init == "ones" else "xavier",
        fan=head_dim if spec.gain_init == "xavier-head" else None,
        device=device,
        dtype=dtype,
    )
