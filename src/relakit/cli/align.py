"""`relakit align`: links between the words of sentence pairs."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from relakit.align.settings import (
    ALIGNMENT_FORMATS,
    CHOICE_FILE,
    LEVELS,
    PAIRS_TO_CHOOSE_ON,
    SYMMETRIZATION,
    SYMMETRIZATIONS,
    WORD_RULES,
)
from relakit.cli.completion import complete_model
from relakit.cli.link_file_options import first_of, format_of, link_file, reverse_of
from relakit.cli.pair_job import (
    COLUMNS,
    ENGINE,
    OUTPUT,
    PAIRS,
    Columns,
    EngineName,
    InputFormat,
    Languages,
    Model,
    Restart,
    ShardPairs,
    Source,
    Target,
    Timeout,
    Workers,
    chosen_engine,
    pair_files,
    pair_languages,
    run_with_bar,
)
from relakit.files.output_paths import refuse_inputs
from relakit.shards.cutting import SHARD_PAIRS

if TYPE_CHECKING:
    from relakit.align.choice import AlignmentChoice
    from relakit.align.settings import WordRule
    from relakit.align.work import AlignSettings
    from relakit.analysis.link_scores import LinkFile
    from relakit.data.parallel_files import ParallelFiles
    from relakit.shards.engines import Engine

HEADS, DIRECTIONS = "Where links are read", "Both directions"


def align(
    model: Model,
    source: Source,
    target: Target = None,
    input_format: InputFormat = None,
    columns: Columns = COLUMNS,
    languages: Languages = None,
    words: Annotated[
        str,
        typer.Option(
            metavar="|".join(WORD_RULES),
            help="What a word is: what stands between spaces; punctuation marks apart from it, as "
            "relakit analyze counts; or marks that have spaces around them in the text already.",
            rich_help_panel=PAIRS,
        ),
    ] = "spaces",
    output: Annotated[
        Path | None,
        typer.Option(
            help="A line for each pair; plain, .gz or .zst. Appears when all are aligned. "
            "\\[default: standard output]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            metavar="|".join(ALIGNMENT_FORMATS),
            help="pharaoh: 0-0 1-2, source first, from 0. json: with scores, words without a link, "
            "and the null rate. text: the words themselves.",
            rich_help_panel=OUTPUT,
        ),
    ] = "pharaoh",
    level: Annotated[
        str,
        typer.Option(
            metavar="|".join(LEVELS),
            help="Link the words between spaces, or the model's tokens.",
            rich_help_panel=OUTPUT,
        ),
    ] = "word",
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A model of the other direction, by relakit train RECIPE --reverse.",
            rich_help_panel=DIRECTIONS,
            autocompletion=complete_model,
        ),
    ] = None,
    symmetrize: Annotated[
        str,
        typer.Option(
            metavar="|".join(SYMMETRIZATIONS),
            help="How the links of both directions become one set.",
            rich_help_panel=DIRECTIONS,
        ),
    ] = SYMMETRIZATION,
    select: Annotated[
        bool,
        typer.Option(
            "--select",
            help="Align nothing, but choose layer and heads on the first pairs, and keep the "
            "choice with the model.",
            rich_help_panel=HEADS,
        ),
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="Of --select: gold links of the pairs. Without them: by agreement with "
            "--reverse, or by words that are the same on both sides.",
            rich_help_panel=HEADS,
        ),
    ] = None,
    gold_format: Annotated[str, format_of("--gold", HEADS)] = "auto",
    gold_first: Annotated[int | None, first_of("--gold", HEADS)] = None,
    gold_reverse: Annotated[bool, reverse_of("--gold", HEADS)] = False,
    limit: Annotated[
        int,
        typer.Option(min=1, help="Most pairs to choose heads on.", rich_help_panel=HEADS),
    ] = PAIRS_TO_CHOOSE_ON,
    layer: Annotated[
        int | None,
        typer.Option(min=0, help="Read this layer, from 0.", rich_help_panel=HEADS),
    ] = None,
    head: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Read this head of --layer, from 0. Repeatable; their weights are averaged. "
            "\\[default: all]",
            rich_help_panel=HEADS,
        ),
    ] = None,
    reading: Annotated[
        str,
        typer.Option(
            metavar="normal|shifted",
            help="Read --layer in the step that predicts a word, or when the word is the input.",
            rich_help_panel=HEADS,
        ),
    ] = "normal",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most tokens on a side; longer pairs get no links. \\[default: 1024, or as many "
            "as fit into 256 MiB]",
            rich_help_panel=PAIRS,
        ),
    ] = None,
    workers: Workers = None,
    engine: EngineName = ENGINE,
    timeout: Timeout = None,
    shard_pairs: ShardPairs = SHARD_PAIRS,
    restart: Restart = False,
) -> None:
    """Link the words of sentence pairs, by the attention of a translation model.

    One line comes out for every pair; a pair without links, or without words, gives an empty one.
    Interrupted, the same command goes on where it stopped.

    For example: relakit align runs/mine/model --source a.en --target a.de --output links
    """
    _check_names(words, format, level, symmetrize, reading)
    if output is not None:
        inputs = {"MODEL": model, "--reverse": reverse, "--source": source, "--target": target}
        refuse_inputs("--output", output, inputs)
    if gold is not None and not select:
        raise ValueError("--gold is for --select; relakit aer scores links against gold ones")
    if head and layer is None:
        raise ValueError("--head is one of a layer: name it with --layer")
    if select and layer is not None:
        raise ValueError("--select looks for the best layer; leave --layer out")
    request = _Request(model, reverse, layer, tuple(head or ()), reading, words, max_tokens)
    known = pair_languages(languages, request.described.about)
    files = pair_files(source, target, input_format, columns, known)
    runner = chosen_engine(engine, workers, timeout)
    if select:
        links = None
        if gold is not None:
            links = link_file("--gold", gold, gold_format, gold_first, gold_reverse)
        request.select(files, links, limit)
        return
    there, back = request.choices(files, limit)
    settings = request.settings(there, back, symmetrize, format, level)
    _align(settings, files, output, runner, shard_pairs, restart)


def _check_names(words: str, format: str, level: str, symmetrize: str, reading: str) -> None:
    for option, given, known in (
        ("--words", words, WORD_RULES),
        ("--format", format, ALIGNMENT_FORMATS),
        ("--level", level, LEVELS),
        ("--symmetrize", symmetrize, SYMMETRIZATIONS),
        ("--reading", reading, ("normal", "shifted")),
    ):
        if given not in known:
            raise ValueError(f"{option} must be one of {', '.join(known)}, got {given!r}")


def _align(
    settings: "AlignSettings",
    files: "ParallelFiles",
    output: Path | None,
    engine: "Engine",
    shard_pairs: int,
    restart: bool,
) -> None:
    from relakit.align.work import TOO_LONG
    from relakit.model.description import model_digests
    from relakit.shards.run import Job

    models = {"model": settings.model, "reverse": settings.reverse}
    facts: dict[str, Any] = {
        "settings": settings.model_dump(mode="json", exclude=set(models)),
        "models": {name: model_digests(path) for name, path in models.items() if path is not None},
    }
    job = Job(settings.description(), files, facts=facts, shard_pairs=shard_pairs)
    summary = run_with_bar(job, output, engine, restart=restart)
    long = summary.counts.get(TOO_LONG, 0)
    if long:
        typer.echo(
            f"relakit: {long:,} of {summary.pairs:,} pairs are too long and have no links "
            "(--max-tokens)",
            err=True,
        )
    if output is not None:
        typer.echo(f"relakit: {summary.pairs:,} pairs aligned: {output}", err=True)


class _Request:
    """Which models are asked for, and where their links are read."""

    def __init__(
        self,
        model: Path,
        reverse: Path | None,
        layer: int | None,
        heads: tuple[int, ...],
        reading: str,
        words: str,
        max_tokens: int | None,
    ) -> None:
        from relakit.model.description import read_description

        self.described = read_description(model)
        self.back = None if reverse is None else read_description(reverse)
        self.model, self.reverse = model, reverse
        self.words, self.max_tokens = cast("WordRule", words), max_tokens
        self.given = None if layer is None else self._given(layer, heads, reading)

    def _given(self, layer: int, heads: tuple[int, ...], reading: str) -> "AlignmentChoice":
        from relakit.align.choice import AlignmentChoice, ChosenOn

        config = self.described.config
        choice = AlignmentChoice.model_validate(
            {
                "layer": layer,
                "heads": heads or tuple(range(config.heads)),
                "reading": reading,
                "chosen": ChosenOn(by="given"),
            }
        )
        choice.check(config, str(self.model))
        return choice

    def choices(
        self, files: "ParallelFiles", limit: int
    ) -> tuple["AlignmentChoice", "AlignmentChoice | None"]:
        """Where both models' links are read; chosen now, and kept, if nobody has chosen yet."""
        from relakit.align.choice import read_choice

        there = self.given or read_choice(self.model, self.described.config)
        back = None
        if self.reverse is not None and self.back is not None:
            back = read_choice(self.reverse, self.back.config)
        if there is not None and (self.reverse is None or back is not None):
            return there, back
        typer.echo("relakit: nobody has chosen yet which heads to read (--select)", err=True)
        return self.select(files, None, limit, known=(there, back))

    def select(
        self,
        files: "ParallelFiles",
        gold: "LinkFile | None",
        limit: int,
        known: tuple["AlignmentChoice | None", "AlignmentChoice | None"] = (None, None),
    ) -> tuple["AlignmentChoice", "AlignmentChoice | None"]:
        """Choose on the first pairs, and keep the choices, except those that are known already."""
        from relakit.align.choice import write_choice
        from relakit.align.choosing import choose
        from relakit.align.pair_text import read_pairs_with_gold

        read = read_pairs_with_gold(files, gold, words=self.words)
        pairs = list(islice(read, limit))
        names = tuple(str(path) for path in (*files.paths, *([gold.path] if gold else [])))
        found = choose(self.model, self.reverse, pairs, names, max_tokens=self.max_tokens)
        there, back = (old or new for old, new in zip(known, found, strict=True))
        assert there is not None
        for folder, old, new in zip((self.model, self.reverse), known, (there, back), strict=True):
            if folder is None or new is None or old is not None:
                continue
            try:
                write_choice(folder, new)
                kept = f"kept in {folder / CHOICE_FILE}"
            except OSError as error:
                kept = f"not kept: {error}"
            on = new.chosen
            typer.echo(
                f"relakit: {folder}: {new.in_words()}; by {on.by} ({on.value}) on {on.pairs:,} "
                f"pairs, {kept}",
                err=True,
            )
        return there, back

    def settings(
        self,
        there: "AlignmentChoice",
        back: "AlignmentChoice | None",
        symmetrize: str,
        format: str,
        level: str,
    ) -> "AlignSettings":
        from relakit.align.work import AlignSettings

        settings = AlignSettings.model_validate(
            {
                "model": self.model,
                "choice": there,
                "reverse": self.reverse,
                "reverse_choice": back,
                "symmetrization": symmetrize,
                "format": format,
                "level": level,
                "words": self.words,
                "max_tokens": self.max_tokens,
            }
        )
        settings.check_layers()
        return settings
