"""Cost of attention calls: relakit against PyTorch, and this checkout against another one.

The function is compared with `scaled_dot_product_attention`, and the module (ReLA-g with its norm)
with `torch.nn.MultiheadAttention`, all in one run: the contenders of a case take turns, so only
their ratios are meaningful. With --against, another checkout takes its turns in its own process.

    python benchmarks/call_cost.py --against ../before
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

import runs
from relakit.amounts import number_with_noun
from relakit.bench.machine import Machine, describe_machine
from relakit.bench.results import Measured, Row, Run, spread_columns
from relakit.bench.rounds import (
    CaseRounds,
    ContenderError,
    Field,
    FixedRounds,
    Spread,
    Turn,
    seconds_per_call,
    take_turns,
)
from relakit.bench.tables import make_table, median_text, number_text, quartiles_text
from relakit.known_names import known_name
from runs import HOW, Output, Save, Tell
from runs import WHAT as WHAT_PANEL
from workers import Worker, number_of

SCRIPT: Final = Path(__file__).with_name("call_cost_worker.py")
WHAT: Final = ("function", "module", "module with weights")
PASSES: Final = ("forward", "both")
SHAPES: Final = ((1, 8), (1, 32), (8, 32), (32, 32))
"""Batch sizes and positions."""
DROPOUTS: Final = (0.0, 0.1)
AFTER, BEFORE = "after", "before"
SYSTEMS: Final = ("relakit", "torch")


@dataclass(frozen=True, kw_only=True)
class CallCase:
    """One kind of call."""

    what: str
    """function: relakit.attention. module: MultiheadAttention with need_weights=False. module with
    weights: with need_weights=True, its default."""
    passes: str
    """forward: without gradients. both: forward and backward."""
    batch: int
    positions: int
    dropout: float

    def __str__(self) -> str:
        shape = f"{self.batch}x{self.positions}"
        return f"{self.what}, {self.passes}, {shape}, dropout {self.dropout:g}"


class CallsInWorker:
    """relakit or torch in the process of one checkout."""

    def __init__(self, worker: Worker, who: str, cases: Mapping[str, CallCase]) -> None:
        self._worker = worker
        self._who = who
        self._cases = cases

    def warm_up(self, case: str) -> None:
        self._worker.ask("prepare", who=self._who, case=asdict(self._cases[case]))

    def run(self, case: str, number: int) -> Turn:
        answer = self._worker.ask("run", who=self._who)
        return Turn(number_of(answer, "seconds"), {"calls": int(number_of(answer, "calls"))})


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """How calls are measured."""

    what: tuple[str, ...] = WHAT
    passes: tuple[str, ...] = PASSES
    rounds: int = 30
    processes: int = 3
    """How many pairs of processes the rounds are spread over. Where its memory happens to lie makes
    a process faster or slower for its whole life, so one pair alone proves little."""
    threads: int = 1
    against: str | None = None
    """Another checkout."""

    def __post_init__(self) -> None:
        for name, known in (("what", WHAT), ("passes", PASSES)):
            for value in getattr(self, name):
                known_name(name, value, known)
        for name in ("rounds", "processes", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def cases(self) -> list[CallCase]:
        return [
            CallCase(what=what, passes=passes, batch=batch, positions=positions, dropout=dropout)
            for what, passes, (batch, positions), dropout in product(
                self.what, self.passes, SHAPES, DROPOUTS
            )
        ]

    def pythons(self) -> dict[str, Path]:
        """The Python of each checkout; ValueError if the other checkout has none."""
        pythons = {AFTER: Path(sys.executable)}
        if self.against is not None:
            python = Path(self.against) / ".venv" / "bin" / "python"
            if not python.is_file():
                raise ValueError(f"{self.against} has no environment: there is no {python}")
            pythons[BEFORE] = python
        return pythons


@contextmanager
def workers_of(settings: CallSettings, cases: Mapping[str, CallCase]) -> Iterator[Field]:
    """All contenders, ready in new processes that end with the block."""
    started: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory(prefix="relakit-bench-") as folder:
        try:
            ready = Field()
            for checkout, python in settings.pythons().items():
                log = Path(folder) / f"{checkout}.log"
                worker = Worker(python, SCRIPT, threads=settings.threads, log=log)
                started[checkout] = worker
                about = worker.ask("setup", threads=settings.threads)["about"]
                ready.about |= {f"{checkout} {system}": str(about) for system in SYSTEMS}
            for system, checkout in product(SYSTEMS, started):
                calls = CallsInWorker(started[checkout], system, cases)
                ready.contenders[f"{checkout} {system}"] = calls
            yield ready
        finally:
            for worker in started.values():
                worker.close()


@dataclass(frozen=True, kw_only=True)
class CallCost:
    """What was measured in a case.

    Each ratio divides two times of one round; above 1, the divisor is faster.
    """

    case: CallCase
    rounds: int
    seconds: Spread | None
    """Time per call of this checkout's relakit."""
    before: Spread | None
    """The other checkout's time divided by this one's."""
    torch: Spread | None
    """PyTorch's time divided by relakit's."""
    torch_to_before: Spread | None
    """PyTorch's time divided by the time of the other checkout's relakit."""
    control: Spread | None
    """PyTorch's time in the other process divided by its time in this one: 1, apart from noise."""

    @classmethod
    def of(cls, case: CallCase, rounds: CaseRounds) -> "CallCost":
        def ratio(label: str, base: str) -> Spread | None:
            return rounds.ratio(label, base, seconds_per_call)

        return cls(
            case=case,
            rounds=len(rounds.rounds),
            seconds=rounds.values("after relakit", seconds_per_call),
            before=ratio("before relakit", "after relakit"),
            torch=ratio("after torch", "after relakit"),
            torch_to_before=ratio("before torch", "before relakit"),
            control=ratio("before torch", "after torch"),
        )

    def row(self) -> Row:
        return {
            **asdict(self.case),
            "rounds": self.rounds,
            **spread_columns("seconds", self.seconds),
            **spread_columns("before / after", self.before),
            **spread_columns("torch / after", self.torch),
            **spread_columns("torch / before", self.torch_to_before),
            **spread_columns("torch before / after", self.control),
        }


@dataclass(kw_only=True)
class CallReport:
    """A run, finished or not."""

    settings: CallSettings
    machine: Machine
    cases: list[CaseRounds] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    """Which relakit and which torch ran, by label."""

    @property
    def run(self) -> Run:
        return Run(benchmark="call cost", settings=self.settings, machine=self.machine)

    def costs(self) -> list[CallCost]:
        rounds = {case.case: case for case in self.cases if case.rounds}
        cases = [case for case in self.settings.cases() if str(case) in rounds]
        return [CallCost.of(case, rounds[str(case)]) for case in cases]

    def measured(self) -> Measured:
        return Measured(
            rows=[cost.row() for cost in self.costs()],
            rounds=self.cases,
            contenders=[{"label": label, "about": about} for label, about in self.about.items()],
        )


def print_report(report: CallReport, console: Console) -> None:
    settings = report.settings
    for label, about in report.about.items():
        console.print(f"{label}: {about}", soft_wrap=True)
    headings = ["call", "pass", "shape", "dropout", "µs", "torch / after", "quartiles "]
    if settings.against is not None:
        headings += ["before / after", "quartiles", "torch / before", "control"]
    rows = []
    for cost in report.costs():
        case = cost.case
        row = [case.what, case.passes, f"{case.batch}x{case.positions}", f"{case.dropout:g}"]
        row.append(number_text(None if cost.seconds is None else 1e6 * cost.seconds.median))
        row += [median_text(cost.torch), quartiles_text(cost.torch)]
        if settings.against is not None:
            row += [median_text(cost.before), quartiles_text(cost.before)]
            row += [median_text(cost.torch_to_before), median_text(cost.control)]
        rows.append(row)
    threads = number_with_noun(settings.threads, "thread")
    title = f"cost of calls, {settings.rounds} rounds, {threads}"
    bold = ("torch / after", "before / after")
    console.print(make_table(title, headings, rows, left=("call", "pass"), bold=bold))
    console.print(
        "µs: a call of relakit in this checkout. torch / after: PyTorch's time divided by that;\n"
        "above 1 relakit is faster. before / after: likewise, for the checkout of --against.\n"
        "control: PyTorch in the other process divided by PyTorch in this one; how far it is from\n"
        "1 is noise. Medians over rounds of the ratio of two times of one round."
    )


def measure(report: CallReport, *, save: Save, tell: Tell) -> None:
    """Complete the rounds of every case, with a share of them in each pair of processes.

    Raises:
        ContenderError: a contender failed, perhaps with a wrong result.
    """
    settings = report.settings
    cases = {str(case): case for case in settings.cases()}
    measured = {case.case: case for case in report.cases}
    report.cases[:] = [measured.get(name, CaseRounds(name)) for name in cases]
    for number in range(1, settings.processes + 1):
        limit = FixedRounds(-(-settings.rounds * number // settings.processes))
        if all(len(case.rounds) >= limit.rounds for case in report.cases):
            continue
        with workers_of(settings, cases) as ready:
            report.about = ready.about
            for case in report.cases:
                tell(f"{case.case}, processes {number} of {settings.processes}")
                take_turns(ready, case, limit)
                if ready.notes:
                    notes = (f"{who}: {why}" for who, why in ready.notes.items())
                    raise ContenderError("; ".join(notes))
                save()


app = runs.new_app()


@app.command()
def call_cost(
    against: Annotated[
        Path | None,
        typer.Option(
            help="Another checkout of relakit with its own .venv: 'before'. This one is 'after'.",
            rich_help_panel=WHAT_PANEL,
        ),
    ] = None,
    what: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(WHAT)}. Repeatable. \\[default: all]", rich_help_panel=WHAT_PANEL
        ),
    ] = None,
    passes: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(PASSES)}. Repeatable. \\[default: all]", rich_help_panel=WHAT_PANEL
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Turns per contender.", rich_help_panel=HOW)
    ] = CallSettings.rounds,
    processes: Annotated[
        int,
        typer.Option(
            help="Processes that share the rounds, one after another.", rich_help_panel=HOW
        ),
    ] = CallSettings.processes,
    threads: runs.Threads = CallSettings.threads,
    json_file: runs.JsonFile = None,
    csv_file: runs.CsvFile = None,
    resume: runs.Resume = False,
) -> None:
    """Time calls of relakit's function and module against PyTorch's, in turns."""
    settings = CallSettings(
        what=tuple(what or WHAT),
        passes=tuple(passes or PASSES),
        rounds=rounds,
        processes=processes,
        threads=threads,
        against=None if against is None else str(against),
    )
    settings.pythons()  # before anything is measured
    report = CallReport(settings=settings, machine=describe_machine())
    runs.measure(
        report,
        Output(json=json_file, csv=csv_file, resume=resume),
        lambda save, tell: measure(report, save=save, tell=tell),
        show=lambda console: print_report(report, console),
    )


if __name__ == "__main__":
    runs.run_app(app)
