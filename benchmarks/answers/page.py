"""The page that shows how commands answer."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from answers.case import Outcome

QUICK: Final = 1.0
"""CPU seconds that help or an error may take."""
SLOWEST: Final = 10
ABOUT: Final = """\
# How errors are answered

Written by `python benchmarks/error_answers.py`. Each case ran in a process of its own, in a fresh
copy of a folder with a corpus, a model, a run and texts, of which one thing was broken. It passes
if it ends with the expected code and line, without a traceback or words of libraries, changes no
file, and stays below {max_mib:,.0f} MiB. Seconds are those of the processor (user and system),
which other work on the machine hardly lengthens; MiB are the most that the process had in memory.
"""


def write_page(
    named: Mapping[str, Sequence[Outcome]],
    helps: Sequence[Outcome],
    tables: Mapping[str, Sequence[Outcome]],
    *,
    max_mib: float,
    left_out: Sequence[str] = (),
) -> str:
    """The results for people: named cases one by one, and the extremes of the fault tables."""
    everything = [*_all(named), *helps, *_all(tables)]
    lines = [ABOUT.format(max_mib=max_mib), *_summary(everything), ""]
    for title, outcomes in named.items():
        lines += [f"## {title}", "", *_answers(outcomes), ""]
    lines += ["## Help", "", *_measured(helps), ""]
    lines += ["## All other errors", "", *_tables(tables), ""]
    slow = [o for o in _all(tables) if o.ended.cpu_seconds > QUICK]
    slow.sort(key=lambda outcome: -outcome.ended.cpu_seconds)
    if slow:
        lines += [
            f"More than {QUICK:g} s took {len(slow)} of them, mostly to load PyTorch:",
            "",
            *_measured(slow),
            "",
        ]
    quick = sorted(
        (o for o in _all(tables) if o not in slow), key=lambda outcome: -outcome.ended.cpu_seconds
    )
    lines += [f"The slowest {SLOWEST} of the others:", "", *_answers(quick[:SLOWEST]), ""]
    lines += [f"Not tried here: {name}." for name in left_out]
    lines.append(f"Python {platform.python_version()}, {platform.system()}.")
    return "\n".join(lines) + "\n"


def _all(groups: Mapping[str, Sequence[Outcome]]) -> list[Outcome]:
    return [outcome for outcomes in groups.values() for outcome in outcomes]


def _summary(outcomes: Sequence[Outcome]) -> list[str]:
    errors = [o for o in outcomes if o.ended.code in (1, 2)]
    quick = sum(o.ended.cpu_seconds <= QUICK for o in errors)
    slowest = max(errors or outcomes, key=lambda o: o.ended.cpu_seconds)
    largest = max(outcomes, key=lambda o: o.ended.peak_mib)
    problems = [f"- {o.case.row.broken}: {problem}" for o in outcomes for problem in o.problems]
    return [
        f"{len(outcomes)} cases, {len(errors)} of them errors: "
        f"{sum(o.has_traceback for o in outcomes)} tracebacks, {len(problems)} problems. "
        f"{quick} of the errors were answered within {QUICK:g} s; the longest took "
        f"{slowest.ended.cpu_seconds:.2f} s ({slowest.case.row.broken}). The most memory was "
        f"{largest.ended.peak_mib:,.0f} MiB ({largest.case.row.broken}).",
        *(["", *problems] if problems else []),
    ]


def _answers(outcomes: Iterable[Outcome]) -> list[str]:
    lines = ["| case | answer | seconds | MiB |", "|---|---|---|---|"]
    for outcome in outcomes:
        answer = f"`{_cell(outcome.answer)}`" if outcome.answer else "done, as it should be"
        lines.append(f"| {_cell(outcome.case.row.broken)} | {answer} | {_numbers(outcome)} |")
    return lines


def _measured(outcomes: Iterable[Outcome]) -> list[str]:
    lines = ["| command | seconds | MiB |", "|---|---|---|"]
    for outcome in outcomes:
        lines.append(f"| {_cell(outcome.case.row.broken)} | {_numbers(outcome)} |")
    return lines


def _tables(tables: Mapping[str, Sequence[Outcome]]) -> list[str]:
    lines = [
        "The rows of the tables in [tests/faults](../tests/faults), with the median and the most.",
        "",
        "| table | errors | as expected | seconds | MiB |",
        "|---|---|---|---|---|",
    ]
    for name, outcomes in tables.items():
        if not outcomes:
            continue
        right = sum(not outcome.problems for outcome in outcomes)
        seconds = sorted(outcome.ended.cpu_seconds for outcome in outcomes)
        peaks = sorted(outcome.ended.peak_mib for outcome in outcomes)
        middle = len(outcomes) // 2
        lines.append(
            f"| {name} | {len(outcomes)} | {right} | {seconds[middle]:.2f}, {seconds[-1]:.2f} | "
            f"{peaks[middle]:,.0f}, {peaks[-1]:,.0f} |"
        )
    return lines


def _numbers(outcome: Outcome) -> str:
    return f"{outcome.ended.cpu_seconds:.2f} | {outcome.ended.peak_mib:,.0f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
