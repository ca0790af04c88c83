"""Wrong input to the module and to specs: ValueError with both values and the valid choices."""

import pytest
import torch

import relakit

EMBED, HEADS, BATCH, QUERIES, KEYS = 12, 4, 3, 5, 7

BAD_CONSTRUCTORS = {
    "heads": ((12, 5), {}, "num_heads=5 and embed_dim=12; choose one of 1, 2, 3, 4, 6, 12"),
    "no heads": ((12, 0), {}, "num_heads must be at least 1, got 0"),
    "kdim": ((12, 4), {"kdim": -3}, "kdim must be at least 1, got -3"),
    "dropout": ((12, 4), {"dropout": -0.1}, "between 0 and 1, got -0.1"),
    "attention": ((12, 4), {"attention": "rela"}, "'rela'; choose one of softmax.*rela-g-leaky"),
    "backend": ((12, 4), {"backend": "gpu"}, "unknown backend 'gpu'; choose one of sdpa"),
}


@pytest.mark.parametrize("case", BAD_CONSTRUCTORS)
def test_bad_constructor(case: str) -> None:
    sizes, options, message = BAD_CONSTRUCTORS[case]
    with pytest.raises(ValueError, match=message):
        relakit.MultiheadAttention(*sizes, **options)


BAD_INPUTS = {
    "query features": ({"query": (5, 3, 11)}, {}, "embed_dim = 12 features.*got 11"),
    "key features": ({"key": (7, 3, 12)}, {}, "kdim = 6 features.*got 12"),
    "value features": ({"value": (7, 3, 6)}, {}, "vdim = 10 features.*got 6"),
    "dimensions": ({"query": (5, 12)}, {}, r"all have 3 dimensions.*\(5, 12\)"),
    "four dimensions": ({"query": (1, 5, 3, 12)}, {}, r"all have 3 dimensions.*\(1, 5, 3, 12\)"),
    "batch": ({"query": (5, 2, 12)}, {}, r"same batch size.*\(5, 2, 12\).*\[positions, batch"),
    "positions": ({"value": (8, 3, 10)}, {}, r"key \(7, 3, 6\), value \(8, 3, 10\)"),
    "attn_mask shape": (
        {},
        {"attn_mask": torch.ones(5, 6, dtype=torch.bool)},
        r"\(5, 7\) \[queries, keys\] or \(12, 5, 7\) .*got \(5, 6\)",
    ),
    "attn_mask dtype": (
        {},
        {"attn_mask": torch.ones(5, 7, dtype=torch.int64)},
        "torch.bool .* or floating point.*got torch.int64",
    ),
    "padding shape": (
        {},
        {"key_padding_mask": torch.ones(7, 3, dtype=torch.bool)},
        r"\(3, 7\) \[batch, keys\].*got \(7, 3\)",
    ),
    "padding dtype": (
        {},
        {"key_padding_mask": torch.ones(3, 7, dtype=torch.uint8)},
        "key_padding_mask must be of dtype torch.bool .*got torch.uint8",
    ),
    "causal without mask": ({}, {"is_causal": True}, "needs it; .*generate_square_subsequent_mask"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input(case: str) -> None:
    changed, arguments, message = BAD_INPUTS[case]
    shapes = {"query": (5, 3, 12), "key": (7, 3, 6), "value": (7, 3, 10)} | changed
    module = relakit.MultiheadAttention(EMBED, HEADS, kdim=6, vdim=10)
    with pytest.raises(ValueError, match=message):
        module(*(torch.randn(shape) for shape in shapes.values()), **arguments)


def test_masks_of_unbatched_input() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS)
    x = torch.randn(5, EMBED)
    with pytest.raises(ValueError, match=r"shape \(5,\) \[keys\], got \(1, 5\)"):
        module(x, x, x, key_padding_mask=torch.zeros(1, 5, dtype=torch.bool))


def test_what_is_not_a_tensor() -> None:
    module = relakit.MultiheadAttention(EMBED, HEADS)
    x = torch.randn(5, EMBED)
    with pytest.raises(TypeError, match=r"attn_mask must be a torch\.Tensor, got list"):
        module(x, x, x, attn_mask=[[False] * 5] * 5)
    with pytest.raises(TypeError, match=r"key must be a torch\.Tensor, got ndarray"):
        module(x, x.numpy(), x)
    for batch_first in (True, False):
        module.batch_first = batch_first
        with pytest.raises(TypeError, match=r"query must be a torch\.Tensor, got list"):
            module(x.tolist(), x, x)


BAD_SPECS = {
    "norm": ({"norm": "batch"}, "unknown norm 'batch'; choose one of none, rms, layer"),
    "gain": ({"gain_init": "zeros"}, "unknown gain_init 'zeros'; choose one of ones, xavier"),
    "activation": ({"activation": "tanh"}, "unknown activation 'tanh'; choose one of softmax"),
    "threshold": ({"threshold": "free"}, "a number or 'learned', got 'free'"),
    "threshold tensor": ({"threshold": torch.zeros(4)}, "a number or 'learned', got tensor"),
    "eps of 0": ({"norm_eps": 0.0}, "norm_eps must be a finite number of at least 1e-37, got 0.0"),
    "tiny eps": ({"norm_eps": 1e-38}, "norm_eps must be a .* of at least 1e-37, got 1e-38"),
    "eps": ({"norm_eps": -1.0}, "norm_eps must be a finite number of at least 1e-37, got -1.0"),
    "gate": ({"gate": "yes"}, "gate must be True, False or None, got 'yes'"),
    "infinite threshold": (
        {"threshold": float("inf")},
        "threshold must be a finite number, got inf",
    ),
    "gate without norm": ({"norm": "none", "gate": True}, "needs a norm to gate"),
    "gain without norm": ({"norm": "none", "gate": False, "gain_init": "xavier"}, "needs a norm"),
    "threshold of softmax": (
        {"activation": "softmax", "threshold": "learned"},
        "threshold=learned has no meaning for activation 'softmax'.*relu, gelu, leaky_relu",
    ),
    "power of gelu": ({"activation": "gelu", "power": 2.0}, "power=2.0 has no meaning .*'gelu'"),
}


@pytest.mark.parametrize("case", BAD_SPECS)
def test_bad_spec(case: str) -> None:
    fields, message = BAD_SPECS[case]
    with pytest.raises(ValueError, match=message):
        relakit.AttentionSpec(**fields)


def test_spec_is_frozen_and_rejects_unknown_fields() -> None:
    with pytest.raises(TypeError, match="treshold"):
        relakit.AttentionSpec(treshold=1.0)
    with pytest.raises(AttributeError):
        relakit.AttentionSpec().gate = False
    with pytest.raises(TypeError):
        relakit.ATTENTIONS["mine"] = relakit.AttentionSpec()
