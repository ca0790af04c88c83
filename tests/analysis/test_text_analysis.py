"""Self-attention over texts, from what `relakit.capture` recorded of any model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import relakit
from relakit.analysis import (
    RecordedText,
    TextAnalysis,
    analyze_texts,
    first_sink_rate,
    head_diversity,
    null_rate,
    sparsity_rate,
)
from relakit.report import write_report

TOKENS = ("The", "old", "dog", "sees", "it", ".")


class TinyDecoder(nn.Module):
    """Two layers of self-attention of our own, which see so many tokens before and after them."""

    def __init__(self, before: int = 100, after: int = 0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            relakit.MultiheadAttention(16, 4, batch_first=True, window=(before, after))
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, x, x, need_weights=False)[0]
        return x


def recorded(model: nn.Module, tokens: tuple[str, ...] = TOKENS, batch: int = 1) -> RecordedText:
    torch.manual_seed(5)
    with torch.no_grad(), relakit.capture(model) as records:
        model(torch.randn(batch, len(tokens), 16))
    return RecordedText.from_records(records, tokens)


def analyzed(model: nn.Module, **options: Any) -> TextAnalysis:
    return analyze_texts([recorded(model.eval())], name="mine", keep=[0], **options)


def test_numbers_of_a_causal_model() -> None:
    torch.manual_seed(1)
    analysis = analyzed(TinyDecoder())
    result, (view,) = analysis.result, analysis.views
    assert (result.kind, result.attention, analysis.texts) == ("decoder", "rela-g", 1)
    assert analysis.layers == ("layers.0", "layers.1")
    assert (view.text, view.tokens) == ("The old dog sees it .", TOKENS)
    visible = torch.ones(6, 6, dtype=torch.bool).tril()
    for layer in range(2):
        weights = torch.from_numpy(view.weights[layer])
        np.testing.assert_allclose(result.sparsity[layer], sparsity_rate(weights, visible))
        np.testing.assert_allclose(result.null_rate[layer], null_rate(weights, visible))
        expected = head_diversity(weights, visible, 1.0).item()
        assert result.diversity["1"][layer] == pytest.approx(expected, rel=1e-5)
        sinks = np.array(result.first_sink[layer], dtype=float)
        np.testing.assert_allclose(sinks, first_sink_rate(weights, visible), rtol=1e-5)
    np.testing.assert_array_equal(view.seen[0], [(0, row + 1) for row in range(6)])


@pytest.mark.parametrize("is_causal", [True, False])
def test_a_token_alone_does_not_tell_who_sees_whom(is_causal: bool) -> None:
    model = TinyDecoder(after=0 if is_causal else 100).eval()
    texts = [recorded(model, ("Hi",)), recorded(model, ("Hi", "!"))]
    result = analyze_texts(texts, name="mine").result
    assert result.kind == ("decoder" if is_causal else "encoder")
    assert analyze_texts(texts, name="mine").texts == 2


def test_a_window_hides_what_is_far_away() -> None:
    view = analyzed(TinyDecoder(before=2)).views[0]
    first = view.seen[0, :, 0]
    assert first.tolist() == [0, 0, 0, 1, 2, 3]
    hidden = [view.weights[:, :, row, : first[row]] for row in range(6)]
    assert not any(part.any() for part in hidden)


def test_a_converted_model_that_sees_all(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    relakit.convert_attention(model, "softmax")
    analysis = analyzed(model, attention="softmax")
    assert analysis.result.kind == "encoder"
    assert not np.array(analysis.result.sparsity).any()
    assert analysis.result.end_sink is not None
    written = write_report([analysis], tmp_path / "report", figures=False)
    assert written.explored == 1
    assert "The old dog sees it ." in written.page.read_text(encoding="utf-8")


def test_texts_add_up_and_only_some_are_kept() -> None:
    model = TinyDecoder().eval()
    texts = [recorded(model), recorded(model, ("one",)), recorded(model, TOKENS[:3])]
    analysis = analyze_texts(iter(texts), name="mine", keep=[2])
    assert (analysis.texts, analysis.analysis.source_tokens) == (3, 10)
    assert [view.index for view in analysis.views] == [2]


def test_what_cannot_be_analyzed() -> None:
    model = TinyDecoder().eval()
    with pytest.raises(ValueError, match="there are no texts to analyze"):
        analyze_texts([], name="mine")
    with pytest.raises(ValueError, match=r"shape \[1, heads, 6, 6\], got \[2, 4, 6, 6\]"):
        analyze_texts([recorded(model, batch=2)], name="mine")
    with pytest.raises(ValueError, match="of text 1 no attention was recorded"):
        analyze_texts([RecordedText.from_records({}, TOKENS)], name="mine")
    one = recorded(model)
    shorter = RecordedText(one.read, one.layers[:1])
    with pytest.raises(ValueError, match="text 2 went through 1 layers of attention, those before"):
        analyze_texts([one, shorter], name="mine")
    named = RecordedText.from_records({}, ())
    with pytest.raises(ValueError, match="text 1 has no tokens"):
        analyze_texts([named], name="mine")
