"""`relakit translate`: lines in, translations out."""

import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from relakit.align.source_lines import SourceLine, source_lines
from relakit.cli.consoles import messages_console
from relakit.cli.link_options import AlignmentLevel, KeepMarkup, Linking, WithAlignment
from relakit.cli.prefix_input import PrefixColumn, PrefixFile, with_prefixes
from relakit.cli.standard_streams import file_or_stream, shows_bar
from relakit.cli.translation_output import (
    OUTPUT_FORMAT,
    OUTPUT_FORMATS,
    LinkReport,
    Printed,
    known_format,
)
from relakit.cli.translator_options import (
    Device,
    MaxTokens,
    ModelFolder,
    MoreModels,
    PrecisionName,
    Threads,
    TooLongName,
    WithShortlist,
    describe_models,
    fitting_lines,
    load_translator,
    named_models,
    with_search_options,
)
from relakit.cli.waiting_input import interruptible
from relakit.decode.settings import (
    DEVICE,
    PRECISION,
    TOO_LONG,
    WINDOW,
    SearchSettings,
    known_too_long,
)
from relakit.files.output_paths import refuse_inputs
from relakit.files.writing import check_writable, opened_output

if TYPE_CHECKING:
    from relakit.align.linked_translator import LinkedHypothesis

INPUT_OUTPUT = "Input and output"
STANDARD_INPUT = "standard input"
BLOCK_BYTES = 1 << 20


@with_search_options
def translate(
    model: ModelFolder = None,
    more_models: MoreModels = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="The file to translate, plain, gzip or zstd. \\[default: standard input, as "
            "with -]",
            rich_help_panel=INPUT_OUTPUT,
        ),
    ] = None,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            help="The file to write; it appears once everything is translated. \\[default: "
            "standard output, as with -]",
            rich_help_panel=INPUT_OUTPUT,
        ),
    ] = None,
    nbest: Annotated[
        int | None,
        typer.Option(
            "--nbest",
            "--n-best",
            help="Print this many translations of each line, at most --beam (with --sample any "
            "number), as 'index ||| text ||| score'; the index counts lines from 0.",
            rich_help_panel=INPUT_OUTPUT,
        ),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Print the score and a tab before each translation.",
            rich_help_panel=INPUT_OUTPUT,
        ),
    ] = False,
    interactive: Annotated[
        bool,
        typer.Option(
            "--interactive",
            help="Answer each line before reading the next, as on a terminal. Otherwise many lines "
            "are read at a time and sorted by length, which is faster.",
            rich_help_panel=INPUT_OUTPUT,
        ),
    ] = False,
    output_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(OUTPUT_FORMATS),
            help="json: one object per translation, with index, text, score and whatever else was "
            "asked for.",
            rich_help_panel=INPUT_OUTPUT,
        ),
    ] = OUTPUT_FORMAT,
    alignment: WithAlignment = False,
    alignment_level: AlignmentLevel = None,
    keep_markup: KeepMarkup = False,
    prefix_file: PrefixFile = None,
    prefix_column: PrefixColumn = False,
    max_tokens: MaxTokens = None,
    too_long: TooLongName = TOO_LONG,
    threads: Threads = None,
    precision: PrecisionName = PRECISION,
    shortlist: WithShortlist = False,
    device: Device = DEVICE,
    *,
    search: SearchSettings,
) -> None:
    """Translate text line by line, in order.

    One sentence per line, UTF-8. A line that is empty or blank gives an empty line. A score is the
    log-probability of a translation divided by the length penalty.
    """
    input_file, output_file = file_or_stream(input_file), file_or_stream(output_file)
    known_too_long(too_long)
    format = known_format(output_format)
    if scores and (nbest is not None or format == "json"):
        other = "--format json" if nbest is None else "--nbest"
        raise ValueError(f"--scores has no effect with {other}, which prints scores; leave it out")
    linking = Linking.asked(alignment, alignment_level, keep_markup, format)
    printed = Printed(
        format=format,
        as_nbest=nbest is not None,
        scores=scores,
        level=linking.level,
        keep_markup=keep_markup,
    )
    settings = replace(search, nbest=1 if nbest is None else nbest)
    models = named_models(model, more_models)
    if not models:
        raise typer.BadParameter("name a model directory", param_hint="MODEL")
    if input_file is None and sys.stdin is None:
        raise ValueError("standard input is closed; redirect it, or give --input")
    if output_file is not None:
        inputs = {"MODEL": models, "--input": input_file, "--prefix-file": prefix_file}
        if input_file is None:
            inputs["standard input"] = _standard_input()
        if output_file.is_dir():
            check_writable(output_file)  # says what is wrong with a folder
        refuse_inputs("--output", output_file, inputs)
    described = describe_models(
        models, threads=threads, precision=precision, device=device, shortlist=shortlist
    )
    linking.check(described[0])
    answers_at_once = interactive or (input_file is None and sys.stdin.isatty())
    name = input_file or STANDARD_INPUT
    with (
        suppress(BrokenPipeError),  # whoever reads the translations has stopped reading
        _lines(input_file) as lines,
        opened_output(output_file) as output,
        _progress(input_file, output_file) as counted,
    ):
        texts, prefixes = with_prefixes(lines, prefix_file, column=prefix_column, name=name)
        fit = partial(
            fitting_lines, model=described[0], max_tokens=max_tokens, too_long=too_long, name=name
        )
        read = source_lines(texts, keep_markup=keep_markup, fit=fit)
        if not interactive and not _may_wait(input_file):
            read = _with_first_read(read)  # before torch is loaded, which takes seconds
        translator = load_translator(
            models, threads=threads, precision=precision, device=device, shortlist=shortlist
        )
        linked = linking.translator(translator, models[0])
        found = linked.stream(
            read,
            window=1 if answers_at_once else WINDOW,
            prefixes=prefixes,
            **asdict(settings),
        )
        report = LinkReport(name, linked.max_tokens)
        for index, hypotheses in enumerate(counted(found)):
            lines_out = printed.lines(index, hypotheses, translator.tokenizers)
            output.write("".join(lines_out).encode())
            report.add(index, hypotheses)
            if answers_at_once:
                output.flush()
        report.end()


def count_lines(path: Path | None) -> int | None:
    """How many lines there will be; None if we would have to wait for them."""
    if path is not None:
        from relakit.data.lines import read_lines

        return sum(1 for _ in read_lines(path)) if path.is_file() else None
    if not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        return None
    stream = sys.stdin.buffer
    start = stream.tell()
    count = sum(block.count(b"\n") for block in iter(lambda: stream.read(BLOCK_BYTES), b""))
    stream.seek(start)
    return count


Found = Iterable["list[LinkedHypothesis]"]
Counted = Callable[[Found], Found]


@contextmanager
def _progress(path: Path | None, output: Path | None) -> Generator[Counted, None, None]:
    """Yields a function that counts what passes through it, on a bar if a terminal can show one."""
    messages = messages_console()
    total = count_lines(path) if shows_bar(messages, output) else None
    if total is None:
        yield lambda found: found
        return
    columns = (TextColumn("translating"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        yield lambda found: progress.track(found, total=total)


def _may_wait(path: Path | None) -> bool:
    """Whether a read may have to wait for a writer; the model can be loaded meanwhile."""
    try:
        mode = os.stat(sys.stdin.fileno() if path is None else path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _with_first_read(lines: Iterator[SourceLine]) -> Iterator[SourceLine]:
    """The same lines, of which the first, or all, have been read and found to be good."""
    first: list[SourceLine] = []
    size = 0
    while size < BLOCK_BYTES and len(first) < WINDOW:
        line = next(lines, None)
        if line is None:
            break
        first.append(line)
        size += len(line.text)
    return chain(first, lines)


@contextmanager
def _lines(path: Path | None) -> Generator[Iterator[str], None, None]:
    from relakit.data.lines import decode_lines, read_lines

    if path is not None:
        yield read_lines(path)
    else:
        with interruptible(sys.stdin.buffer) as stream:
            yield decode_lines(STANDARD_INPUT, stream)


def _standard_input() -> Path | None:
    """What standard input was redirected from, if it has a name."""
    try:
        path = Path(f"/dev/fd/{sys.stdin.fileno()}")
    except (OSError, ValueError):
        return None
    return path if path.exists() else None
