"""Uses of the Python modules that once were silently wrong, or failed with PyTorch's own errors."""

import sys
import textwrap
from typing import Final

from fault_rows import Row

from answers.case import Case

PROGRAM: Final = """
import sys, warnings
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    try:
        exec(sys.argv[1], {"__name__": "__main__"})
    except (TypeError, ValueError, OSError) as error:
        print(f"{type(error).__name__}: {error}")
for warning in given:
    print(f"{warning.category.__name__}: {warning.message}")
"""
"""Runs a few lines, and prints the error or the warnings that they cause."""
NESTED: Final = """
    from torch import nn
    attention = relakit.MultiheadAttention(16, 4, batch_first=True).eval()
    parts = [torch.randn(3, 16), torch.randn(5, 16)]
    x = torch.nested.nested_tensor(parts, layout=torch.{layout})
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    padding = torch.tensor([[False, True, False, False, False], [True, False, False, False, True]])
    output, _ = attention(x, x, x, {given})
    for part, hidden, one in zip(parts, padding, output.unbind()):
        n = len(part)
        alone, _ = attention(part, part, part, {alone})
        torch.testing.assert_close(one, alone)
    print("as each sequence alone, layout", output.layout)
"""
ENCODER: Final = "nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)"


def python(name: str, code: str, says: str) -> Case:
    """A few lines of Python that print their own outcome."""
    lines = "import torch, relakit\ntorch.manual_seed(0)\n" + textwrap.dedent(code)
    row = Row(name, lines, says, code=0)
    return Case(row, (sys.executable, "-c", PROGRAM), lambda folder, ended: True, is_split=False)


def nested(name: str, layout: str, given: str, alone: str) -> Case:
    code = NESTED.format(layout=layout, given=given, alone=alone)
    return python(
        f"nested tensors with {name}", code, f"as each sequence alone, layout torch.{layout}"
    )


PYTHON: Final = (
    nested("`attn_mask`, jagged", "jagged", "attn_mask=causal", "attn_mask=causal[:n, :n]"),
    nested("`attn_mask`, strided", "strided", "attn_mask=causal", "attn_mask=causal[:n, :n]"),
    nested(
        "`is_causal`",
        "jagged",
        "attn_mask=causal, is_causal=True, need_weights=False",
        "attn_mask=causal[:n, :n]",
    ),
    nested(
        "`key_padding_mask`", "jagged", "key_padding_mask=padding", "key_padding_mask=hidden[:n]"
    ),
    python(
        "`torch.fx.symbolic_trace` of a converted model",
        f"""
        from torch import nn
        model = {ENCODER}.eval()
        relakit.convert_attention(model)
        x = torch.randn(2, 5, 16)
        class Uses(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = model.self_attn
            def forward(self, x):
                return self.attention(x, x, x)[0]
        graph = torch.fx.symbolic_trace(Uses())
        torch.testing.assert_close(graph(x), Uses()(x))
        print("traced:", [node.target for node in graph.graph.nodes if node.op == "call_module"])
        """,
        "traced: ['attention']",
    ),
    python(
        "`_qkv_same_embed_dim` of a converted module",
        "print('it is', relakit.MultiheadAttention(16, 4)._qkv_same_embed_dim)",
        "it is True",
    ),
    python(
        "`attn_mask=causal_lower_right(3, 5)`",
        """
        from torch.nn.attention.bias import causal_lower_right
        attention = relakit.MultiheadAttention(16, 4, batch_first=True)
        query, key = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
        output, weights = attention(query, key, key, attn_mask=causal_lower_right(3, 5))
        hidden = torch.ones(3, 5, dtype=torch.bool).triu(3)
        torch.testing.assert_close(output, attention(query, key, key, attn_mask=hidden)[0])
        print("the mask that it stands for")
        """,
        "the mask that it stands for",
    ),
    python(
        "float64 input to a float32 module",
        "x = torch.randn(2, 5, 16).double()\nrelakit.MultiheadAttention(16, 4)(x, x, x)",
        "ValueError: query is torch.float64 and the module's weights are torch.float32; convert one of them: query.to(torch.float32) or module.to(torch.float64)",
    ),
    python(
        '`MultiheadAttention(32, 4, "rela-g")`',
        'relakit.MultiheadAttention(32, 4, "rela-g")',
        "TypeError: dropout must be a number, got 'rela-g'; pass the attention by name: attention='rela-g'",
    ),
    python(
        "`MultiheadAttention(32.0, 4)`",
        "relakit.MultiheadAttention(32.0, 4)",
        "TypeError: embed_dim must be a whole number (int), got 32.0; write 32",
    ),
    python(
        "`convert_attention` finds nothing",
        """
        from torch import nn
        class OwnAttention(nn.Linear):
            pass
        print(relakit.convert_attention(nn.Sequential(OwnAttention(2, 2))))
        """,
        "UserWarning: ...OwnAttention...",
    ),
    python(
        "`capture` finds nothing",
        """
        from torch import nn
        class OwnAttention(nn.Linear):
            pass
        model = nn.Sequential(OwnAttention(2, 2))
        with relakit.capture(model):
            model(torch.randn(1, 2))
        """,
        "UserWarning: capture recorded nothing: ...OwnAttention...",
    ),
    python(
        "`convert_attention` after an optimizer was built",
        f"""
        from torch import nn
        model = {ENCODER}
        optimizer = torch.optim.AdamW(model.parameters())
        relakit.convert_attention(model)
        """,
        "UserWarning: an optimizer (AdamW) was built before the conversion: it will not train the 2 parameters that conversion adds, such as self_attn.norm...; build it after converting, or give them to its add_param_group",
    ),
    python(
        "`convert_attention` after DistributedDataParallel",
        f"""
        import torch.distributed as dist
        from torch import nn
        dist.init_process_group("gloo", init_method="file:///proc/self/cwd/store", rank=0, world_size=1)
        model = nn.parallel.DistributedDataParallel({ENCODER})
        relakit.convert_attention(model)
        dist.destroy_process_group()
        """,
        "UserWarning: the model was wrapped in DistributedDataParallel before the conversion: gradients of the 2 parameters that conversion adds, such as module.self_attn.norm..., will not be shared between processes; convert first, wrap afterwards",
    ),
    python(
        "`load_model` and the random state",
        """
        from relakit.model import load_model
        before = torch.get_rng_state()
        load_model("model")
        print("unchanged:", torch.equal(before, torch.get_rng_state()))
        """,
        "unchanged: True",
    ),
)
