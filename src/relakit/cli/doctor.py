"""`relakit doctor`: prints what `doctor_checks` finds, for people or as JSON."""

import json
import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.amounts import number_with_noun
from relakit.cli.consoles import messages_console, results_console
from relakit.cli.doctor_checks import Diagnosis, examine

if TYPE_CHECKING:
    from relakit.cli.doctor_speed import SpeedVerdict


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
    speed: Annotated[
        bool,
        typer.Option(
            "--speed",
            help="Spend twenty seconds measuring whether ReLA is faster than softmax here.",
        ),
    ] = False,
) -> None:
    """Show versions, the processor, and which attention backends work on this machine.

    Every backend that can run here is tried and compared with the reference. The exit code is 0 if
    attention works with the default settings, otherwise 1.
    """
    logging.disable(logging.WARNING)  # the tables say what would be logged
    try:
        diagnosis = examine()
    finally:
        logging.disable(logging.NOTSET)
    console = results_console()
    if not as_json:
        render(diagnosis, console)
    verdict = None if diagnosis.problems or not speed else _measured()
    if as_json:
        measured = {} if verdict is None else {"speed": asdict(verdict)}
        typer.echo(json.dumps({**to_json(diagnosis), **measured}, indent=2))
    elif verdict is not None:
        render_speed(verdict, console)
    if diagnosis.problems:
        raise typer.Exit(1)


def _measured() -> "SpeedVerdict":
    from relakit.cli.doctor_speed import measure_speed

    messages = messages_console()
    with messages.status("measuring the speed") as status:
        return measure_speed(lambda what: status.update(f"measured: {what}"))


def render_speed(verdict: "SpeedVerdict", console: Console) -> None:
    """Print what was measured, then what it means."""
    table = Table("with one thread", "zeros", "softmax's time / ReLA's", "quartiles")
    for case in verdict.cases:
        zeros = "" if case.zeros is None else f"{case.zeros:.0f}%"
        ratio = case.ratio
        table.add_row(
            case.what, zeros, f"{ratio.median:.2f}", f"{ratio.lower:.2f}-{ratio.upper:.2f}"
        )
    if verdict.cases:
        console.print(table)
    console.print(Text(verdict.sentence, style="bold"))
    for reason in verdict.reasons:
        console.print(Text(f"- {reason}"))


def to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values, with `works` beside every list of problems."""

    def with_verdict(value: Any) -> Any:
        if isinstance(value, list):
            return [with_verdict(item) for item in value]
        if isinstance(value, dict):
            result = {key: with_verdict(item) for key, item in value.items()}
            if "problems" in value:
                result["works"] = not value["problems"]
            return result
        return value

    plain: dict[str, Any] = with_verdict(asdict(diagnosis))
    return plain


def render(diagnosis: Diagnosis, console: Console) -> None:
    """Print the diagnosis for people."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for label, value in _facts(diagnosis):
        facts.add_row(label, Text(value))
    console.print(facts)

    if diagnosis.backends:
        table = Table("backend", "works", "what it is, and what is wrong")
        for backend in diagnosis.backends:
            lines = [backend.description, *(f"- {problem}" for problem in backend.problems)]
            verdict = Text("no", style="red") if backend.problems else Text("yes", style="green")
            table.add_row(backend.name, verdict, Text("\n".join(lines)))
        console.print(table)
    if diagnosis.choices:
        table = Table("a plain call of", "runs on", "why not on another")
        for choice in diagnosis.choices:
            lines = [
                f"{name}: {'; '.join(reasons)}" for name, reasons in choice.passed_over.items()
            ]
            table.add_row(
                choice.activation,
                choice.backend or "none",
                Text("\n".join(choice.problems or lines)),
            )
        console.print(table)

    for setting in diagnosis.environment:
        for problem in setting.problems:
            console.print(Text(f"In the environment: {problem}", style="bold red"))
    for problem in diagnosis.problems:
        console.print(Text(f"Attention does not work: {problem}", style="bold red"))
    if not diagnosis.problems:
        console.print(Text("ReLU attention works."))


def _facts(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    native, torch = diagnosis.native, diagnosis.torch
    facts = [
        ("relakit", diagnosis.relakit),
        ("Python", diagnosis.python),
        ("system", diagnosis.system),
        ("CPU", diagnosis.cpu),
    ]
    if native.problems:
        facts.append(("C++ extension", f"not available: {'. '.join(native.problems)}"))
    else:
        usable = [name for name, has_it in native.cpu_features.items() if has_it]
        missing = [name for name, has_it in native.cpu_features.items() if not has_it]
        facts += [
            ("C++ extension", f"built with {native.compiler}"),
            ("CPU has", " ".join(usable) or "no known instruction set"),
            ("CPU lacks", " ".join(missing) or "nothing we know of"),
            ("kernels for", f"{' '.join(native.kernels)}, best first"),
        ]
    if torch is None:
        facts.append(("PyTorch", "cannot be imported"))
    else:
        cuda = ", ".join(torch.cuda_devices) or "no usable device"
        threads = number_with_noun(torch.threads, "thread")
        facts += [
            ("PyTorch", f"{torch.version}, {torch.cpu_capability}, {threads}"),
            ("CUDA", f"{torch.cuda}: {cuda}" if torch.cuda else "not in this build of PyTorch"),
        ]
    facts.append(("translation", diagnosis.translation))
    facts += [(setting.variable, setting.value) for setting in diagnosis.environment]
    return facts
