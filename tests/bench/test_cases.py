"""Cases: what they say about themselves, what they refuse, and the grids."""

import pytest

from relakit.bench.cases import DEMO_DIM, FULL, MODES, Case, Grid, make_case, parse_zeros
from relakit.bench.presets import PRESETS, SOFTMAXES, SPARSE, never_slower, targets


class TestCase:
    @pytest.mark.parametrize(
        ("mode", "queries", "backward", "causal"),
        [
            ("forward", 64, False, False),
            ("both", 64, True, False),
            ("causal-forward", 64, False, True),
            ("causal-both", 64, True, True),
            ("decode", 1, False, False),
        ],
    )
    def test_modes(self, mode: str, queries: int, backward: bool, causal: bool) -> None:
        case = Case(mode=mode, length=64, zeros=50.0)
        assert (case.queries, case.has_backward, case.is_causal) == (queries, backward, causal)

    def test_counts_the_operations_of_the_dense_formula(self) -> None:
        # Two products of 2 * 100 * 100 * 16 operations for each of 2 * 3 heads.
        forward = 2 * 3 * 2 * (2 * 100 * 100 * 16)
        shape = {"length": 100, "zeros": 50.0, "heads": 3, "dim": 16, "batch": 2}
        assert Case(mode="forward", **shape).flops == forward
        assert Case(mode="both", **shape).flops == 3.5 * forward
        assert Case(mode="causal-both", **shape).flops == 3.5 * forward / 2
        assert Case(mode="decode", **shape).flops == forward / 100

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"mode": "backward"}, "unknown mode 'backward'; choose one of forward, both"),
            ({"dtype": "float16"}, "unknown dtype 'float16'; choose one of float32, bfloat16"),
            ({"mask": "bool"}, "unknown mask 'bool'"),
            ({"length": 0}, "length must be at least 1, got 0"),
            ({"batch": -1}, "batch must be at least 1, got -1"),
            ({"zeros": 101.0}, "from 0 to 100, got 101"),
            ({"zeros": "demo"}, f"needs dim={DEMO_DIM}, got 64"),
            ({"mode": "causal-both", "mask": "padding"}, "takes no mask, got 'padding'"),
        ],
    )
    def test_refuses_what_makes_no_sense(self, wrong: dict[str, object], message: str) -> None:
        arguments = {"mode": "forward", "length": 64, "zeros": 50.0} | wrong
        with pytest.raises(ValueError, match=message):
            Case(**arguments)


class TestMakeCase:
    def test_short_sequences_come_in_larger_batches(self) -> None:
        batches = {n: make_case("both", n, 50.0).batch for n in (32, 512, 2048, 8192)}
        assert batches == {32: 64, 512: 4, 2048: 1, 8192: 1}
        assert make_case("decode", 32, 50.0).batch == 1
        assert make_case("both", 32, 50.0, batch=3).batch == 3

    def test_the_demo_has_its_own_dimension(self) -> None:
        assert make_case("both", 32, "demo", dim=64).dim == DEMO_DIM
        assert make_case("both", 32, 50.0, dim=32).dim == 32


@pytest.mark.parametrize(("text", "zeros"), [("90", 90.0), ("99.5%", 99.5), ("demo", "demo")])
def test_zeros_are_read(text: str, zeros: object) -> None:
    assert parse_zeros(text) == zeros


@pytest.mark.parametrize("text", ["", "many", "-1", "100.1", "nan"])
def test_zeros_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=f"got '{text}'"):
        parse_zeros(text)


def test_a_grid_is_the_product() -> None:
    cases = Grid(modes=("both", "decode"), lengths=(32, 64), zeros=(50.0, "demo")).cases(heads=2)
    assert len(set(cases)) == 8
    assert {case.heads for case in cases} == {2}


def test_the_full_grid_goes_from_32_to_8192() -> None:
    assert (min(FULL.lengths), max(FULL.lengths)) == (32, 8192)
    assert set(FULL.zeros) == {50.0, 80.0, 90.0, 95.0, "demo"}
    assert set(FULL.modes) == set(MODES)


class TestPresets:
    def test_targets(self) -> None:
        found = {(j.case.mode, j.case.length, j.case.dtype): set(j.contenders) for j in targets()}
        expected = {
            *(("forward", n, "float32") for n in (64, 512, 2048)),
            *(("both", n, "float32") for n in (64, 512, 2048)),
            ("causal-both", 2048, "float32"),
            *(("decode", n, "float32") for n in (1024, 32768)),
            ("forward", 2048, "bfloat16"),
        }
        assert set(found) == expected
        assert found["forward", 2048, "bfloat16"] == {"sdpa"}
        assert found["both", 512, "float32"] == {*SOFTMAXES, *SPARSE}  # the job with 90% zeros
        assert {job.case.zeros for job in targets()} == {50.0, 90.0}

    def test_never_slower_covers_the_shapes(self) -> None:
        cases = [job.case for job in never_slower()]
        assert {case.mask for case in cases} == {"none", "padding", "additive"}
        assert {case.mode for case in cases} == set(MODES)
        assert {case.zeros for case in cases} == {0.0, 50.0, 90.0}
        assert {case.dtype for case in cases} == {"float32", "bfloat16"}
        assert {case.batch for case in cases if case.length == 64} == {1, 32}

    @pytest.mark.parametrize("name", PRESETS)
    def test_no_case_comes_twice(self, name: str) -> None:
        cases = [job.case for job in PRESETS[name]()]
        assert len(cases) == len(set(cases))
