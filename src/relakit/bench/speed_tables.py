"""Speeds of training and decoding as tables for the terminal."""

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.bench.speed_results import Speed, SpeedReport
from relakit.bench.tables import number_text
from relakit.bench.timing import Spread
from relakit.bench.turns import CaseTurns, peers_of


def print_report(report: SpeedReport, console: Console) -> None:
    """A table per case, one for all groups of lengths, and who did not run."""
    for case in report.cases:
        if case.rounds and case.source_length is None:
            console.print(_table(report, case))
    groups = [case for case in report.cases if case.rounds and case.source_length is not None]
    if groups:
        console.print(_groups_table(report, groups))
    console.print(
        "tok/s: target tokens per second, ends of sentences included; median and quartiles of the\n"
        "rounds. / X: its speed divided by X's in the same round, median; above 1 it is faster.\n"
        "softmax is this toolkit's, in the same precision if it was measured, else in fp32."
    )
    for label, note in report.notes.items():
        ran = any(case.of(label) for case in report.cases)
        what = "Stopped on the way" if ran else "Did not run"
        console.print(Text(f"{what}: {label}: {note}", style="yellow"))


def _table(report: SpeedReport, case: CaseTurns) -> Table:
    settings = report.settings
    threads = f"{settings.threads} thread{'s' if settings.threads > 1 else ''}"
    rounds = f"{len(case.rounds)} round{'s' if len(case.rounds) > 1 else ''}"
    name = case.case if report.benchmark == "train" else f"decoding, {case.case}"
    table = _new_table(f"{name}, {rounds}, {threads}")
    peers = [peer.label for peer in peers_of(report.contenders)]
    table.add_column("", no_wrap=True)
    for name in ("tok/s", "quartiles", "sent/s", "tok/sent", "/ softmax", "quartiles"):
        table.add_column(name, justify="right", no_wrap=True)
    for peer in peers:
        table.add_column(f"/ {peer}", justify="right")
    for speed in report.speeds(case):
        name = speed.contender.label
        row = [name, *_speed_cells(speed), _ratio(speed.ratio), _quartiles(speed.ratio)]
        row += [_ratio(speed.over_peers.get(peer)) for peer in peers]
        table.add_row(*row, style=None if speed.contender.is_ours else "dim")
    return table


def _speed_cells(speed: Speed) -> list[str]:
    return [
        number_text(None if speed.tokens_per_second is None else speed.tokens_per_second.median),
        _quartiles(speed.tokens_per_second),
        number_text(speed.sentences_per_second),
        number_text(speed.tokens_per_sentence),
    ]


def _groups_table(report: SpeedReport, groups: list[CaseTurns]) -> Table:
    table = _new_table("speed-up over softmax by source length, one sentence at a time")
    own = [contender for contender in report.contenders if contender.is_ours]
    table.add_column("group")
    table.add_column("mean length", justify="right")
    for contender in own:
        table.add_column(contender.label, justify="right")
    for case in groups:
        speeds = {speed.contender.label: speed for speed in report.speeds(case)}
        ratios = [_ratio(speeds[contender.label].ratio) for contender in own]
        table.add_row(case.case, number_text(case.source_length), *ratios)
    return table


def _new_table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))


def _ratio(values: Spread | None) -> str:
    return "-" if values is None else number_text(values.median)


def _quartiles(values: Spread | None) -> str:
    return "-" if values is None else f"{number_text(values.lower)} to {number_text(values.upper)}"
