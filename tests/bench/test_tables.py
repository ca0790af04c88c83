"""Tables for the terminal: which numbers stand in them, how they are rounded, what is noted."""

import io

import pytest
from rich.console import Console

from relakit.bench.attention_results import AttentionSettings, CaseResult, Measurement
from relakit.bench.cases import make_case
from relakit.bench.rounds import Spread, spread
from relakit.bench.tables import WIDTH, print_by_mode, print_smallest, print_targets

RELA = Measurement(
    contender="rela",
    backend="native",
    seconds=spread([0.0012345]),
    gflops=123.4,
    ratio=spread([1.0]),
    peak_mib=4.5,
)
LEFT_OUT = Measurement(contender="entmax15", note="would need 9.5 GiB")


def result(length: int, sdpa: float, mode: str = "forward") -> CaseResult:
    other = Measurement(contender="sdpa", ratio=Spread(sdpa, sdpa - 0.1, sdpa + 0.1), peak_mib=70.0)
    case = make_case(mode, length, 90.0)
    return CaseResult(case=case, zeros_measured=90.12, measurements=(RELA, other, LEFT_OUT))


def printed(print_function, *results: CaseResult) -> list[str]:
    output = io.StringIO()
    print_function(results, AttentionSettings(), Console(file=output, width=WIDTH, highlight=False))
    return output.getvalue().splitlines()


def test_a_row_of_a_mode() -> None:
    lines = printed(print_by_mode, result(64, 0.987), result(512, 12.34))
    rows = [line.split() for line in lines if "90%" in line]
    about = ["90%", "(90.1)"]
    assert rows == [
        ["64", "32", *about, "0.99", "0.99", "-", "1.23", "123", "4.50", "70.0"],
        ["512", "4", *about, "12.3", "12.3", "-", "1.23", "123", "4.50", "70.0"],
    ]
    assert "ReLA ran on the backend native." in lines


def test_each_mode_has_its_table() -> None:
    lines = printed(print_by_mode, result(64, 1.0), result(64, 1.0, "both"))
    titles = [line.strip() for line in lines if line.strip().endswith("1 thread")]
    assert titles == ["forward, 1 thread", "both, 1 thread"]


def test_what_is_missing_is_explained_once() -> None:
    lines = printed(print_by_mode, result(64, 1.0), result(512, 1.0))
    notes = [line for line in lines if line.startswith("Note")]
    assert notes == ["Note on entmax15: would need 9.5 GiB (forward 64, forward 512)"]


def test_targets_show_the_spread() -> None:
    lines = printed(print_targets, result(64, 1.5), result(64, 2.5, "both"))
    rows = [line for line in lines if "90%" in line]
    assert "1.40 to 1.60" in rows[0]
    assert "2.40 to 2.60" in rows[1]


def test_the_smallest_ratio_comes_first() -> None:
    lines = printed(print_smallest, result(64, 1.5), result(512, 0.75), result(32, 1.25))
    rows = [line.split()[0] for line in lines if "native" in line]
    assert rows == ["0.75", "1.25", "1.50"]
    text = " ".join(lines)
    assert "Smallest ratio of SDPA's time to ReLA's: 0.75 (forward, length 512," in text
    assert "ReLA was slower than SDPA in 1 of 3 cases." in text


@pytest.mark.parametrize("results", [(), (CaseResult(
    case=make_case("both", 64, 50.0), zeros_measured=None, measurements=(LEFT_OUT,)
),)])  # fmt: skip
def test_nothing_to_compare(results: tuple[CaseResult, ...]) -> None:
    lines = printed(print_smallest, *results)
    assert lines == ["No case with both ReLA and SDPA was measured."]
