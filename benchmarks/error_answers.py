"""How `relakit` answers when something is wrong: the line, the time and the memory of each case.

Every case runs in its own process, as a user would run it. There are cases that once went wrong
(`answers/named_commands.py`, `answers/named_python.py`), the help of every command, and all rows of
the tables in `tests/faults`. The results become a page. Exits with code 1 if an answer is not the
expected one, or if a process took more memory than the limit. It takes a quarter of an hour.

    python benchmarks/error_answers.py
    python benchmarks/error_answers.py --only gzip --page /dev/stdout
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

FAULTS: Final = Path(__file__).parents[1] / "tests/faults"
sys.path.insert(0, str(FAULTS))

from all_rows import TABLES  # noqa: E402
from fault_rows import Row  # noqa: E402

from answers.case import Case, Outcome, try_case  # noqa: E402
from answers.named_commands import (  # noqa: E402
    FULL,
    NEVER_EXPLODE,
    NEVER_HARM,
    SAY_IT_WELL,
    can_mount,
)
from answers.named_python import PYTHON  # noqa: E402
from answers.page import write_page  # noqa: E402
from relakit.cli.main import COMMANDS  # noqa: E402
from relakit.files.writing import write_whole  # noqa: E402

PAGE: Final = Path("results/errors.md")
MAX_MIB: Final = 1024.0
BUILD: Final = (
    "import sys; from pathlib import Path; from fault_folder import build; build(Path(sys.argv[1]))"
)
"""Runs in its own process, because it trains a model and this process must stay small."""


def named_cases() -> tuple[dict[str, list[Case]], list[str]]:
    """The cases that once went wrong, by subject, and what cannot be tried here."""
    left_out = []
    full = list(FULL)
    if not can_mount():
        full = full[:1]
        left_out.append("small disks of one's own, which need the right to mount")
    return {
        "Writing": [*NEVER_HARM, *full],
        "Sizes, and what does not belong together": [*NEVER_EXPLODE],
        "Messages": [*SAY_IT_WELL],
        "Python": [*PYTHON],
    }, left_out


def help_cases() -> list[Case]:
    named = (command.__name__.replace("_", "-") for command in COMMANDS)
    names = ["", *named, "bench", "bench attention"]
    commands = [f"{name} --help".strip() for name in names]
    return [Case(Row(f"`relakit {command}`", command, "", code=0)) for command in commands]


def environment() -> dict[str, str]:
    """An environment with a wide terminal, one thread and no debugging."""
    kept = {name: value for name, value in os.environ.items() if name != "RELAKIT_DEBUG"}
    return kept | {"COLUMNS": "400", "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}


class Runner:
    """Runs cases, each in a fresh copy of one folder."""

    def __init__(self, whole: Path, only: str, max_mib: float) -> None:
        self._whole = whole
        self._only = only
        self._max_mib = max_mib
        self._environment = environment()

    def run(self, title: str, cases: Sequence[Case]) -> list[Outcome]:
        outcomes = []
        for case in cases:
            if self._only not in f"{title}: {case.row.broken}":
                continue
            folder = self._whole.with_name("here")
            shutil.copytree(self._whole, folder)
            outcome = try_case(case, folder, self._environment, self._max_mib)
            shutil.rmtree(folder)
            outcomes.append(outcome)
            ended = outcome.ended
            print(
                f"{ended.cpu_seconds:6.2f} s {ended.seconds:6.2f} by the clock "
                f"{ended.peak_mib:5.0f} MiB  {title}: {case.row.broken}",
                *(f"    {problem}" for problem in outcome.problems),
                sep="\n",
                flush=True,
            )
        return outcomes

    def run_all(self, groups: Mapping[str, Sequence[Case]]) -> dict[str, list[Outcome]]:
        return {title: self.run(title, cases) for title, cases in groups.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="cases with this in their table or name")
    parser.add_argument("--page", type=Path, default=PAGE, help=f"(default: {PAGE})")
    parser.add_argument("--max-mib", type=float, default=MAX_MIB, help="of any process")
    options = parser.parse_args()
    named, left_out = named_cases()
    rows = {title: [Case(row) for row in table] for title, table in TABLES.items()}
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        subprocess.run(
            [sys.executable, "-c", BUILD, str(whole)],
            env=environment() | {"PYTHONPATH": str(FAULTS)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        runner = Runner(whole, options.only, options.max_mib)
        outcomes = runner.run_all(named)
        helps = runner.run("help", help_cases())
        tables = runner.run_all(rows)
    everything = [o for group in (outcomes, tables) for found in group.values() for o in found]
    if not everything and not helps:
        sys.exit(f"no case has {options.only!r} in its name")
    text = write_page(outcomes, helps, tables, max_mib=options.max_mib, left_out=left_out)
    write_whole(options.page, text.encode())
    sys.exit(any(outcome.problems for outcome in [*everything, *helps]))


if __name__ == "__main__":
    main()
