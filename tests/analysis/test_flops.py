"""Table 4's formulas at the numbers that are known."""

import pytest

from relakit.analysis import rela_g_flops, softmax_flops


@pytest.mark.parametrize(
    ("length", "softmax", "rela_g"), [(100, 239_200, 592_100), (1000, 23_992_000, 13_121_000)]
)
def test_transformer_base(length: int, softmax: int, rela_g: int) -> None:
    assert softmax_flops(length, heads=8) == softmax
    assert rela_g_flops(length, heads=8, dim=512) == rela_g
