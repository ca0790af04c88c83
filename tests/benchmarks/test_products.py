"""The benchmark of matrix products: every contender computes the product that is timed."""

import pytest
import torch

import products
from relakit.ops.native import extension

if reasons := extension.why_unavailable():
    pytest.skip("; ".join(reasons), allow_module_level=True)


def test_all_compute_the_same() -> None:
    x, weight = torch.randn(6, 40), torch.randn(70, 40)
    expected = x @ weight.t()
    isa = extension.choose_isa()
    for in_bytes, tolerance in ((False, 1e-4), (True, 0.5)):
        found = torch.empty(6, 128)
        layer = products.packed(weight, isa, in_bytes=in_bytes)
        layer.multiply(isa, 1, x.data_ptr(), 6, found.data_ptr())
        assert float((found[:, :70] - expected).abs().max()) < tolerance
        assert bool((found[:, 70:] == 0).all())


def test_weights_for_other_kernels_are_refused() -> None:
    isas = extension.load_extension().usable_isas()
    x, y, weight = torch.randn(1, 8), torch.empty(1, 64), torch.randn(8, 8)
    if len(isas) < 2 or isas[0] != "avx512":
        pytest.skip("only where kernels lay out weights in different ways")
    layer = products.packed(weight, isas[1], in_bytes=False)
    with pytest.raises(ValueError, match=f"the weights were not packed for {isas[0]}"):
        layer.multiply(isas[0], 1, x.data_ptr(), 1, y.data_ptr())


def test_a_line_for_each_layer_and_contender(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(products, "SIZES", {"small": (16, 32)})
    monkeypatch.setattr(products, "VOCABULARY", 70)
    monkeypatch.setattr(products, "LOOPS", 10)
    monkeypatch.setattr(products, "COLD_BYTES", 1 << 12)
    found = products.measure("small", rounds=1)
    assert len(found) == 2 * 5 * 3
    assert {product.contender for product in found} == {"fp32", "int8", "torch.mm"}
    assert all(product.speed > 0 and product.share > 0 for product in found)
    products.show(found)
    assert "feed-forward, inner" in capsys.readouterr().out
