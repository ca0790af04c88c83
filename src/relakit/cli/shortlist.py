"""`relakit shortlist`: which target tokens may be in the translation of a sentence."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from relakit.align.settings import WORD_RULES
from relakit.cli.pair_job import (
    COLUMNS,
    PAIRS,
    Columns,
    InputFormat,
    Languages,
    Model,
    Source,
    Target,
    pair_files,
    pair_languages,
)
from relakit.cli.translator_options import Device, Threads, describe_models
from relakit.decode.settings import DEVICE, PRECISION, SHORTLIST_BEST, SHORTLIST_FREQUENT
from relakit.files.writing import check_writable
from relakit.model.description import SHORTLIST_FILE
from relakit.shards.cutting import SHARD_PAIRS, survey
from relakit.threads import set_threads

if TYPE_CHECKING:
    from relakit.align.make_shortlist import Coverage
    from relakit.analysis.pairs import AnalysisPair
    from relakit.data.tokenizer_pair import Tokenizers
    from relakit.decode.shortlist import Shortlist

PAIRS_TO_COVER: Final = 1000
"""How many pairs a new shortlist is evaluated on."""


def shortlist(
    model: Model,
    source: Source,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Use only this many pairs, from the start. \\[default: all]",
            rich_help_panel=PAIRS,
        ),
    ] = None,
    best: Annotated[
        int, typer.Option(min=1, help="Target tokens to keep for each source token, at most.")
    ] = SHORTLIST_BEST,
    frequent: Annotated[
        int,
        typer.Option(min=1, help="How many of the most frequent tokens every sentence may use."),
    ] = SHORTLIST_FREQUENT,
    threads: Threads = None,
    device: Device = DEVICE,
) -> None:
    """Make a lexical shortlist from a model's training text, for translate --shortlist.

    The model aligns the pairs, with the heads that relakit align has chosen or with its alignment
    layer. For every source token, the target tokens that go with it rather than with others are
    kept, in shortlist.safetensors in the model's directory. Translating a sentence then computes
    the probabilities of only these and the most frequent tokens, not of the whole vocabulary.

    For example: relakit shortlist runs/mine/model --source train.en --target train.de
    """
    from relakit.align.layer_files import heads_or_layer

    [described] = describe_models([model], threads=threads, precision=PRECISION, device=device)
    files = pair_files(
        source, target, input_format, columns, pair_languages(languages, described.about)
    )
    # Find errors before torch is loaded.
    heads_or_layer(model, described.config)
    check_writable(model / SHORTLIST_FILE)
    survey(files, SHARD_PAIRS)
    from relakit.align.aligner import Aligner
    from relakit.align.make_shortlist import count_links
    from relakit.align.pair_text import read_pairs_with_gold
    from relakit.decode.shortlist import write_shortlist

    set_threads(threads)
    aligner = Aligner.load(model, level="token", device=device)
    pairs = islice(read_pairs_with_gold(files, None, words=WORD_RULES[0]), limit)
    counts = count_links(aligner, pairs)
    made = counts.shortlist(best=best, frequent=frequent, files=[str(path) for path in files.paths])
    path = write_shortlist(model, made)
    first = islice(read_pairs_with_gold(files, None, words=WORD_RULES[0]), PAIRS_TO_COVER)
    found = _coverage(made, list(first), aligner.tokenizers)
    typer.echo(
        f"relakit: {path}, of {counts.pairs:,} pairs: a sentence may have {found.size:,.0f} of "
        f"{aligner.tokenizers.target.size:,} tokens, with {found.share:.1%} of the tokens in the "
        "first references",
        err=True,
    )


def _coverage(
    made: "Shortlist", pairs: "list[AnalysisPair]", tokenizers: "Tokenizers"
) -> "Coverage":
    from relakit.align.make_shortlist import coverage

    return coverage(
        made,
        tokenizers.source.encode_batch([pair.source for pair in pairs]),
        tokenizers.target.encode_batch([pair.target for pair in pairs]),
    )
