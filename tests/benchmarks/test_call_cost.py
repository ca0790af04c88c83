"""Cost of calls: what a worker times, and what the benchmark makes of its answers."""

import json
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

import call_cost
import call_cost_worker
from call_cost import CallCase, CallCost, CallSettings
from relakit.bench.rounds import CaseRounds, ContenderError, Turn

# Times by checkout and system: the script is told by the name of its log which one it is.
FAKE = """
import json, os, sys
TIMES = {"after": {"relakit": 2.0, "torch": 6.0}, "before": {"relakit": 3.0, "torch": 6.0}}
log = os.readlink("/proc/self/fd/2")
times = TIMES[os.path.basename(log).removesuffix(".log")]
for line in sys.stdin:
    request = json.loads(line)
    answer = {"ok": True}
    if request["do"] == "setup":
        answer = {"about": "fake"}
    if request["do"] == "prepare" and request["case"]["dropout"] and FAILS:
        answer = {"error": "RuntimeError: differs from the reference"}
    if request["do"] == "run":
        answer = {"seconds": 4 * times[request["who"]], "calls": 4}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A place with an environment: this Python's."""
    python = tmp_path / "other" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return tmp_path / "other"


def with_fake_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    script = tmp_path / "fake.py"
    script.write_text(f"FAILS = {fails}\n{FAKE}")
    monkeypatch.setattr(call_cost, "SCRIPT", script)


def run(*arguments: str | Path) -> Result:
    options = ("--what", "function", "--passes", "forward", "--rounds", "3", "--processes", "2")
    return CliRunner().invoke(call_cost.app, [*options, *map(str, arguments)])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the fake asks /proc who it is")
def test_two_checkouts_in_one_run(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_fake_worker(tmp_path, monkeypatch, fails=False)
    path = tmp_path / "out" / "calls.json"
    result = run("--against", checkout, "--json", path)
    assert result.exit_code == 0, result.output
    document = json.loads(path.read_text())
    assert len(document["results"]) == 4 * 2, "shapes, dropout"
    for row in document["results"]:
        assert row["seconds"] == 2.0
        assert (row["before / after"], row["torch / after"]) == (1.5, 3.0)
        assert (row["torch / before"], row["torch before / after"]) == (2.0, 1.0)
    assert [len(case["rounds"]) for case in document["rounds"]] == [3] * 8
    assert {contender["label"] for contender in document["contenders"]} == {
        "after relakit", "after torch", "before relakit", "before torch",
    }  # fmt: skip
    [line] = [x.split() for x in result.stdout.splitlines() if " 8x32 " in x][:1]
    assert line[4:6] == ["2000000", "3.00"]
    resumed = run("--against", checkout, "--json", path, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert json.loads(path.read_text()) == document, "measured again, or lost"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the fake asks /proc who it is")
def test_a_wrong_result_has_no_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_fake_worker(tmp_path, monkeypatch, fails=True)
    error = run().exception
    assert isinstance(error, ContenderError)
    assert "after relakit: RuntimeError: differs from the reference" in str(error)


def test_without_another_checkout_there_is_nothing_before() -> None:
    case = CallCase(what="module", passes="both", batch=1, positions=8, dropout=0.1)
    turns = {"after relakit": Turn(1.0, {"calls": 2}), "after torch": Turn(3.0, {"calls": 4})}
    cost = CallCost.of(case, CaseRounds(str(case), [turns]))
    assert cost.torch is not None
    assert cost.torch.median == 1.5
    assert cost.before is cost.control is cost.torch_to_before is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--what", "layer"), "unknown what 'layer'; choose one of function, module"),
        (("--passes", "backward"), "unknown passes 'backward'; choose one of forward, both"),
        (("--rounds", "0"), "rounds must be at least 1, got 0"),
        (("--against", "nowhere"), "nowhere has no environment: there is no nowhere/.venv"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, ValueError)
    assert message in str(error)


@pytest.mark.parametrize("what", call_cost.WHAT)
@pytest.mark.parametrize("passes", call_cost.PASSES)
def test_the_worker_times_every_kind_of_call(what: str, passes: str) -> None:
    worker = call_cost_worker.Worker()
    case = {"what": what, "passes": passes, "batch": 1, "positions": 3, "dropout": 0.1}
    for who, parameters in (("relakit", 6), ("torch", 4)):
        worker.prepare({"who": who, "case": case})
        answer = worker.run({"who": who})
        assert answer["seconds"] > 0
        call, calls = worker.calls[who]
        assert answer["calls"] == calls
        result = call()
        if passes == "forward":
            assert not result.requires_grad
        else:  # the gradients of three tensors, or of the input and all parameters
            assert len(result) == (3 if what == "function" else 1 + parameters)


def test_a_new_case_replaces_the_last_one() -> None:
    worker = call_cost_worker.Worker()
    case = {"what": "function", "passes": "forward", "batch": 1, "positions": 3, "dropout": 0.1}
    worker.prepare({"who": "relakit", "case": case})
    worker.prepare({"who": "torch", "case": case})
    assert list(worker.calls) == ["relakit", "torch"]
    worker.prepare({"who": "torch", "case": {**case, "dropout": 0.0}})
    assert list(worker.calls) == ["torch"]


def test_the_worker_refuses_a_wrong_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real = call_cost_worker.relakit.attention

    def wrong(*arguments: torch.Tensor, dropout_p: float) -> torch.Tensor:
        off = 1.0 if "RELAKIT_BACKEND" in call_cost_worker.os.environ else 1.01
        return real(*arguments, dropout_p=dropout_p) * off

    monkeypatch.setattr(call_cost_worker.relakit, "attention", wrong)
    case = {"what": "function", "passes": "forward", "batch": 1, "positions": 3, "dropout": 0.0}
    with pytest.raises(RuntimeError, match="differs from the reference by"):
        call_cost_worker.check(case)


def test_settings() -> None:
    assert len(CallSettings().cases()) == 48
    assert list(CallSettings().pythons()) == ["after"]
