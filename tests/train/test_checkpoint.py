"""Checkpoints: complete or not there, the last few, exact, averaged."""

import json
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from relakit.files.leftovers import temporary_name
from relakit.train.averaging import average_weights
from relakit.train.checkpoint import (
    Checkpoint,
    RunState,
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
    state = RunState(update=update)
    return save_checkpoint(folder, model, optimizer, state, keep=3, is_interrupted=is_interrupted)


def test_goes_on_exactly(tmp_path: Path) -> None:
    model, optimizer = trained(1)
    checkpoint = save_checkpoint(tmp_path, model, optimizer, RunState(update=3), keep=5)
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
    assert find_checkpoints(tmp_path)[-1].state() == RunState(update=100)


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
    shutil.copytree(tmp_path / "update-0000005", temporary_name(tmp_path / "update-0000010"))
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


@pytest.mark.parametrize(
    ("name", "moment", "problem"),
    [
        ("weight.mean", torch.zeros(2, 2), r"weight.mean has shape \(2, 2\) instead of \(2, 3\)"),
        ("weight.square", torch.zeros(6), r"weight.square has shape \(6,\) instead of \(2, 3\)"),
        ("bias.mean", torch.zeros(2).half(), "bias.mean has the type float16 instead of float32"),
        ("bias.step", torch.zeros(2), r"bias.step has shape \(2,\) instead of \(\)"),
        ("bias.square", None, "adam.safetensors has no bias.square"),
    ],
)  # fmt: skip
def test_moments_must_fit_their_weights(
    tmp_path: Path, name: str, moment: torch.Tensor | None, problem: str
) -> None:
    """Fused Adam does not look: it works beyond a buffer that is too short."""
    checkpoint = save(tmp_path, 1)
    path = checkpoint.folder / "adam.safetensors"
    moments = load_file(path)
    del moments[name]
    save_file(moments if moment is None else {**moments, name: moment}, path)
    with pytest.raises(ValueError, match=f"update-0000001 is damaged.*{problem}.*remove that"):
        restore(checkpoint, *trained(1))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"update": 99}, "is the state after update 99, and the folder's name says 1"),
        ({"update": True}, "update must be a whole number, got True"),
        ({"seconds": "long"}, "seconds must be a number, got 'long'"),
        ({"best_loss": False}, "best_loss must be a number or null, got False"),
        ({"recent": 1.5}, "recent must be a list of numbers, got 1.5"),
        ({"recent": [1.5, None]}, r"recent must be a list of numbers, got \[1.5, None\]"),
        ({"has_not_learnt": 1}, "has_not_learnt must be text or null, got 1"),
        ({"corpus": None}, "corpus must be text, got None"),
    ],
)
def test_the_state_is_of_this_update_and_has_the_right_types(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    checkpoint = save(tmp_path, 1)
    path = checkpoint.folder / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=f"update-0000001 is damaged.*{problem}"):
        restore(checkpoint, *trained(1))


@pytest.mark.parametrize("key", [field.name for field in fields(RunState)])
def test_the_state_has_all_keys(tmp_path: Path, key: str) -> None:
    """Without its update, a run would begin anew from trained weights."""
    checkpoint = save(tmp_path, 1)
    path = checkpoint.folder / "state.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key}))
    with pytest.raises(
        ValueError, match=f"update-0000001 is damaged.*state.json: {key} is missing"
    ):
        restore(checkpoint, *trained(1))


def test_the_state_may_have_whole_numbers_for_others(tmp_path: Path) -> None:
    checkpoint = save(tmp_path, 1)
    path = checkpoint.folder / "state.json"
    change = {"seconds": 7, "best_loss": 2, "recent": [1, 2.5]}
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    expected = RunState(update=1, seconds=7, best_loss=2, recent=[1, 2.5])
    assert restore(checkpoint, *trained(1)) == expected
