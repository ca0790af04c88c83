"""Wrong uses of the Python interface: each with a message in the words of our arguments.

Shapes, masks and specs that do not fit have tables of their own, in tests/nn/test_module_errors.py,
tests/nn/test_nested.py and tests/ops/test_attention.py.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import relakit
from relakit.model import load_model

EMBED, HEADS, BATCH, POSITIONS = 12, 4, 2, 5

TORCH_WORDING = re.compile(
    r"mat1|mat2|could not infer|expected (scalar|all tensors|device)|invalid combination|"
    r"position \d|not supported between|unsupported operand|has no attribute|ambiguous|"
    r"shape '\[|argument '",
    re.IGNORECASE,
)


def build(**options: Any) -> relakit.MultiheadAttention:
    return relakit.MultiheadAttention(EMBED, HEADS, batch_first=True, **options)


def run(*inputs: Any, **arguments: Any) -> object:
    return build()(*inputs, **arguments)


def batch(**options: Any) -> Tensor:
    return torch.randn(BATCH, POSITIONS, EMBED).to(**options)


def itself(x: Any, **arguments: Any) -> object:
    return run(x, x, x, **arguments)


def heads(*shape: int) -> Tensor:
    return torch.randn(shape or (BATCH, HEADS, POSITIONS, 8))


def attend(x: Any = None, **arguments: Any) -> object:
    x = heads() if x is None else x
    return relakit.attention(x, x, x, **arguments)


def mixed_module() -> nn.Module:
    module = build()
    module.out_proj.half()
    return module


def normalise(z: Any, **arguments: Any) -> object:
    return relakit.GatedRMSNorm(8)(z, **arguments)


def layer() -> nn.Module:
    return nn.TransformerEncoderLayer(EMBED, HEADS, EMBED)


def capture(model: Any, **arguments: Any) -> None:
    with relakit.capture(model, **arguments):
        pass


MHA = relakit.MultiheadAttention
NO_BOOL = "a whole number (int), got True"
CAUSAL = torch.ones(POSITIONS, POSITIONS, dtype=torch.bool).triu(1)

WRONG_USES: dict[str, tuple[Callable[[], object], str]] = {
    # The constructor
    "attention for dropout": (
        lambda: MHA(32, 4, "rela-g"),
        "dropout must be a number, got 'rela-g'; pass the attention by name: attention='rela-g'",
    ),
    "attention for bias": (
        lambda: MHA(32, 4, 0.1, "rela-g"),
        "bias must be True or False, got 'rela-g'; pass the attention by name: attention='rela-g'",
    ),
    "spec for dropout": (
        lambda: MHA(32, 4, relakit.AttentionSpec()),
        "pass the attention by name: attention=...",
    ),
    "embed_dim 32.0": (
        lambda: MHA(32.0, 4),
        "embed_dim must be a whole number (int), got 32.0; write 32",
    ),
    "embed_dim as text": (lambda: MHA("32", 4), "embed_dim must be a whole number (int), got '32'"),
    "num_heads 4.0": (
        lambda: MHA(32, 4.0),
        "num_heads must be a whole number (int), got 4.0; write 4",
    ),
    "num_heads None": (lambda: MHA(32, None), "num_heads must be a whole number (int), got None"),
    "num_heads True": (lambda: MHA(32, True), f"num_heads must be {NO_BOOL}"),
    "kdim as text": (lambda: MHA(32, 4, kdim="8"), "kdim must be a whole number (int), got '8'"),
    "dropout None": (lambda: MHA(32, 4, None), "dropout must be a number, got None"),
    "batch_first as text": (
        lambda: MHA(32, 4, batch_first="no"),
        "batch_first must be True or False, got 'no'",
    ),
    "dtype as text": (
        lambda: MHA(32, 4, dtype="float32"),
        "dtype must be a torch.dtype such as torch.float32, got 'float32'",
    ),
    "dtype int64": (
        lambda: MHA(32, 4, dtype=torch.int64),
        "dtype must be floating point",
    ),
    "no such device": (
        lambda: MHA(32, 4, device="gpu"),
        "device 'gpu' cannot be used: there is no such kind; choose another, such as 'cpu'",
    ),
    "capital letters": (lambda: MHA(32, 4, attention="ReLA_g"), "did you mean 'rela-g'?"),
    "attention None": (lambda: MHA(32, 4, attention=None), "unknown attention None; choose one of"),
    "class for spec": (lambda: MHA(32, 4, attention=relakit.AttentionSpec), "unknown attention"),
    "from_torch of a Linear": (
        lambda: MHA.from_torch(nn.Linear(2, 2)),
        "module must be a torch.nn.MultiheadAttention, got Linear",
    ),
    # The module's forward
    "float64 input": (
        lambda: itself(batch(dtype=torch.float64)),
        "query is torch.float64 and the module's weights are torch.float32; convert one of them: "
        "query.to(torch.float32) or module.to(torch.float64)",
    ),
    "float64 key": (
        lambda: run(batch(), *[batch(dtype=torch.float64)] * 2),
        "key is torch.float64 and the module's weights are torch.float32",
    ),
    "half input": (
        lambda: itself(batch(dtype=torch.float16)),
        "query is torch.float16 and the module's weights are torch.float32",
    ),
    "token ids": (
        lambda: itself(torch.ones(BATCH, POSITIONS, EMBED, dtype=torch.int64)),
        "got torch.int64 (token ids go through an nn.Embedding first)",
    ),
    "complex input": (
        lambda: itself(batch(dtype=torch.complex64)),
        "query must be floating point, of dtype torch.float32 as the module's weights, got "
        "torch.complex64",
    ),
    "input on another device": (
        lambda: itself(batch(device="meta")),
        "query is on meta and the module's weights are on cpu; move one of them: query.to('cpu')",
    ),
    "attn_mask on another device": (
        lambda: itself(batch(), attn_mask=CAUSAL.to("meta")),
        "attn_mask is on meta and query on cpu; move it with attn_mask.to('cpu')",
    ),
    "key_padding_mask on another device": (
        lambda: itself(
            batch(), key_padding_mask=torch.zeros(BATCH, POSITIONS, device="meta").bool()
        ),
        "key_padding_mask is on meta and query on cpu",
    ),
    "sparse input": (
        lambda: itself(batch().to_sparse()),
        "query has the layout torch.sparse_coo; pass an ordinary tensor: query.to_dense()",
    ),
    "mask for need_weights": (
        lambda: run(*[batch()] * 3, None, CAUSAL),
        "need_weights must be True or False, got a tensor of shape (5, 5); pass masks by name",
    ),
    "parameters of two dtypes": (
        lambda: mixed_module()(*[batch()] * 3),
        "in_proj_weight is torch.float32, out_proj.weight is torch.float16; bring them to one",
    ),
    "an array": (lambda: itself(batch().numpy()), "query must be a torch.Tensor, got ndarray"),
    "None": (lambda: run(batch(), None, None), "key must be a torch.Tensor, got NoneType"),
    "lengths for key_padding_mask": (
        lambda: itself(batch(), key_padding_mask=torch.tensor([5, 3])),
        "key_padding_mask must be of dtype torch.bool (True = do not attend)",
    ),
    "True for attn_mask": (
        lambda: itself(batch(), attn_mask=True),
        "attn_mask must be a torch.Tensor, got bool",
    ),
    # The function
    "dropout_p as text": (
        lambda: attend(dropout_p="0.1"),
        "dropout_p must be a number between 0 and 1, got '0.1'",
    ),
    "dropout_p None": (
        lambda: attend(dropout_p=None),
        "dropout_p must be a number between 0 and 1, got None",
    ),
    "dropout_p with a seed": (
        lambda: attend(dropout_p=(0.5, 3)),
        "dropout_p must be a number between 0 and 1, got (0.5, 3)",
    ),
    "scale as text": (
        lambda: attend(scale="x"),
        "scale must be a number, or None for dim ** -0.5, got 'x'",
    ),
    "name of Table 1 as activation": (
        lambda: attend(activation="rela-g"),
        "names such as 'rela-g' are for MultiheadAttention and convert_attention",
    ),
    "integers": (lambda: attend(heads().long()), "query must be floating point"),
    "mask on another device": (
        lambda: attend(attn_mask=CAUSAL.to("meta")),
        "attn_mask is on meta and query on cpu; move it with attn_mask.to('cpu')",
    ),
    "threshold on another device": (
        lambda: attend(threshold=torch.zeros(HEADS, device="meta")),
        "threshold is on meta and query on cpu",
    ),
    "threshold as text": (
        lambda: attend(threshold="learned"),
        "threshold must be a number or a tensor, got 'learned'",
    ),
    "sparse weights": (
        lambda: attend(need_weights="csr"),
        "need_weights must be True or False, got 'csr'; relakit.attention_details takes",
    ),
    "form of weights": (
        lambda: relakit.attention_details(*[heads()] * 3, weights="sparse"),
        "weights must be 'dense', 'csr' or None, got 'sparse'",
    ),
    # Conversion and capture
    "convert a class": (
        lambda: relakit.convert_attention(nn.Transformer),
        "model must be a torch.nn.Module, got type",
    ),
    "convert the module itself": (
        lambda: relakit.convert_attention(nn.MultiheadAttention(8, 2)),
        "use relakit.MultiheadAttention.from_torch(module, attention)",
    ),
    "pattern for attention": (
        lambda: relakit.convert_attention(layer(), "self_attn"),
        "unknown attention 'self_attn'; choose one of softmax",
    ),
    "where is a module": (
        lambda: relakit.convert_attention(layer(), where=nn.Linear(2, 2)),
        "where must be None, a pattern, a list of patterns or a function, got a module, Linear; "
        "give its name",
    ),
    "where with one argument": (
        lambda: relakit.convert_attention(layer(), where=lambda name: True),
        "where must be a function of two arguments, a module's name and the module, got one with "
        "(name)",
    ),
    "where is a number": (
        lambda: relakit.convert_attention(layer(), where=3),
        "where must be None, a pattern, a list of patterns or a function, got 3",
    ),
    "capture of None": (lambda: capture(None), "model must be a torch.nn.Module, got NoneType"),
    "capture with a typing error": (
        lambda: capture(layer(), where="self_atn"),
        "no attention module is called 'self_atn'; the model has self_attn",
    ),
    "capture where a module": (
        lambda: capture(layer(), where=nn.Linear(2, 2)),
        "got a module, Linear; give its name",
    ),
    # Norms and specs
    "dim as text": (lambda: relakit.RMSNorm("8"), "dim must be a whole number (int), got '8'"),
    "dim as a tuple": (
        lambda: relakit.GatedRMSNorm((8,)),
        "dim must be a whole number (int), got (8,)",
    ),
    "eps as text": (lambda: relakit.LayerNorm(8, eps="tiny"), "eps must be a number, got 'tiny'"),
    "fan 8.5": (lambda: relakit.RMSNorm(8, fan=8.5), "fan must be a whole number (int), got 8.5"),
    "norm of int64": (
        lambda: relakit.GatedLayerNorm(8, dtype=torch.int64),
        "dtype must be floating point",
    ),
    "norm of integers": (
        lambda: normalise(torch.ones(2, 8, dtype=torch.int64)),
        "z must be floating point, got torch.int64",
    ),
    "norm of a list": (lambda: normalise([1.0] * 8), "z must be a torch.Tensor, got list"),
    "norm on another device": (
        lambda: normalise(torch.randn(2, 8, device="meta")),
        "z is on meta and the norm's weights are on cpu; move one of them: z.to('cpu')",
    ),
    "heads that do not divide dim": (
        lambda: normalise(torch.randn(2, 8), heads=3),
        "heads must divide dim, got heads=3 and dim=8",
    ),
    "power as text": (lambda: relakit.AttentionSpec(power="2"), "power must be a number, got '2'"),
    "norm None": (
        lambda: relakit.AttentionSpec(norm=None),
        "unknown norm None; choose one of none, rms, layer",
    ),
    "gate as a tensor": (
        lambda: relakit.AttentionSpec(gate=torch.ones(2)),
        "gate must be True, False or None, got tensor",
    ),
    # Models on disk
    "no such folder": (
        lambda: load_model("no/such"),
        "no/such is no model directory: there is no such folder",
    ),
    "file for a folder": (
        lambda: load_model(__file__),
        "is no model directory: it is a file; name its folder",
    ),
    "load_model on no device": (
        lambda: load_model("no/such", device="gpu"),
        "device 'gpu' cannot be used: there is no such kind; choose another, such as 'cpu'",
    ),
    "load on no device": (
        lambda: relakit.load("no/such", device="gpu"),
        "unknown device 'gpu'; choose",
    ),
    "precision": (
        lambda: relakit.load("no/such", precision="fp8"),
        "unknown precision 'fp8'; choose one of fp32, bf16, int8, auto",
    ),
}


@pytest.mark.parametrize("case", WRONG_USES)
def test_wrong_use(case: str) -> None:
    use, message = WRONG_USES[case]
    with pytest.raises((ValueError, TypeError, FileNotFoundError)) as caught:
        use()
    assert message in str(caught.value)
    assert not TORCH_WORDING.search(str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_failure_that_is_not_ours_comes_through() -> None:
    """An error in a hook, for example, is not explained away."""
    module = build()

    def fail(*_: object) -> None:
        raise RuntimeError("from a hook")

    module.out_proj.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="from a hook"):
        module(*[batch()] * 3)


def test_autocast_converts_what_does_not_fit() -> None:
    module = build()
    with torch.autocast("cpu", torch.bfloat16):
        output, _ = module(*[batch(dtype=torch.float16)] * 3)
    assert output.isfinite().all()


def test_an_empty_model_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"it has no config\.json"):
        relakit.load(tmp_path)
