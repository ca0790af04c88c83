"""`relakit prepare`: turn a parallel corpus into token ids."""

import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from relakit.cli.consoles import messages_console, results_console
from relakit.cli.stage_bar import stage_bar
from relakit.data.prepared_format import PrepareSettings

if TYPE_CHECKING:
    from relakit.data.parallel_files import ParallelFiles
    from relakit.data.prepared_writer import PreparedSummary

FilePair = tuple[Path, Path]
CORPUS, ENCODING, OUTPUT = "The corpus", "How to encode it", "Output"

PairOption = Annotated[
    FilePair | None,
    typer.Option(
        help="Two files whose lines correspond.", metavar="SOURCE TARGET", rich_help_panel=CORPUS
    ),
]
TableOption = Annotated[
    Path | None,
    typer.Option(help="A file with source, tab, target on each line.", rich_help_panel=CORPUS),
]


def prepare(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)
    ],
    train: PairOption = None,
    valid: PairOption = None,
    test: PairOption = None,
    train_tsv: TableOption = None,
    valid_tsv: TableOption = None,
    test_tsv: TableOption = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="A folder with train.LANG and, optionally, valid.LANG (or val, validation, dev) "
            "and test*.LANG. Needs both languages.",
            rich_help_panel=CORPUS,
        ),
    ] = None,
    source_lang: Annotated[
        str | None, typer.Option(help="The source language, such as en.", rich_help_panel=CORPUS)
    ] = None,
    target_lang: Annotated[
        str | None, typer.Option(help="The target language, such as de.", rich_help_panel=CORPUS)
    ] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(
            help=f"Tokens for both languages together. \\[default: {PrepareSettings.vocab_size}]",
            rich_help_panel=ENCODING,
        ),
    ] = None,
    separate: Annotated[
        bool,
        typer.Option(
            "--separate",
            help="Learn one tokenizer per language instead of one for both; --vocab-size then "
            "applies to each.",
            rich_help_panel=ENCODING,
        ),
    ] = False,
    max_tokens: Annotated[
        int,
        typer.Option(
            help="Drop training pairs with more tokens on a side.", rich_help_panel=ENCODING
        ),
    ] = PrepareSettings.max_tokens,
    truncate: Annotated[
        bool,
        typer.Option(
            "--truncate",
            help="Cut sentences off after --max-tokens, instead of dropping their pairs.",
            rich_help_panel=ENCODING,
        ),
    ] = False,
    sample_lines: Annotated[
        int | None,
        typer.Option(
            help="Learn the tokenizer from at most this many lines. "
            f"\\[default: {PrepareSettings.sample_lines}]",
            rich_help_panel=ENCODING,
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="A tokenizer to use instead of learning one: a tokenizer.json, including those of "
            "Hugging Face's tokenizers, or a SentencePiece .model.",
            rich_help_panel=ENCODING,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a corpus that was prepared earlier.", rich_help_panel=OUTPUT
        ),
    ] = False,
) -> None:
    """Learn one BPE for both languages of a corpus, and encode the corpus for training.

    Files are UTF-8 text, one sentence per line, plain or compressed with gzip or zstd.

    Pairs with an empty side are dropped, and so are pairs that are too long, unless --truncate
    keeps their beginnings; both are counted.
    """
    from relakit.data import prepared_writer
    from relakit.data.imported_tokenizer import import_tokenizer

    pairs = {"train": train, "valid": valid, "test": test}
    columns = {"train": train_tsv, "valid": valid_tsv, "test": test_tsv}
    splits = choose_splits(pairs, columns, folder, source_lang, target_lang)
    learning = {
        "--vocab-size": vocab_size,
        "--sample-lines": sample_lines,
        "--separate": separate or None,
    }
    for option, value in learning.items():
        if tokenizer is not None and value is not None:
            raise ValueError(f"{option} is for learning a tokenizer; leave it or --tokenizer out")
    settings = PrepareSettings(
        vocab_size=PrepareSettings.vocab_size if vocab_size is None else vocab_size,
        sample_lines=PrepareSettings.sample_lines if sample_lines is None else sample_lines,
        vocabulary="separate" if separate else PrepareSettings.vocabulary,
        max_tokens=max_tokens,
        long_sentences="truncate" if truncate else PrepareSettings.long_sentences,
        source_language=source_lang,
        target_language=target_lang,
    )
    chosen = None if tokenizer is None else import_tokenizer(tokenizer)

    messages = messages_console()
    with stage_bar(messages) as bar:
        summary = prepared_writer.prepare(
            splits, out, settings=settings, tokenizer=chosen, replace=force, on_stage=bar
        )
    render(summary, results_console())


def choose_splits(
    pairs: dict[str, FilePair | None],
    columns: dict[str, Path | None],
    folder: Path | None,
    source_language: str | None,
    target_language: str | None,
) -> "dict[str, ParallelFiles]":
    """The splits that the options name, one by one or by folder."""
    from relakit.data.parallel_files import ParallelFiles
    from relakit.data.text_folder import find_splits

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


def render(summary: "PreparedSummary", console: Console) -> None:
    """Print what was kept and what was dropped."""
    table = Table("split", box=None, pad_edge=False)
    for title in ("pairs", "kept", "empty", "too long", "source tokens", "target tokens"):
        table.add_column(title, justify="right")
    for name, counts in summary.splits.items():
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
        f"{_vocabularies(summary)}, peak memory {_peak_mib():,.0f} MiB. "
        f"The corpus is in {summary.folder}.",
        soft_wrap=True,
    )


def _vocabularies(summary: "PreparedSummary") -> str:
    if summary.source_vocabulary is None:
        return f"{summary.vocabulary:,} tokens in the vocabulary"
    return (
        f"{summary.source_vocabulary:,} tokens in the vocabulary of the source, "
        f"{summary.vocabulary:,} in that of the target"
    )


def _peak_mib() -> float:
    """The most memory that this process has used so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
