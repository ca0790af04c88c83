"""The contenders compute what their names say: they are compared with other people's code."""

import pytest
import torch
import torch.nn.functional as F

from relakit.bench import contenders
from relakit.bench.cases import MODES, Case
from relakit.bench.contenders import (
    CONTENDERS,
    estimate_gib,
    make_step,
    serving_backend,
    why_left_out,
)
from relakit.bench.inputs import Inputs, make_inputs
from relakit.bench.presets import CONTENDER_NAMES, check_contenders
from relakit.ops.attention import attention
from relakit.ops.backends import BACKENDS
from relakit.ops.options import BACKEND_NAMES

CASES = [
    *(Case(mode=mode, length=37, zeros=70.0, heads=3, dim=16, batch=2) for mode in MODES),
    *(
        Case(mode="both", length=37, zeros=70.0, heads=3, dim=16, batch=2, mask=mask)
        for mask in ("padding", "additive")
    ),
]
ACTIVATION = {
    "rela": "relu",
    "sdpa": "softmax",
    "bmm-softmax": "softmax",
    "sparsemax": "sparsemax",
    "entmax15": "entmax15",
}


def run(name: str, case: Case, made: Inputs) -> list[torch.Tensor]:
    """Output, or gradients, shaped like the inputs."""
    results = make_step(name, case, made, None)()
    tensors = list(results) if isinstance(results, tuple) else [results]
    return [x.reshape(2, 3, -1, 16) for x in tensors]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.mode}-{case.mask}")
@pytest.mark.parametrize("name", CONTENDERS)
def test_they_compute_what_they_say(name: str, case: Case) -> None:
    made = make_inputs(case)
    options = {"threshold": made.threshold} if name == "rela" else {}
    expected = attention(
        made.query,
        made.key,
        made.value,
        made.mask,
        is_causal=made.is_causal,
        activation=ACTIVATION[name],
        backend="reference",
        **options,
    )
    wanted = [expected]
    if case.has_backward:
        leaves = (made.query, made.key, made.value)
        wanted = list(torch.autograd.grad(expected, leaves, made.grad_output))
    found = run(name, case, made)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_bmm_softmax_equals_sdpa() -> None:
    case = CASES[0]
    made = make_inputs(case)
    expected = F.scaled_dot_product_attention(made.query, made.key, made.value)
    torch.testing.assert_close(run("bmm-softmax", case, made)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CONTENDERS)
def test_bfloat16_runs(name: str) -> None:
    case = Case(
        mode="causal-both", length=20, zeros=70.0, dtype="bfloat16", heads=3, dim=16, batch=2
    )
    assert all(x.isfinite().all() for x in run(name, case, make_inputs(case)))


@pytest.mark.parametrize("name", CONTENDERS)
def test_the_tensors_are_shared_and_not_copied(name: str) -> None:
    made = make_inputs(CASES[1])
    prepared = CONTENDERS[name].prepare(made, None)
    pointers = [x.data_ptr() for x in (made.query, made.key, made.value)]
    assert [x.data_ptr() for x in prepared.leaves] == pointers


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown contender 'softmax'; choose one of rela, sdpa"):
        check_contenders(["rela", "softmax"])


def test_the_command_line_knows_them_all() -> None:
    assert tuple(CONTENDERS) == CONTENDER_NAMES
    assert tuple(BACKENDS) == BACKEND_NAMES


class TestLeftOut:
    def test_a_missing_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(contenders, "find_spec", lambda name: None)
        made = make_inputs(CASES[0])
        assert why_left_out("sdpa", made, None, 4.0) is None
        reason = why_left_out("entmax15", made, None, 4.0)
        assert reason == "needs the package entmax: pip install 'relakit[bench]'"

    def test_too_much_memory(self) -> None:
        made = make_inputs(Case(mode="forward", length=256, zeros=50.0))
        # 2 tensors of 8 * 256 * 256 float32 numbers are 4 MiB.
        assert 4 / 1024 < estimate_gib("bmm-softmax", made, None) < 8 / 1024
        reason = why_left_out("bmm-softmax", made, None, 0.004)
        assert reason == "would need 0.0 GiB, over the limit of 0.004 GiB"
        assert why_left_out("sdpa", made, None, 0.004) is None

    def test_the_reference_holds_the_scores(self) -> None:
        made = make_inputs(Case(mode="forward", length=256, zeros=50.0))
        assert estimate_gib("rela", made, "reference") > 8 / 1024


def test_the_backend_that_serves_is_known() -> None:
    made = make_inputs(CASES[0])
    assert serving_backend(made, "reference") == "reference"
    assert serving_backend(made, None) in BACKENDS
