"""Running a case: all contenders, honest notes, and no speed for a wrong result."""

import pytest
import torch

from relakit.bench.attention_results import AttentionSettings
from relakit.bench.attention_runs import run_case, run_jobs
from relakit.bench.cases import MODES, Case, make_case
from relakit.bench.contenders import CONTENDERS
from relakit.bench.presets import Job
from relakit.bench.rounds import Spread
from relakit.ops.backends import BACKENDS, ReferenceBackend
from relakit.ops.call import AttentionCall, AttentionResult

SETTINGS = AttentionSettings(rounds=2, memory=False)
SMALL = make_case("forward", 32, 50.0, heads=2, batch=1)


@pytest.mark.parametrize("mode", MODES)
def test_every_contender_is_measured(mode: str) -> None:
    case = make_case(mode, 32, 80.0, heads=2, batch=2)
    found = run_case(Job(case, tuple(CONTENDERS)), SETTINGS)
    assert [m.contender for m in found.measurements] == list(CONTENDERS)
    for m in found.measurements:
        assert m.seconds is not None
        assert m.seconds.lower > 0
        assert m.rounds == 2
        assert m.gflops == pytest.approx(case.flops / m.seconds.median / 1e9)
    assert found.measurements[0].ratio == Spread(1, 1, 1)
    assert found.measurements[0].backend in BACKENDS
    assert found.zeros_measured == pytest.approx(80, abs=15)


def test_rela_takes_part_without_being_asked() -> None:
    found = run_case(Job(SMALL, ("sdpa",)), SETTINGS)
    assert [m.contender for m in found.measurements] == ["rela", "sdpa"]


@pytest.mark.parametrize("mask", ["padding", "additive"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_masks_and_types(mask: str, dtype: str) -> None:
    case = make_case("both", 33, 0.0, dtype=dtype, heads=2, batch=2, mask=mask)
    found = run_case(Job(case, ("sdpa",)), SETTINGS)
    assert found.zeros_measured == 0
    assert found.softmax_ratio is not None


def test_who_needs_too_much_memory_is_left_out() -> None:
    settings = AttentionSettings(rounds=1, memory=False, backend=None, memory_limit=0.03)
    case = Case(mode="forward", length=512, zeros=50.0)
    found = run_case(Job(case, ("sdpa", "entmax15")), settings)
    entmax = found.of("entmax15")
    assert entmax is not None
    assert entmax.seconds is None
    assert entmax.note.startswith("would need 0.1 GiB, over the limit of 0.03 GiB")


def test_without_rela_there_is_nothing_to_compare() -> None:
    settings = AttentionSettings(rounds=1, memory=False, backend="reference", memory_limit=1e-6)
    found = run_case(Job(SMALL, ("sdpa",)), settings)
    assert found.zeros_measured is None
    assert all(m.seconds is None and m.note for m in found.measurements)


def test_memory_is_measured_where_it_can_be() -> None:
    settings = AttentionSettings(rounds=1, memory=True)
    found = run_case(Job(SMALL, ()), settings)
    (rela,) = found.measurements
    assert rela.peak_mib is not None or rela.note.startswith("peak memory needs Linux")


class Wrong(ReferenceBackend):
    """The reference, a little off."""

    def run(self, call: AttentionCall) -> AttentionResult:
        return AttentionResult(super().run(call).output * 1.01)


def test_a_wrong_result_has_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "reference", Wrong())
    settings = AttentionSettings(rounds=1, memory=False, backend="reference")
    with pytest.raises(RuntimeError, match="ReLA differs from the reference by"):
        run_case(Job(SMALL, ()), settings)


def test_absurd_threads() -> None:
    with pytest.raises(ValueError, match=r"^threads must be at most \d+ on this machine"):
        list(run_jobs([], AttentionSettings(threads=100_000, rounds=1, memory=False)))


def test_the_number_of_threads_is_set_and_restored() -> None:
    before = torch.get_num_threads()
    jobs = [Job(SMALL, ())]
    seen = [
        torch.get_num_threads()
        for _ in run_jobs(jobs, AttentionSettings(threads=2, rounds=1, memory=False))
    ]
    assert seen == [2]
    assert torch.get_num_threads() == before
