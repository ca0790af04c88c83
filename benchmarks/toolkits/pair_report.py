"""What the benchmark of scored and aligned pairs found: speeds, ratios to peers, a table."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.bench.machine import Machine
from relakit.bench.results import Measured, Row, Run, spread_columns
from relakit.bench.rounds import CaseRounds, Spread, Turn
from relakit.bench.tables import make_table, median_text, quartiles_text
from toolkits.pair_settings import WHAT_THEY_COMPUTE, PairSettings


def pairs_per_second(turn: Turn) -> float:
    return turn.per_second("pairs")


@dataclass(kw_only=True)
class PairReport:
    """A run, finished or not."""

    settings: PairSettings
    machine: Machine
    cases: list[CaseRounds] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)

    @property
    def run(self) -> Run:
        return Run(benchmark="pairs", settings=self.settings, machine=self.machine)

    @property
    def labels(self) -> list[str]:
        """All contenders that were to take part, relakit first."""
        known = [*self.about, *self.notes]
        ours = [label for label in dict.fromkeys(known) if label not in self.settings.peers]
        return [*ours, *self.settings.peers]

    def measured(self) -> Measured:
        """What goes into the files."""
        contenders = [
            {
                "label": label,
                "about": self.about.get(label, ""),
                "computes": computed_by(label),
                "note": self.notes.get(label, ""),
            }
            for label in self.labels
        ]
        return Measured(rows=list(self._rows()), rounds=self.cases, contenders=contenders)

    def over(self, case: CaseRounds, label: str, peer: str) -> Spread | None:
        """A contender's pairs per second divided by a peer's in the same round."""
        return case.ratio(label, peer, pairs_per_second)

    def _rows(self) -> Iterator[Row]:
        for case in self.cases:
            for label in self.labels:
                turns = case.of(label)
                ratios = {
                    f"over {peer}": None if ratio is None else ratio.median
                    for peer in self.settings.peers
                    for ratio in [self.over(case, label, peer)]
                }
                yield {
                    "benchmark": "pairs",
                    "case": case.case,
                    "contender": label,
                    "rounds": len(turns),
                    **spread_columns("pairs_per_second", case.values(label, pairs_per_second)),
                    **ratios,
                    "computes": computed_by(label),
                    "note": self.notes.get(label, ""),
                }


def computed_by(label: str) -> str:
    """What a contender computes, in words."""
    return next(text for name, text in WHAT_THEY_COMPUTE.items() if label.startswith(name))


def print_pairs(report: PairReport, console: Console) -> None:
    """Print the speeds, what each contender computes, and which ones did not run."""
    peers = report.settings.peers
    for case in report.cases:
        rows = [
            [
                label,
                median_text(case.values(label, pairs_per_second)),
                quartiles_text(case.values(label, pairs_per_second)),
                *(median_text(report.over(case, label, peer)) for peer in peers),
            ]
            for label in report.labels
        ]
        rounds = number_with_noun(len(case.rounds), "round")
        threads = number_with_noun(report.settings.threads, "thread")
        over = [f"/ {peer}" for peer in peers]
        headings = ["", "pairs/s", "quartiles", *over]
        title = f"{case.case}, {rounds}, {threads}"
        dim = [number for number, label in enumerate(report.labels) if label in peers]
        console.print(make_table(title, headings, rows, left=("",), wrapped=over, dim_rows=dim))
    console.print("/ X: its pairs per second divided by X's in the same round, median.")
    console.print("They do not compute the same thing:")
    for name, text in WHAT_THEY_COMPUTE.items():
        console.print(f"  {name}: {text}.")
    for label, note in report.notes.items():
        ran = any(case.of(label) for case in report.cases)
        what = "Stopped on the way" if ran else "Did not run"
        console.print(Text(f"{what}: {label}: {note}", style="yellow"))
