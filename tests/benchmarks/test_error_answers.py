"""The script that measures how errors are answered, and the page about them."""

import os
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/faults"))

from all_rows import TABLES  # noqa: E402
from fault_rows import Row  # noqa: E402

import error_answers  # noqa: E402
from answers.case import Case, Outcome, try_case  # noqa: E402
from answers.measured_process import Ended, run_measured  # noqa: E402
from answers.page import write_page  # noqa: E402

PYTHON = (sys.executable, "-I", "-S", "-c")
ONE_ERROR = "import sys; sys.stderr.write('relakit: error: no\\n'); sys.exit(1)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "stdin.txt").write_text("a line\n")
    return tmp_path


def run(code: str, folder: Path, time_limit: float = 60.0) -> Ended:
    return run_measured([*PYTHON, code], folder, os.environ, time_limit=time_limit)


def attempt(program: str, folder: Path, **row: Any) -> Outcome:
    row = {"broken": "x", "says": "no", **row}
    case = Case(Row(command=program, **row), PYTHON, is_split=False)
    return try_case(case, folder, dict(os.environ), 1024)


class TestMeasuredProcess:
    def test_what_it_says_and_how_it_ends(self, folder: Path) -> None:
        ended = run("import sys; print(input()); sys.stderr.write('why'); sys.exit(3)", folder)
        assert (ended.code, ended.output, ended.errors) == (3, "a line\n", "why")
        assert ended.cpu_seconds > 0
        assert ended.seconds > 0

    def test_memory_is_its_own(self, folder: Path) -> None:
        """Not that of this process, which has loaded torch."""
        small, large = run("pass", folder), run("x = b'x' * (100 << 20)", folder)
        assert small.peak_mib < 40
        assert 100 < large.peak_mib - small.peak_mib + 5 < 120

    def test_a_process_that_hangs_is_killed(self, folder: Path) -> None:
        assert run("import time; time.sleep(600)", folder, time_limit=0.5).code == -9


class TestCases:
    def test_the_expected_answer(self, folder: Path) -> None:
        outcome = attempt(ONE_ERROR, folder)
        assert (outcome.answer, outcome.problems) == ("no", [])

    @pytest.mark.parametrize(
        ("code", "row", "problem"),
        [
            (ONE_ERROR, {"says": "yes"}, "it answered “no”, not “yes”"),
            (ONE_ERROR, {"code": 2}, "it ended with 1, not 2"),
            (f"open('new', 'w').close(); {ONE_ERROR}", {}, "it changed files"),
            ("1 / 0", {}, "it answered “0 errors: "),
        ],
    )
    def test_problems(self, code: str, row: dict[str, Any], problem: str, folder: Path) -> None:
        assert any(found.startswith(problem) for found in attempt(code, folder, **row).problems)

    def test_tracebacks_are_noticed(self, folder: Path) -> None:
        assert attempt("1 / 0", folder).has_traceback

    def test_too_much_memory(self, folder: Path) -> None:
        case = Case(Row("x", f"x = b'x' * (50 << 20); {ONE_ERROR}", "no"), PYTHON, is_split=False)
        outcome = try_case(case, folder, dict(os.environ), 40)
        assert [problem.split()[:2] for problem in outcome.problems] == [["it", "took"]]


def outcome(name: str, seconds: float, mib: float, *problems: str) -> Outcome:
    ended = Ended(1, "", "", 9.0, seconds, mib)
    return Outcome(Case(Row(name, "", "")), ended, f"{name} | is wrong", list(problems))


def test_page() -> None:
    quick, slow = outcome("quick", 0.4, 50), outcome("slow", 3.2, 300, "it took long")
    text = write_page({"Writing": [quick]}, [], {"texts": [quick, slow]}, max_mib=1024)
    assert "3 cases, 3 of them errors: 0 tracebacks, 1 problems. 2 of the errors were" in text
    assert "the longest took 3.20 s (slow). The most memory was 300 MiB (slow)." in text
    assert "- slow: it took long" in text
    assert "| quick | `quick \\| is wrong` | 0.40 | 50 |" in text
    assert "| texts | 2 | 1 | 3.20, 3.20 | 300, 300 |" in text
    assert "More than 1 s took 1 of them" in text


def test_cases_have_names_of_their_own() -> None:
    named, _ = error_answers.named_cases()
    names = [case.row.broken for cases in named.values() for case in cases]
    assert len(names) > 60
    helps = [case.row.command for case in error_answers.help_cases()]
    assert {"--help", "translate --help", "bench attention --help"} <= {*helps}


def test_the_documentation_says_what_the_program_says() -> None:
    """Each line in docs/errors.md is one that some row, or some case, asserts."""
    named, _ = error_answers.named_cases()
    cases = [case.row for group in named.values() for case in group]
    said = [row.says for row in [*(row for rows in TABLES.values() for row in rows), *cases]]
    table = (ROOT / "docs/errors.md").read_text().partition("## What happens when")[2]
    answers = re.findall(r"^\| .* \| (?:a note: )?`(.*)` \|$", table, re.M)
    assert len(answers) >= 25
    unknown = [
        answer
        for answer in answers
        if answer not in said and not any(fnmatchcase(answer, pattern(says)) for says in said)
    ]
    assert unknown == []


def pattern(says: str) -> str:
    for mark in "[?*":
        says = says.replace(mark, f"[{mark}]")
    return says.replace("...", "*")
