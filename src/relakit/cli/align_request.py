"""A request to `relakit align`: which models to use, and where to read their links."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from relakit.align.settings import CHOICE_FILE, PAIRS_TO_KEEP_A_CHOICE
from relakit.shards.cutting import SHARD_PAIRS, survey

if TYPE_CHECKING:
    from relakit.align.choice import AlignmentChoice
    from relakit.align.settings import WordRule
    from relakit.align.work import AlignSettings
    from relakit.analysis.link_file import LinkFile
    from relakit.analysis.links import EndWeight, Reading
    from relakit.data.parallel_files import ParallelFiles


class AlignRequest:
    """Which models to use, and where to read their links."""

    def __init__(
        self, model: Path, reverse: Path | None, words: str, max_tokens: int | None
    ) -> None:
        from relakit.model.description import read_description

        self.described = read_description(model)
        self.back = None if reverse is None else read_description(reverse)
        self.model, self.reverse = model, reverse
        self.words, self.max_tokens = cast("WordRule", words), max_tokens
        self.given: AlignmentChoice | None = None

    def read_layer(
        self, layer: int, heads: Sequence[int], reading: str | None, end: str | None
    ) -> None:
        """Read the links in this layer, whatever was chosen; layers and heads count from 1."""
        from relakit.align.choice import AlignmentChoice, ChosenOn

        if len(set(heads)) < len(heads):
            raise ValueError(f"--head must name different heads, got {', '.join(map(str, heads))}")
        config = self.described.config
        self.given = AlignmentChoice(
            layer=layer - 1,
            heads=tuple(head - 1 for head in heads) or tuple(range(config.heads)),
            reading=cast("Reading", reading or "normal"),
            end=cast("EndWeight", end or "ignored"),
            chosen=ChosenOn(by="given"),
        )
        self.given.check(config, str(self.model))

    def choices(
        self, files: "ParallelFiles", limit: int
    ) -> tuple["AlignmentChoice | None", "AlignmentChoice | None"]:
        """Which heads of both models to read; None where an alignment layer is read instead.

        Heads are chosen now if none have been chosen before, and kept if enough pairs decided.
        """
        from relakit.align.layer_files import has_layer, heads_to_read

        there = self.given or heads_to_read(self.model, self.described.config)
        back = None
        if self.back is not None:
            back = heads_to_read(self.back.folder, self.back.config)
        missing = [] if there or has_layer(self.model) else [self.model]
        if self.reverse is not None and back is None and not has_layer(self.reverse):
            missing.append(self.reverse)
        if missing:
            typer.echo("relakit: nobody has chosen yet which heads to read (--select)", err=True)
            found = self._choose(files, None, limit)
            for folder, choice in found.items():
                if folder in missing:
                    self._keep(folder, choice, at_least=PAIRS_TO_KEEP_A_CHOICE)
            there = found[self.model] if self.model in missing else there
            back = found[self.reverse] if self.reverse in missing else back
        return there, back

    def select(self, files: "ParallelFiles", gold: "LinkFile | None", limit: int) -> None:
        """Choose heads on the first pairs, and save the choices."""
        from relakit.align.layer_files import has_layer

        for folder, choice in self._choose(files, gold, limit).items():
            self._keep(folder, choice)
            if has_layer(folder):
                typer.echo(
                    f"relakit: {folder} has an alignment layer, which is read instead of these "
                    "heads; relakit align --layer reads heads",
                    err=True,
                )

    def _choose(
        self, files: "ParallelFiles", gold: "LinkFile | None", limit: int
    ) -> dict[Path, "AlignmentChoice"]:
        """The best heads of each model, on the first pairs with words on both sides.

        Raises:
            OSError, ValueError: something is wrong with a model, or with any pair.
        """
        # If lines are missing further down, the first pairs may be the wrong ones, too.
        survey(files, SHARD_PAIRS)
        from relakit.align.choosing import LoadedModel, choose
        from relakit.align.pair_text import read_pairs_with_gold

        read = read_pairs_with_gold(files, gold, words=self.words)
        pairs = list(islice((pair for pair in read if pair.has_words), limit))
        names = tuple(str(path) for path in (*files.paths, *([gold.path] if gold else [])))
        forward = LoadedModel.load(self.model)
        backward = None if self.reverse is None else LoadedModel.load(self.reverse)
        there, back = choose(forward, backward, pairs, names, max_tokens=self.max_tokens)
        found = {self.model: there}
        if self.reverse is not None and back is not None:
            found[self.reverse] = back
        return found

    def _keep(self, folder: Path, choice: "AlignmentChoice", *, at_least: int = 0) -> None:
        """Save a choice in its model's directory if at least this many pairs decided; say so."""
        from relakit.align.choice import write_choice

        on = choice.chosen
        if on.pairs < at_least:
            kept = (
                f"for this run alone, as fewer than {at_least:,} pairs tell little; choose for "
                "good with --select on more text"
            )
        else:
            try:
                write_choice(folder, choice)
                kept = f"kept in {folder / CHOICE_FILE}"
            except OSError as error:
                kept = f"not kept: {error}"
        typer.echo(
            f"relakit: {folder}: {choice.in_words()}; by {on.by} ({on.value}) on {on.pairs:,} "
            f"pairs, {kept}",
            err=True,
        )

    def settings(
        self,
        there: "AlignmentChoice | None",
        back: "AlignmentChoice | None",
        named: Mapping[str, str],
    ) -> "AlignSettings":
        from relakit.align.work import AlignSettings

        settings = AlignSettings.model_validate(
            {
                "model": self.model,
                "choice": there,
                "reverse": self.reverse,
                "reverse_choice": back,
                "words": self.words,
                "max_tokens": self.max_tokens,
                **named,
            }
        )
        settings.check_layers()
        return settings
