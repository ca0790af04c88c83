"""`relakit prepare`: make a parallel corpus into token ids."""

import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from relakit.cli.preparing import preparation_bar

if TYPE_CHECKING:
    from relakit.data.corpus import ParallelFiles
    from relakit.data.prepare import PreparedReport

FilePair = tuple[Path, Path]
CORPUS, ENCODING, OUTPUT = "The corpus", "How to encode it", "Output"

PairOption = Annotated[
    FilePair | None,
    typer.Option(
        help="Files whose lines belong together.", metavar="SOURCE TARGET", rich_help_panel=CORPUS
    ),
]
TableOption = Annotated[
    Path | None, typer.Option(help="Source, tab, target.", rich_help_panel=CORPUS)
]


def prepare(
    out: Annotated[Path, typer.Argument(help="The folder to write.", show_default=False)],
    train: PairOption = None,
    valid: PairOption = None,
    test: PairOption = None,
    train_tsv: TableOption = None,
    valid_tsv: TableOption = None,
    test_tsv: TableOption = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where train.LANG is, and if there are such val(id).LANG or dev.LANG and "
            "test*.LANG. Needs both languages.",
            rich_help_panel=CORPUS,
        ),
    ] = None,
    source_lang: Annotated[
        str | None, typer.Option(help="Such as en.", rich_help_panel=CORPUS)
    ] = None,
    target_lang: Annotated[
        str | None, typer.Option(help="Such as de.", rich_help_panel=CORPUS)
    ] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(
            help="Tokens for both languages; 8000 if not given.", rich_help_panel=ENCODING
        ),
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option(help="Drop pairs with more on either side.", rich_help_panel=ENCODING),
    ] = 256,
    sample_lines: Annotated[
        int | None,
        typer.Option(
            help="Learn the tokenizer from so many lines at most; 1000000 if not given.",
            rich_help_panel=ENCODING,
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="A tokenizer.json to use instead of learning one.", rich_help_panel=ENCODING
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a corpus that was prepared earlier.", rich_help_panel=OUTPUT
        ),
    ] = False,
) -> None:
    """Learn one BPE for both languages of a corpus and encode it for training.

    Files are UTF-8 text, one sentence per line, plain or compressed with gzip or zstd.

    Pairs with an empty side and pairs that are too long are dropped and counted.
    """
    from relakit.data.prepare import PrepareSettings
    from relakit.data.prepare import prepare as run
    from relakit.data.tokenizer import Tokenizer

    pairs = {"train": train, "valid": valid, "test": test}
    columns = {"train": train_tsv, "valid": valid_tsv, "test": test_tsv}
    splits = choose_splits(pairs, columns, folder, source_lang, target_lang)
    learning = {"--vocab-size": vocab_size, "--sample-lines": sample_lines}
    for option, value in learning.items():
        if tokenizer is not None and value is not None:
            raise ValueError(f"{option} is for learning a tokenizer; leave it or --tokenizer out")
    defaults = PrepareSettings()
    settings = PrepareSettings(
        vocab_size=defaults.vocab_size if vocab_size is None else vocab_size,
        sample_lines=defaults.sample_lines if sample_lines is None else sample_lines,
        max_tokens=max_tokens,
        source_language=source_lang,
        target_language=target_lang,
    )
    chosen = None if tokenizer is None else Tokenizer.load(tokenizer)

    messages = Console(stderr=True, highlight=False)
    with preparation_bar(messages) as bar:
        report = run(splits, out, settings=settings, tokenizer=chosen, replace=force, progress=bar)
    render(report, Console(highlight=False))


def choose_splits(
    pairs: dict[str, FilePair | None],
    columns: dict[str, Path | None],
    folder: Path | None,
    source_language: str | None,
    target_language: str | None,
) -> "dict[str, ParallelFiles]":
    """The splits that the options name, one by one or as a folder."""
    from relakit.data.corpus import ParallelFiles
    from relakit.data.corpus_folder import find_splits

    named: dict[str, ParallelFiles] = {}
    for split, pair in pairs.items():
        table = columns[split]
        if pair is not None and table is not None:
            raise ValueError(f"--{split} and --{split}-tsv exclude each other; give one of them")
        if pair is not None:
            named[split] = ParallelFiles(*pair)
        elif table is not None:
            named[split] = ParallelFiles(table)
    if folder is None:
        if not named:
            raise ValueError("name the corpus: --train SOURCE TARGET, --train-tsv FILE or --folder")
        return named
    if named:
        raise ValueError(f"--folder and --{next(iter(named))} exclude each other; give one of them")
    if source_language is None or target_language is None:
        raise ValueError("--folder needs --source-lang and --target-lang, the endings of its files")
    return find_splits(folder, source_language, target_language)


def render(report: "PreparedReport", console: Console) -> None:
    """Print what was kept and what was dropped."""
    table = Table("split", box=None, pad_edge=False)
    for title in ("pairs", "kept", "empty", "too long", "source tokens", "target tokens"):
        table.add_column(title, justify="right")
    for name, counts in report.splits.items():
        numbers = (
            counts.read,
            counts.kept,
            counts.empty,
            counts.overlong,
            counts.source_tokens,
            counts.target_tokens,
        )
        table.add_row(name, *(f"{number:,}" for number in numbers))
    console.print(table)
    console.print(
        f"{report.vocabulary:,} tokens in the vocabulary, peak memory {_peak_mib():,.0f} MiB. "
        f"The corpus is in {report.folder}.",
        soft_wrap=True,
    )


def _peak_mib() -> float:
    """The most memory that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
