"""`MultiheadAttention`: PyTorch's module with a choice of attention."""

import torch
from torch import Tensor, nn

from relakit.nn.adapters import taken_over
from relakit.nn.arguments import (
    check_dtype,
    check_number,
    check_size,
    check_switch,
    check_usable,
)
from relakit.nn.cache import KeyValueCache
from relakit.nn.fused import attend_and_normalise
from relakit.nn.fx_leaf import make_leaf
from relakit.nn.mismatch import explain_failure
from relakit.nn.nested import forward_nested
from relakit.nn.norms import RMSNorm, build_norm
from relakit.nn.projection import project
from relakit.nn.threshold import build_threshold, current_threshold
from relakit.nn.variants import (
    ATTENTIONS,
    DEFAULT_ATTENTION,
    AttentionName,
    AttentionSpec,
    resolve_attention,
)
from relakit.ops.backends import BackendName, known_backend
from relakit.ops.precision import without_autocast
from relakit.ops.reach import Window, reach_of


def _do_nothing(module: nn.Module, args: object) -> None:
    """A hook."""


class NotFused(nn.Module):
    """Inside an attention module: makes `nn.TransformerEncoderLayer` keep calling that module.

    In eval mode without gradients, the layer would run a fused softmax kernel with the module's
    weights instead, unless some module inside it has a hook. So this module has one. It is never
    called: a hook on a module that is called would slow down its calls.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_forward_pre_hook(_do_nothing)


class MultiheadAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` with ReLA or another attention in place of softmax.

    Arguments, `forward` and the names in the state dict are the same as in
    `torch.nn.MultiheadAttention`; with ``attention="softmax"``, so are the results. The parameters
    that an attention adds are called ``norm.weight``, ``norm.gate``, ``norm.bias`` and
    ``threshold``.

    The norm works on the concatenated heads, before the output projection.

    The main differences from PyTorch's module: a query whose keys are all masked gets zeros, never
    NaN; nested tensors may have masks and gradients; and wrong arguments raise ValueError or
    TypeError. docs/conversion.md lists all differences.

    Args:
        embed_dim: the model's dimension.
        num_heads: number of heads; must divide ``embed_dim``.
        dropout: probability of dropping an attention weight in training.
        bias: whether the projections have a bias.
        add_bias_kv: append a learned key and value to every sequence.
        add_zero_attn: append a key and value of zeros.
        kdim: features of the keys; ``embed_dim`` if None.
        vdim: features of the values; ``embed_dim`` if None.
        batch_first: input and output are ``[batch, positions, features]`` instead of
            ``[positions, batch, features]``.
        device: device of the parameters.
        dtype: dtype of the parameters.
        attention: a name in `relakit.ATTENTIONS` or an `AttentionSpec`.
        backend: as for `relakit.attention`.
        kv_heads: number of key and value heads, which groups of query heads share; must divide
            ``num_heads``. The parameters are then named as in a module with ``kdim``.
        window: how far a query sees, as for `relakit.attention`.
    """

    attention: AttentionSpec
    backend: BackendName | None
    kv_heads: int
    window: Window
    norm: RMSNorm | None
    threshold: nn.Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        attention: AttentionName | AttentionSpec = DEFAULT_ATTENTION,
        backend: BackendName | None = None,
        kv_heads: int | None = None,
        window: Window = None,
    ) -> None:
        spec = resolve_attention(attention)
        known_backend(backend)
        _check_sizes(embed_dim, num_heads, kdim, vdim)
        reach_of(is_causal=False, window=window, align="upper_left", starts=None)
        _check_dropout(dropout)
        switches = {
            "bias": bias,
            "add_bias_kv": add_bias_kv,
            "add_zero_attn": add_zero_attn,
            "batch_first": batch_first,
        }
        for name, value in switches.items():
            check_switch(name, value, _hint_for_attention(value))
        check_usable(device)
        check_dtype(dtype)
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            device,
            dtype,
        )
        if kv_heads is not None and kv_heads != num_heads:
            _check_kv_heads(
                kv_heads, num_heads, add_bias_kv=add_bias_kv, add_zero_attn=add_zero_attn
            )
            share_heads(self, kv_heads, device=device, dtype=dtype)
        self.window = window
        self._install(spec, backend, device=device, dtype=dtype)

    @classmethod
    def from_torch(
        cls,
        module: nn.MultiheadAttention,
        attention: AttentionName | AttentionSpec = DEFAULT_ATTENTION,
        *,
        backend: BackendName | None = None,
    ) -> "MultiheadAttention":
        """A module with the projections, hooks, mode and settings of an existing one.

        The projections are shared, not copied: the parameters stay the same objects, so an
        optimizer that holds them keeps working. If the existing module is already relakit's, its
        norm and learned threshold are kept where the new attention has the same, and its backend
        unless another is given.
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise TypeError(
                f"module must be a torch.nn.MultiheadAttention, got {type(module).__name__}"
            )
        spec = resolve_attention(attention)
        known_backend(backend)
        if nn.utils.parametrize.is_parametrized(module):
            raise ValueError(
                "the attention module has parametrized weights, which cannot be taken over; remove "
                "them with torch.nn.utils.parametrize.remove_parametrizations first"
            )
        new = taken_over(module, cls)
        if isinstance(module, MultiheadAttention) and backend is None:
            backend = module.backend
        some = next(module.parameters())
        new._install(spec, backend, device=some.device, dtype=some.dtype)
        return new

    def _install(
        self,
        spec: AttentionSpec,
        backend: BackendName | None,
        *,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        """Add what the attention needs besides the projections."""
        old = self.__dict__.get("attention")  # if the module is converted a second time
        self.attention = spec
        self.backend = backend
        self.__dict__.setdefault("window", None)
        self.__dict__.setdefault("kv_heads", self.num_heads)
        make_leaf(self)
        self.register_module("not_fused", NotFused())
        if old is None or not old.has_norm_of(spec):
            norm = build_norm(spec, self.embed_dim, self.head_dim, device=device, dtype=dtype)
            self.register_module("norm", norm)
        if old is None or not spec.threshold == old.threshold == "learned":
            threshold = build_threshold(spec, self.num_heads, device=device, dtype=dtype)
            self.register_parameter("threshold", threshold)

    def _reset_parameters(self) -> None:
        super()._reset_parameters()
        # The parent's constructor calls this method before either exists.
        norm, threshold = getattr(self, "norm", None), getattr(self, "threshold", None)
        if norm is not None:
            norm.reset_parameters()
        if threshold is not None:
            nn.init.zeros_(threshold)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend, with the arguments and results of `torch.nn.MultiheadAttention.forward`.

        With ``batch_first``, all three inputs may be nested tensors. Masks then have the sizes of
        the longest sequences, and the output has the query's layout.

        Args:
            query: ``[queries, batch, embed_dim]``; ``[batch, queries, embed_dim]`` with
                ``batch_first``; ``[queries, embed_dim]`` unbatched.
            key: the same with ``keys`` and ``kdim``.
            value: the same with ``keys`` and ``vdim``.
            key_padding_mask: ``[batch, keys]``, unbatched ``[keys]``. Boolean: True = ignore the
                key. Floating point: added to the key's scores.
            need_weights: return the weights too.
            attn_mask: ``[queries, keys]`` or ``[batch * heads, queries, keys]``. Boolean: True = do
                not attend. Floating point: added to the scores. Or ``causal_upper_left(queries,
                keys)`` or ``causal_lower_right(queries, keys)`` of `torch.nn.attention.bias`.
            average_attn_weights: return the mean of the weights over heads.
            is_causal: a hint that ``attn_mask``, which must be given, is the causal mask. As in
                PyTorch, the hint replaces the mask if no weights are needed and there is no
                ``key_padding_mask``. With a cache it needs no mask: each query sees the keys up to
                its own, and the last query sees all keys.
            cache: holds the keys and values of earlier calls. Those of this call are appended, and
                the queries, which are the last positions, attend to all of them. Masks must cover
                all of them, too.

        Returns:
            The output, shaped like ``query``, and the weights or None: ``[batch, queries, keys]``
            if averaged, else ``[batch, heads, queries, keys]``; without ``batch`` if unbatched.
        """
        if getattr(query, "is_nested", False):  # `project` reports a list
            if cache is not None:
                raise ValueError("a cache holds sequences of one length; pad nested tensors")
            return forward_nested(
                self,
                query,
                key,
                value,
                key_padding_mask=key_padding_mask,
                need_weights=need_weights,
                attn_mask=attn_mask,
                average_attn_weights=average_attn_weights,
                is_causal=is_causal,
            )
        try:
            projections = project(
                self,
                query,
                key,
                value,
                key_padding_mask=key_padding_mask,
                need_weights=need_weights,
                attn_mask=attn_mask,
                is_causal=is_causal,
                cache=cache,
            )
            # The projections follow autocast; everything between them sets its own precision.
            with without_autocast(query):
                mixed, weights = attend_and_normalise(
                    projections.tensors,
                    heads=self.num_heads,
                    spec=self.attention,
                    threshold=current_threshold(self.attention, self.threshold),
                    norm=self.norm,
                    attn_mask=projections.attn_mask,
                    dropout_p=self.dropout if self.training else 0.0,
                    is_causal=projections.is_causal,
                    positions=projections.positions,
                    need_weights=need_weights,
                    backend=self.backend,
                    reach=projections.reach,
                )
            output: Tensor = self.out_proj(mixed)
        except RuntimeError:
            explain_failure(self, {"query": query, "key": key, "value": value}, need_weights)
            raise
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        if query.dim() == 2:
            output = output.squeeze(0)
            weights = None if weights is None else weights.squeeze(0)
        return output, weights

    def extra_repr(self) -> str:
        text = f"{self.embed_dim}, num_heads={self.num_heads}, attention={self.attention}"
        if self.kv_heads != self.num_heads:
            text += f", kv_heads={self.kv_heads}"
        return text if self.window is None else f"{text}, window={self.window}"


def _check_sizes(embed_dim: int, num_heads: int, kdim: int | None, vdim: int | None) -> None:
    check_size("embed_dim", embed_dim)
    check_size("num_heads", num_heads)
    for name, size in {"kdim": kdim, "vdim": vdim}.items():
        if size is not None:
            check_size(name, size)
    if embed_dim % num_heads != 0:
        divisors = [n for n in range(1, embed_dim + 1) if embed_dim % n == 0]
        raise ValueError(
            f"num_heads must divide embed_dim, got num_heads={num_heads} and "
            f"embed_dim={embed_dim}; choose one of {', '.join(map(str, divisors))}"
        )


def _check_kv_heads(
    kv_heads: int, num_heads: int, *, add_bias_kv: bool, add_zero_attn: bool
) -> None:
    check_size("kv_heads", kv_heads)
    if num_heads % kv_heads != 0:
        raise ValueError(
            f"kv_heads must divide num_heads, got kv_heads={kv_heads} and num_heads={num_heads}"
        )
    if add_bias_kv or add_zero_attn:
        name = "add_bias_kv" if add_bias_kv else "add_zero_attn"
        raise ValueError(f"kv_heads={kv_heads} and {name}=True do not go together; leave one out")


def share_heads(
    module: MultiheadAttention,
    kv_heads: int,
    *,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> None:
    """Give keys and values fewer heads: new weights, under the names PyTorch uses with ``kdim``."""
    size, shared = module.embed_dim, kv_heads * module.head_dim
    shapes = {
        "q_proj_weight": (size, size),
        "k_proj_weight": (shared, module.kdim),
        "v_proj_weight": (shared, module.vdim),
    }
    for name, shape in shapes.items():
        empty = torch.empty(shape, device=device, dtype=dtype)
        module.register_parameter(name, nn.Parameter(empty))
    module.register_parameter("in_proj_weight", None)
    if module.in_proj_bias is not None:
        empty = torch.empty(size + 2 * shared, device=device, dtype=dtype)
        module.in_proj_bias = nn.Parameter(empty)
    module._qkv_same_embed_dim = False
    module.kv_heads = kv_heads
    module._reset_parameters()


def _check_dropout(dropout: float) -> None:
    check_number("dropout", dropout, _hint_for_attention(dropout))
    if not 0.0 <= dropout <= 1.0:
        raise ValueError(f"dropout must be between 0 and 1, got {dropout}")


def _hint_for_attention(value: object) -> str:
    """The hint for an attention that was passed in place of another argument."""
    if isinstance(value, AttentionSpec):
        return "; pass the attention by name: attention=..."
    if isinstance(value, str) and value in ATTENTIONS:
        return f"; pass the attention by name: attention={value!r}"
    return ""
