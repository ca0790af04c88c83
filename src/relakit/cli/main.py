"""The `relakit` command: its subcommands, its own options, and how it reports errors."""

import inspect
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from relakit.cli import bench
from relakit.cli.aer import aer
from relakit.cli.align import align
from relakit.cli.analyze import analyze
from relakit.cli.analyze_text import analyze_text
from relakit.cli.average import average
from relakit.cli.demo import demo
from relakit.cli.doctor import doctor
from relakit.cli.evaluate import evaluate
from relakit.cli.filter import filter as filter_corpus
from relakit.cli.generate import generate
from relakit.cli.prepare import prepare
from relakit.cli.reproduce import reproduce
from relakit.cli.score import score
from relakit.cli.shortlist import shortlist
from relakit.cli.train import train
from relakit.cli.train_aligner import train_aligner
from relakit.cli.translate import translate
from relakit.cli.usage_errors import PlainUsage
from relakit.cli.waiting_threads import let_threads_sleep
from relakit.files.write_errors import NO_ROOM, WriteError, reason_and_advice
from relakit.files.writing import flush_standard_output

app = typer.Typer(
    name="relakit",
    cls=PlainUsage,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _help(command: Callable[..., None]) -> str:
    """The docstring without the line breaks inside paragraphs, which typer would keep."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


COMMANDS = (
    demo,
    doctor,
    generate,
    prepare,
    train,
    average,
    translate,
    shortlist,
    evaluate,
    analyze,
    analyze_text,
    align,
    train_aligner,
    aer,
    score,
    filter_corpus,
    reproduce,
)
for command in COMMANDS:
    app.command(help=_help(command))(command)
app.add_typer(bench.app, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relakit {version('relakit')}")
        raise typer.Exit


@app.callback(epilog="RELAKIT_DEBUG=1 in the environment shows the traceback of an error.")
def options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Rectified linear attention (ReLA) for PyTorch."""


def main() -> None:
    """Run the command line. Users see their mistakes as one line, not as a traceback."""
    let_threads_sleep()  # before any command loads torch
    try:
        try:
            app()
        finally:
            flush_standard_output()  # Python would report a full disk with a traceback
    except (OSError, ValueError) as error:
        if os.environ.get("RELAKIT_DEBUG"):
            raise
        typer.echo(f"relakit: error: {_in_words(error)}", err=True)
        sys.exit(1)


def _in_words(error: OSError | ValueError) -> str:
    """An error's message, without the error numbers of the operating system."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if error.filename is None and error.errno in NO_ROOM:  # files that we write have names
        return str(WriteError("standard output", error))
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{'; '.join(filter(None, reason_and_advice(error)))}"
