"""Checkpoints: complete or not there, the last few, exact, averaged."""

import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from relakit.train.averaging import average_weights
from relakit.train.checkpoint import (
    Checkpoint,
    find_checkpoints,
    remove_interrupted,
    restore,
    save_checkpoint,
)


def trained(seed: int, steps: int = 3) -> tuple[nn.Module, torch.optim.Adam]:
    torch.manual_seed(seed)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for _ in range(steps):
        step(model, optimizer)
    return model, optimizer


def step(model: nn.Module, optimizer: torch.optim.Adam) -> None:
    optimizer.zero_grad()
    model(torch.ones(1, 3)).square().sum().backward()
    optimizer.step()


def save(folder: Path, update: int, *, is_interrupted: bool = False) -> Checkpoint:
    model, optimizer = trained(update)
    state = {"update": update}
    return save_checkpoint(
        folder, update, model, optimizer, state, keep=3, is_interrupted=is_interrupted
    )


def test_goes_on_exactly(tmp_path: Path) -> None:
    model, optimizer = trained(1)
    checkpoint = save_checkpoint(tmp_path, 3, model, optimizer, {}, keep=5)
    other, other_optimizer = trained(2)
    restore(checkpoint, other, other_optimizer)
    for _ in range(4):
        step(model, optimizer)
        step(other, other_optimizer)
    assert torch.equal(model.weight, other.weight)
    assert torch.equal(model.bias, other.bias)


def test_keeps_the_last_ones(tmp_path: Path) -> None:
    for update in (5, 10, 15, 20, 100):
        save(tmp_path, update)
    assert [c.update for c in find_checkpoints(tmp_path)] == [15, 20, 100]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "update-0000015", "update-0000020", "update-0000100",
    ]  # fmt: skip
    assert find_checkpoints(tmp_path)[-1].state() == {"update": 100}


def test_those_of_a_signal_are_apart(tmp_path: Path) -> None:
    for update in (5, 10, 15):
        save(tmp_path, update)
    save(tmp_path, 17, is_interrupted=True)
    assert [c.update for c in find_checkpoints(tmp_path)] == [5, 10, 15]
    assert [c.update for c in find_checkpoints(tmp_path, interrupted=True)] == [5, 10, 15, 17]
    remove_interrupted(tmp_path)
    assert [c.update for c in find_checkpoints(tmp_path, interrupted=True)] == [5, 10, 15]


def test_an_unfinished_one_is_not_seen(tmp_path: Path) -> None:
    save(tmp_path, 5)
    shutil.copytree(tmp_path / "update-0000005", tmp_path / ".update-0000010.unfinished")
    assert [c.update for c in find_checkpoints(tmp_path)] == [5]
    save(tmp_path, 10)  # the remains of the earlier attempt are no obstacle
    assert [c.update for c in find_checkpoints(tmp_path)] == [5, 10]


def test_average(tmp_path: Path) -> None:
    checkpoints = [save(tmp_path, update) for update in (1, 2, 3)]
    mean = sum(trained(update)[0].weight.detach().double() for update in (1, 2, 3)) / 3
    assert torch.equal(average_weights(checkpoints)["weight"], mean.float())
    single = average_weights(checkpoints[:1])
    assert torch.equal(single["weight"], trained(1)[0].weight.detach())
    with pytest.raises(ValueError, match="no checkpoints"):
        average_weights([])


def test_broken_files_are_named(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, 1)
    model, optimizer = trained(1)
    weights = checkpoint.folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"weights\.safetensors .*truncated or no safetensors"):
        restore(checkpoint, model, optimizer)
    (checkpoint.folder / "state.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"state\.json is no JSON file"):
        checkpoint.state()
