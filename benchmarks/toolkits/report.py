"""What a training or decoding benchmark measured: speeds, and ratios to softmax and to peers."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from relakit.bench.machine import Machine
from relakit.bench.results import Measured, Row, Run, spread_columns
from relakit.bench.rounds import CaseRounds, Spread, Turn
from toolkits.settings import SpeedSettings, System, baseline_of


def tokens_per_second(turn: Turn) -> float:
    return turn.per_second("target_tokens")


def sentences_per_second(turn: Turn) -> float:
    return turn.per_second("sentences")


def tokens_per_sentence(turn: Turn) -> float:
    return turn.work["target_tokens"] / turn.work["sentences"]


@dataclass(frozen=True, kw_only=True)
class Speed:
    """One system in one case; None where it did not run."""

    case: str
    source_length: float | None
    """Mean number of tokens in a source, if the cases differ in it."""
    system: System
    rounds: int
    tokens_per_second: Spread | None = None
    """Target tokens; the end of a sentence counts as one."""
    sentences_per_second: float | None = None
    """Median over the rounds."""
    tokens_per_sentence: float | None = None
    ratio: Spread | None = None
    """Its tokens per second divided by those of relakit's softmax in the same precision; above 1 it
    is faster."""
    over_peers: dict[str, Spread | None] = field(default_factory=dict)
    """Its tokens per second divided by each peer's, by the peer's label."""
    note: str = ""
    """Why it did not run, or did not finish."""


@dataclass(kw_only=True)
class SpeedReport:
    """A run of training or decoding, finished or not."""

    benchmark: str
    """train or decode."""
    settings: SpeedSettings
    machine: Machine
    cases: list[CaseRounds] = field(default_factory=list)
    source_lengths: dict[str, float] = field(default_factory=dict)
    """Mean number of tokens in a source by case, for the groups of sentences by length."""
    notes: dict[str, str] = field(default_factory=dict)
    """Why systems did not run, by label."""
    about: dict[str, str] = field(default_factory=dict)
    """Versions, by label."""

    @property
    def run(self) -> Run:
        return Run(benchmark=self.benchmark, settings=self.settings, machine=self.machine)

    @property
    def systems(self) -> list[System]:
        return self.settings.systems()

    @property
    def peers(self) -> list[System]:
        return [system for system in self.systems if not system.is_ours]

    def measured_cases(self, *, groups: bool) -> list[CaseRounds]:
        """Cases with at least one round: the groups by length, or the others."""
        return [c for c in self.cases if c.rounds and (c.case in self.source_lengths) == groups]

    def speeds(self, case: CaseRounds) -> list[Speed]:
        """All systems in a case, in their order."""
        return [self._speed(case, system) for system in self.systems]

    def _speed(self, case: CaseRounds, system: System) -> Speed:
        label = system.label
        turns = case.of(label)
        note = self.notes.get(label, "")
        source_length = self.source_lengths.get(case.case)
        if not turns:
            return Speed(
                case=case.case,
                source_length=source_length,
                system=system,
                rounds=0,
                note=note or "took part in no round",
            )
        base = baseline_of(system, self.systems)

        def over(other: str) -> Spread | None:
            return case.ratio(label, other, tokens_per_second)

        return Speed(
            case=case.case,
            source_length=source_length,
            system=system,
            rounds=len(turns),
            tokens_per_second=case.values(label, tokens_per_second),
            sentences_per_second=_median(case.values(label, sentences_per_second)),
            tokens_per_sentence=_median(case.values(label, tokens_per_sentence)),
            ratio=None if base is None else over(base.label),
            over_peers={p.label: over(p.label) for p in self.peers} if system.is_ours else {},
            note=note,
        )

    def measured(self) -> Measured:
        """What goes into the files."""
        contenders = [
            {
                "label": system.label,
                **asdict(system),
                "about": self.about.get(system.label, ""),
                "note": self.notes.get(system.label, ""),
            }
            for system in self.systems
        ]
        return Measured(rows=list(self._rows()), rounds=self.cases, contenders=contenders)

    def _rows(self) -> Iterator[Row]:
        peers = [peer.label for peer in self.peers]
        for case in self.cases:
            for speed in self.speeds(case):
                yield {
                    "benchmark": self.benchmark,
                    "case": speed.case,
                    "source_length": speed.source_length,
                    "contender": speed.system.label,
                    **asdict(speed.system),
                    "rounds": speed.rounds,
                    **spread_columns("tokens_per_second", speed.tokens_per_second),
                    "sentences_per_second": speed.sentences_per_second,
                    "tokens_per_sentence": speed.tokens_per_sentence,
                    **spread_columns("ratio", speed.ratio),
                    **{f"over {peer}": _median(speed.over_peers.get(peer)) for peer in peers},
                    "note": speed.note,
                }


def _median(values: Spread | None) -> float | None:
    return None if values is None else values.median
