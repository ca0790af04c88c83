"""Tensors on disk: byte for byte what the safetensors library writes, and it reads them."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from relakit.model.tensor_file import tensor_bytes, write_tensors

TENSORS = {
    "b.weight": torch.arange(6.0).reshape(2, 3),
    "a.step": torch.tensor(7),
    "ä": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "nothing": torch.zeros(0, 4),
    "one": torch.tensor(1.0),
    "flags": torch.tensor([True, False, True]),
    "half": torch.ones(3, dtype=torch.float16),
    "double": torch.ones(2, dtype=torch.float64),
}


def test_as_the_library_writes_them(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", TENSORS)
    assert (tmp_path / "file").read_bytes() == save(TENSORS)


def test_views_and_transposed_tensors(tmp_path: Path) -> None:
    matrix = torch.arange(12.0).reshape(3, 4)
    views: dict[str, Tensor] = {"t": matrix.t(), "row": matrix[1], "column": matrix[:, 2]}
    write_tensors(tmp_path / "file", views)
    loaded = load_file(tmp_path / "file")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in views.items())


def test_parameters_need_no_detaching(tmp_path: Path) -> None:
    layer = torch.nn.Linear(3, 2)
    write_tensors(tmp_path / "file", dict(layer.named_parameters()))
    assert torch.equal(load_file(tmp_path / "file")["weight"], layer.weight)


def test_how_large_they_are() -> None:
    assert tensor_bytes({"a": torch.zeros(3, 2), "b": torch.zeros(5, dtype=torch.bfloat16)}) == 34


def test_a_type_without_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"z has the type torch\.complex64"):
        write_tensors(tmp_path / "file", {"z": torch.zeros(1, dtype=torch.complex64)})
    assert list(tmp_path.iterdir()) == []
