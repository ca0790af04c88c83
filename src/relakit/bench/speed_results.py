"""What `relakit bench train` and `relakit bench decode` measured, as JSON and as CSV.

The JSON file has every single turn, so that a run can go on from it; the CSV a line per case and
contender.
"""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from relakit.bench.machine import Machine
from relakit.bench.speed_settings import SpeedSettings
from relakit.bench.timing import Spread, spread
from relakit.bench.turns import CaseTurns, Contender, Turn, baseline_of, peers_of
from relakit.writing import write_whole

FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Speed:
    """One contender in one case; None where it did not run."""

    case: str
    source_length: float | None
    contender: Contender
    rounds: int
    tokens_per_second: Spread | None = None
    sentences_per_second: float | None = None
    """Median over the rounds."""
    tokens_per_sentence: float | None = None
    ratio: Spread | None = None
    """Its tokens per second divided by those of softmax in this toolkit, in the same precision:
    above 1 it is faster."""
    over_peers: dict[str, Spread | None] = field(default_factory=dict)
    """Its tokens per second divided by those of each peer, by the peer's label."""
    note: str = ""
    """Why it did not run, or not to the end."""


@dataclass(kw_only=True)
class SpeedReport:
    """A run, finished or not."""

    benchmark: str
    """train or decode."""
    settings: SpeedSettings
    machine: Machine
    cases: list[CaseTurns] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Why contenders did not run, by label."""
    about: dict[str, str] = field(default_factory=dict)
    """Versions, by label."""

    @property
    def contenders(self) -> list[Contender]:
        return self.settings.contenders()

    def speeds(self, case: CaseTurns) -> list[Speed]:
        """All contenders in a case, in their order."""
        return [self._speed(case, contender) for contender in self.contenders]

    def _speed(self, case: CaseTurns, contender: Contender) -> Speed:
        label = contender.label
        turns = case.of(label)
        note = self.notes.get(label, "")
        if not turns:
            return Speed(
                case=case.case,
                source_length=case.source_length,
                contender=contender,
                rounds=0,
                note=note or "took part in no round",
            )
        base = baseline_of(contender, self.contenders)
        peers = peers_of(self.contenders) if contender.is_ours else []
        return Speed(
            case=case.case,
            source_length=case.source_length,
            contender=contender,
            rounds=len(turns),
            tokens_per_second=spread([turn.tokens_per_second for turn in turns]),
            sentences_per_second=spread([turn.sentences_per_second for turn in turns]).median,
            tokens_per_sentence=spread([t.target_tokens / t.sentences for t in turns]).median,
            ratio=None if base is None else case.ratio(label, base.label),
            over_peers={peer.label: case.ratio(label, peer.label) for peer in peers},
            note=note,
        )


def write_json(path: Path, report: SpeedReport) -> None:
    """Write all that was measured."""
    document = {
        "format": FORMAT,
        "benchmark": report.benchmark,
        "machine": asdict(report.machine),
        "settings": asdict(report.settings),
        "contenders": [
            {
                "label": contender.label,
                **asdict(contender),
                "about": report.about.get(contender.label, ""),
                "note": report.notes.get(contender.label, ""),
            }
            for contender in report.contenders
        ],
        "cases": [asdict(case) for case in report.cases],
        "speeds": list(_rows(report)),
    }
    _write(path, json.dumps(document, indent=1) + "\n")


def write_csv(path: Path, report: SpeedReport) -> None:
    """Write a line per case and contender."""
    rows = list(_rows(report))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["case"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _write(path, text.getvalue())


def read_turns(
    path: Path, benchmark: str, settings: SpeedSettings, machine: Machine
) -> list[CaseTurns]:
    """The rounds of an earlier run with the same settings on the same machine; [] without a file.

    Raises:
        ValueError: the file is none of ours, or was measured differently.
    """
    if not path.exists():
        return []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        found = {
            "format": document["format"],
            "benchmark": document["benchmark"],
            **document["machine"],
            **document["settings"],
        }
        cases = [_case(case) for case in document["cases"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no result of this benchmark: {error!r}") from None
    wanted = {
        "format": FORMAT,
        "benchmark": benchmark,
        **asdict(machine),
        **json.loads(json.dumps(asdict(settings))),
    }
    for name, value in wanted.items():
        if found.get(name) != value:
            raise ValueError(
                f"cannot resume: {path} was measured with {name} = {found.get(name)!r}, now it is "
                f"{value!r}; choose another --json"
            )
    return cases


def _case(content: dict[str, Any]) -> CaseTurns:
    rounds = [{label: Turn(**turn) for label, turn in turns.items()} for turns in content["rounds"]]
    return CaseTurns(content["case"], content["source_length"], rounds)


def _rows(report: SpeedReport) -> Iterator[dict[str, Any]]:
    peers = [peer.label for peer in peers_of(report.contenders)]
    for case in report.cases:
        for speed in report.speeds(case):
            yield {
                "benchmark": report.benchmark,
                "case": speed.case,
                "source_length": speed.source_length,
                "contender": speed.contender.label,
                **asdict(speed.contender),
                "rounds": speed.rounds,
                **_columns("tokens_per_second", speed.tokens_per_second),
                "sentences_per_second": speed.sentences_per_second,
                "tokens_per_sentence": speed.tokens_per_sentence,
                **_columns("ratio", speed.ratio),
                **{f"over {peer}": _median(speed.over_peers.get(peer)) for peer in peers},
                "note": speed.note,
            }


def _columns(name: str, values: Spread | None) -> dict[str, float | None]:
    return {
        name: None if values is None else values.median,
        f"{name}_lower": None if values is None else values.lower,
        f"{name}_upper": None if values is None else values.upper,
    }


def _median(values: Spread | None) -> float | None:
    return None if values is None else values.median


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())
