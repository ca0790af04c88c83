"""Speeds of training and decoding as tables for the terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.bench.rounds import CaseRounds
from relakit.bench.tables import make_table, median_text, number_text, quartiles_text
from toolkits.report import SpeedReport


def print_report(report: SpeedReport, console: Console) -> None:
    """Print a table per case, one for all groups of lengths, and which systems did not run."""
    for case in report.measured_cases(groups=False):
        console.print(_table(report, case))
    groups = report.measured_cases(groups=True)
    if groups:
        console.print(_groups_table(report, groups))
    console.print(
        "tok/s: target tokens per second, ends of sentences included; median and quartiles of the\n"
        "rounds. / X: its speed divided by X's in the same round, median; above 1 it is faster.\n"
        "softmax is relakit's, in the same precision if it was measured, else in fp32."
    )
    for label, note in report.notes.items():
        ran = any(case.of(label) for case in report.cases)
        what = "Stopped on the way" if ran else "Did not run"
        console.print(Text(f"{what}: {label}: {note}", style="yellow"))


def _table(report: SpeedReport, case: CaseRounds) -> Table:
    rounds = number_with_noun(len(case.rounds), "round")
    threads = number_with_noun(report.settings.threads, "thread")
    name = case.case if report.benchmark == "train" else f"decoding, {case.case}"
    peers = [peer.label for peer in report.peers]
    headings = ["", "tok/s", "quartiles", "sent/s", "tok/sent", "/ softmax", "quartiles"]
    over_peers = [f"/ {peer}" for peer in peers]
    speeds = report.speeds(case)
    rows = [
        [
            speed.system.label,
            median_text(speed.tokens_per_second),
            quartiles_text(speed.tokens_per_second),
            number_text(speed.sentences_per_second),
            number_text(speed.tokens_per_sentence),
            median_text(speed.ratio),
            quartiles_text(speed.ratio),
            *(median_text(speed.over_peers.get(peer)) for peer in peers),
        ]
        for speed in speeds
    ]
    dim = [number for number, speed in enumerate(speeds) if not speed.system.is_ours]
    return make_table(
        f"{name}, {rounds}, {threads}",
        [*headings, *over_peers],
        rows,
        left=("",),
        wrapped=over_peers,
        dim_rows=dim,
    )


def _groups_table(report: SpeedReport, groups: list[CaseRounds]) -> Table:
    own = [system.label for system in report.systems if system.is_ours]
    rows = []
    for case in groups:
        ratios = {speed.system.label: speed.ratio for speed in report.speeds(case)}
        length = number_text(report.source_lengths[case.case])
        rows.append([case.case, length, *(median_text(ratios[label]) for label in own)])
    title = "speed-up over softmax by source length, one sentence at a time"
    headings = ["group", "mean length", *own]
    return make_table(title, headings, rows, left=("group",), wrapped=own)
