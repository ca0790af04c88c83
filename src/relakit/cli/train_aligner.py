"""`relakit train-aligner`: a small layer that finds a translation model's word links."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from relakit.align.settings import (
    ENOUGH_PAIRS,
    HELD_OUT,
    LAYER_FILE,
    LAYER_SEED,
    MOST_EPOCHS,
    PAIRS_TO_TEACH,
    ROUNDS,
    WORD_RULES,
)
from relakit.cli.completion import complete_model
from relakit.cli.consoles import messages_console, results_console
from relakit.cli.link_file_options import (
    first_of,
    format_of,
    link_file,
    refuse_without_file,
    reverse_of,
)
from relakit.cli.pair_job import (
    COLUMNS,
    PAIRS,
    Columns,
    InputFormat,
    Languages,
    Source,
    Target,
    pair_files,
    pair_languages,
)
from relakit.cli.stage_bar import stage_bar
from relakit.cli.translator_options import PAIR_TOKENS, Device, Threads
from relakit.decode.settings import DEVICE, known_device
from relakit.known_names import known_name
from relakit.limits import checked_threads
from relakit.threads import set_threads

if TYPE_CHECKING:
    from relakit.align.settings import WordRule
    from relakit.align.teach import AlignerTraining, TeachingResult
    from relakit.analysis.link_file import LinkFile
    from relakit.model import ModelAbout

TEACHER, VALIDATION, TRAINING = "What links are learnt from", "Validation", "Training"


def train_aligner(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="The model directory that gets the layer.",
            file_okay=False,
            show_default=False,
            autocompletion=complete_model,
        ),
    ],
    source: Source,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    words: Annotated[
        str,
        typer.Option(
            metavar="|".join(WORD_RULES),
            help="What --links and --gold count as a word. spaces: whatever stands between spaces. "
            "punctuation: the same, with punctuation marks split off. tokenized: the text already "
            "has spaces around its marks.",
            rich_help_panel=PAIRS,
        ),
    ] = "spaces",
    limit: Annotated[
        int,
        typer.Option(
            min=1, help="Use only this many pairs, from the start.", rich_help_panel=PAIRS
        ),
    ] = 100_000,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Maximum tokens on a side; longer pairs are left out. {PAIR_TOKENS}",
            rich_help_panel=PAIRS,
        ),
    ] = None,
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL2",
            help="A model for the opposite direction: the layer learns links that both models "
            "find. MODEL2 gets a layer, too. Without it, the layer learns links between words that "
            "attend most to each other in MODEL.",
            file_okay=False,
            rich_help_panel=TEACHER,
            autocompletion=complete_model,
        ),
    ] = None,
    both: Annotated[
        bool,
        typer.Option(
            "--both/--only-first",
            help="Train a layer for --reverse, too, or leave that model unchanged.",
            rich_help_panel=TEACHER,
        ),
    ] = True,
    links: Annotated[
        Path | None,
        typer.Option(
            help="Links of the pairs to learn from, instead of the models' own: from another "
            "aligner, or gold links. Possible links are left open.",
            rich_help_panel=TEACHER,
        ),
    ] = None,
    links_format: Annotated[str, format_of("--links", TEACHER)] = "auto",
    links_first: Annotated[int | None, first_of("--links", TEACHER)] = None,
    links_reverse: Annotated[bool, reverse_of("--links", TEACHER)] = False,
    valid_source: Annotated[
        Path | None,
        typer.Option(
            help="Other sentences, on which the best state of the layer is chosen. \\[default: "
            "some of --source, see --held-out]",
            rich_help_panel=VALIDATION,
        ),
    ] = None,
    valid_target: Annotated[
        Path | None,
        typer.Option(
            help="The translations of --valid-source. Without it, --valid-source holds both.",
            rich_help_panel=VALIDATION,
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Gold links of --valid-source: choose by alignment error rate, not by loss.",
            rich_help_panel=VALIDATION,
        ),
    ] = None,
    gold_format: Annotated[str, format_of("--gold", VALIDATION)] = "auto",
    gold_first: Annotated[int | None, first_of("--gold", VALIDATION)] = None,
    gold_reverse: Annotated[bool, reverse_of("--gold", VALIDATION)] = False,
    held_out: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many pairs of --source are held out, a tenth at most, if there is no "
            f"--valid-source. \\[default: {HELD_OUT}]",
            rich_help_panel=VALIDATION,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Passes over the pairs. \\[default: {MOST_EPOCHS}, but one that ends after "
            f"{ENOUGH_PAIRS:,} pairs in all is the last]",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How often layers are trained: first on links of the models' heads, then on those "
            "of the layers before, which are better. All rounds but the last use at most "
            f"{PAIRS_TO_TEACH:,} pairs. \\[default: {ROUNDS}; with --links 1]",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Train for at most this many minutes, all layers together; the links are read "
            "before that.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed for the layer's initial weights and the order of pairs. "
            f"\\[default: {LAYER_SEED}]",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Keep a new layer even if it finds no link, or does worse in its exam than the "
            "existing layer or heads.",
            rich_help_panel=VALIDATION,
        ),
    ] = False,
    threads: Threads = None,
    device: Device = DEVICE,
) -> None:
    """Train an alignment layer for a translation model, which itself does not change.

    The layer is a small rectified attention that has seen the target word. It gives better links
    than the model's own heads, or none where a word has no counterpart. It is stored in the model's
    directory (aligner.safetensors, aligner.json), and relakit align uses it from then on. The
    directory changes only at the very end; an existing layer is replaced, unless it is better.

    For example: relakit train-aligner en-de/model --reverse de-en/model --source train.en --target
    train.de
    """
    given_rule = known_name("--words", words, WORD_RULES)
    if threads is not None:
        checked_threads("--threads", threads)
    if minutes is not None and not minutes > 0:
        raise ValueError(f"--minutes must be above 0, got {minutes}")
    _check_options(reverse, both, links, rounds, valid_source, valid_target, gold, held_out)
    refuse_without_file("--links", links, links_format, links_first, links_reverse)
    refuse_without_file("--gold", gold, gold_format, gold_first, gold_reverse)
    known_device(device)
    about = _check_models(model, reverse, both)

    def read(source: Path, target: Path | None, links: "LinkFile | None", limit: int | None) -> Any:
        from relakit.align.pair_text import LinkedPairs

        named = pair_languages(languages, about)
        files = pair_files(source, target, input_format, columns, named)
        # If no file counts words, it is better to split a full stop from the word before it: it
        # has a link of its own.
        splits = given_rule == "spaces" and links is None
        rule: WordRule = "punctuation" if splits else given_rule
        return LinkedPairs(files, links, words=rule, limit=limit)

    learnt = gold_links = None
    if links is not None:
        learnt = link_file("--links", links, links_format, links_first, links_reverse)
    if gold is not None:
        gold_links = link_file("--gold", gold, gold_format, gold_first, gold_reverse)
    pairs = read(source, target, learnt, limit)
    valid = None
    if valid_source is not None:
        valid = read(valid_source, valid_target, gold_links, None)
    paths = (source, target, links, valid_source, valid_target, gold)
    given = {"epochs": epochs, "minutes": minutes, "seed": seed}
    set_threads(threads)
    from relakit.align.teach import AlignerTraining
    from relakit.align.train_layer import LayerSettings

    request = AlignerTraining(
        model=model,
        reverse=reverse,
        both=both and reverse is not None,
        pairs=pairs,
        by_links=links is not None,
        rounds=rounds,
        valid=valid,
        files=tuple(str(path) for path in paths if path is not None),
        settings=LayerSettings(**{k: v for k, v in given.items() if v is not None}),  # type: ignore[arg-type]
        max_tokens=max_tokens,
        device=device,
        force=force,
        **({} if held_out is None else {"held_out": held_out}),
    )
    _run(request)


def _check_options(
    reverse: Path | None,
    both: bool,
    links: Path | None,
    rounds: int | None,
    valid_source: Path | None,
    valid_target: Path | None,
    gold: Path | None,
    held_out: int | None,
) -> None:
    if not both and reverse is None:
        raise ValueError("--only-first is about the model of --reverse; give it, too")
    if links is not None and rounds is not None and rounds > 1:
        raise ValueError(
            f"--links {links} gives the same links in every round; leave --rounds {rounds} out"
        )
    for option, path in (("--gold", gold), ("--valid-target", valid_target)):
        if path is not None and valid_source is None:
            raise ValueError(f"{option} is about the pairs of --valid-source; give these, too")
    if links is not None and valid_source is not None and gold is None:
        raise ValueError(
            f"--links {links} tells the links of --source alone, and --valid-source {valid_source} "
            "has none; give its links with --gold, or leave --valid-source out"
        )
    if held_out is not None and valid_source is not None:
        raise ValueError("--held-out and --valid-source exclude each other; give one")


def _check_models(model: Path, reverse: Path | None, both: bool) -> "ModelAbout":
    """What is known about the first model, if both can be used and can get their layers."""
    from relakit.align.directions import check_opposite_languages
    from relakit.files.writing import check_writable
    from relakit.model.description import read_description

    described = [read_description(folder) for folder in (model, reverse) if folder is not None]
    for one in described:
        one.check_tokenizers()
    if reverse is not None:
        check_opposite_languages(described[0].about, described[1].about)
    for one in described if both else described[:1]:
        check_writable(one.folder / LAYER_FILE)
    return described[0].about


def _run(request: "AlignerTraining") -> None:
    from relakit.align.teach import train_aligners

    console = messages_console()
    with stage_bar(console) as bar:
        result = train_aligners(request, bar)
    if result.left_out:
        typer.echo(
            f"relakit: {result.left_out:,} pairs are left out: no words on a side, or too many "
            "tokens (--max-tokens)",
            err=True,
        )
    _print(result)


def _print(result: "TeachingResult") -> None:
    from relakit.align.layer_files import layer_weights

    console = results_console()
    scores = result.layers[0].trained.scores
    against = "gold links" if scores.against == "gold" else "the links that were to be learnt"
    console.print(
        f"{scores.pairs:,} pairs that were not trained on, against {against}, each direction alone:"
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for title in ("AER", "precision", "recall", "loss"):
        table.add_column(title, justify="right")
    for layer in result.layers:
        found = layer.trained.scores
        numbers = (found.aer, found.precision, found.recall, found.loss)
        cells = ["-" if number is None else f"{number:.3f}" for number in numbers]
        table.add_row(Text(str(layer.folder)), *cells)
        for rival in layer.rivals:
            table.add_row(Text(f"  {rival.what} so far"), f"{rival.aer:.3f}")
    console.print(table)
    for layer in result.layers:
        console.print(f"layer: {layer_weights(layer.folder)}", soft_wrap=True)
