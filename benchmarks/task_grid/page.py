"""`results/tasks.md`: the results of the runs and of the speed measurement."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from relakit.reproduce.markdown import table
from relakit.reproduce.statistics import Seeds
from task_grid.plan import ATTENTIONS, BASE, BRIEFLY_TUNED, FINE_TUNED, Task, TaskResult

RATES: Final = {"zeros": "zeros %", "nulls": "null queries %", "sink": "on first token %"}
HEADINGS: Final = {
    "loss": "loss (nats)",
    "bits_per_byte": "bits per byte",
    "accuracy": "accuracy %",
    **RATES,
}
PERCENT: Final = ("accuracy", *RATES)
MEASURES: Final[dict[Task, tuple[str, ...]]] = {
    "language-model": ("loss", "bits_per_byte", *RATES),
    "classifier": ("accuracy", "loss", *RATES),
}

INTRODUCTION: Final = """# Tasks beyond translation

`benchmarks/tasks.py` makes this page from the files in [`tasks/`](tasks/); do not edit it. Each
file holds one run: settings, seed, versions, processor, CPU time and numbers.
[docs/tasks.md](../docs/tasks.md) says what was tried, what it means, and how to run it again.

Numbers after ± are standard deviations over seeds. Zeros are attention weights that are exactly 0;
null queries attend to nothing. Both, like the share of attention on the first token, are means over
layers and heads.
"""


def make_page(results: Sequence[TaskResult], speed: Sequence[dict[str, Any]]) -> str:
    """The page; sections without a run say so."""
    sections = [INTRODUCTION, *_about(results)]
    sections += [
        "## Language model from scratch\n",
        _from_scratch("language-model", results, speed),
    ]
    sections += ["## Text classifier from scratch\n", _from_scratch("classifier", results, speed)]
    sections += _references(results)
    sections += ["## Converted and fine-tuned\n", _fine_tuning(results)]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _about(results: Sequence[TaskResult]) -> list[str]:
    if not results:
        return []
    data = sorted({result.data for result in results})
    cpus = sorted({result.machine.cpu for result in results})
    minutes = sum(result.cpu_seconds for result in results) / 60
    return [
        f"{len(results)} runs on {', '.join(cpus)}, {minutes:.0f} minutes of one core in all. "
        f"Texts: {', '.join(data)}.\n"
    ]


def _from_scratch(
    task: Task, results: Sequence[TaskResult], speed: Sequence[dict[str, Any]]
) -> str:
    ratios = {row["attention"]: row for row in speed if row["task"] == task}
    measures = MEASURES[task]
    rows = []
    for attention in _ordered(
        result.run.attention for result in results if result.run.task == task
    ):
        own = [x for x in results if (x.run.task, x.run.attention) == (task, attention)]
        numbers = [_mean(own, measure) for measure in measures]
        rows.append([attention, str(len(own)), *numbers, _ratio(ratios.get(attention))])
    if not rows:
        return "Not run yet.\n"
    headings = ["attention", "seeds", *(HEADINGS[name] for name in measures), "speed"]
    steps = sorted({result.run.steps for result in results if result.run.task == task})
    note = (
        f"\n{' or '.join(f'{n:,}' for n in steps)} updates. Speed is training tokens per second "
        "relative to softmax, median and quartiles of interleaved turns.\n"
    )
    return table(headings, rows) + "\n" + note


def _references(results: Sequence[TaskResult]) -> list[str]:
    first = next((x for x in results if x.run.task == "classifier"), None)
    if first is None:
        return []
    return [
        "For comparison: always the most frequent label "
        f"{first.numbers['most_frequent_label']:.1%}, a linear model on the bag of words "
        f"{first.numbers['bag_of_words']:.1%}.\n"
    ]


def _fine_tuning(results: Sequence[TaskResult]) -> str:
    tuned = [x for x in results if x.run.task == "fine-tuning" and x.run.start != BASE]
    bases = [x for x in results if x.run.task == "fine-tuning" and x.run.start == BASE]
    if not tuned:
        return "Not run yet.\n"
    counts = sorted({int(count) for result in tuned for count in result.curve})
    rows = []
    for attention, start in (*FINE_TUNED, *BRIEFLY_TUNED):
        own = [x for x in tuned if (x.run.attention, x.run.start) == (attention, start)]
        if own:
            losses = [
                _seeds([x.curve[str(n)] for x in own if str(n) in x.curve], 3) for n in counts
            ]
            numbers = [*losses, _mean(own, "zeros"), _mean(own, "nulls")]
            rows.append([attention, start, str(len(own)), *numbers])
    headings = ["attention", "start", "seeds", *(f"{n:,} updates" for n in counts)]
    text = table([*headings, RATES["zeros"], RATES["nulls"]], rows, left=2) + "\n"
    if bases:
        text += (
            "\nHeld-out loss in nats per token. The model before conversion, trained with "
            f"softmax for {bases[0].run.steps:,} updates, has {_mean(bases, 'loss')}.\n"
        )
    return text


def _ordered(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of ATTENTIONS."""
    present = set(names)
    known = [name for name in ATTENTIONS if name in present]
    return known + sorted(present - set(known))


def _mean(results: Sequence[TaskResult], measure: str) -> str:
    factor = 100.0 if measure in PERCENT else 1.0
    values = [factor * x.numbers[measure] for x in results if measure in x.numbers]
    return _seeds(values, 1 if measure in PERCENT else 3)


def _seeds(values: Sequence[float], digits: int) -> str:
    return Seeds(tuple(values)).text(digits) if values else ""


def _ratio(row: dict[str, Any] | None) -> str:
    if row is None or row["ratio"] is None:
        return "not measured"
    return f"{row['ratio']:.2f} ({row['ratio_lower']:.2f} to {row['ratio_upper']:.2f})"
