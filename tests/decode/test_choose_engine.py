"""Which engine a model gets: C++ where that computes what the model does, else PyTorch."""

import native_extension  # noqa: F401  (skips without it)
import pytest
from random_models import random_model

from relakit.decode.choose_engine import choose_engine
from relakit.decode.native_engine import NativeEngine
from relakit.decode.torch_engine import TorchEngine
from relakit.ops.native import extension


def test_native_where_it_can() -> None:
    assert isinstance(choose_engine(random_model()), NativeEngine)


def test_pytorch_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_engine(random_model("sparsemax")), TorchEngine)
    assert isinstance(choose_engine(random_model().bfloat16()), TorchEngine)
    monkeypatch.setenv(extension.BACKEND_VARIABLE, "reference")
    assert isinstance(choose_engine(random_model()), TorchEngine)


def test_bytes_only_in_native() -> None:
    with pytest.raises(ValueError, match=r"int8 needs .* encoder attention is 'sparsemax'"):
        choose_engine(random_model("sparsemax"), in_bytes=True)
