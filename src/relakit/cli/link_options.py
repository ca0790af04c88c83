"""Options for links and markup in translations, and the translator that they ask for."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relakit.align.settings import LEVELS, Level
from relakit.known_names import known_name

if TYPE_CHECKING:
    from relakit.align.linked_translator import LinkedTranslator
    from relakit.decode.translator import Translator
    from relakit.model.description import ModelDescription

LINKS = "Links and markup"

WithAlignment = Annotated[
    bool,
    typer.Option(
        "--alignment",
        help="After each translation, print ' ||| ' and the links between its words and those of "
        "the line: 0-0 1-2, source first, counted from 0. Needs an alignment layer (relakit "
        "train-aligner) or chosen heads (relakit align --select). With --keep-markup, only for "
        "--format json.",
        rich_help_panel=LINKS,
    ),
]
AlignmentLevel = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(LEVELS),
        help="With --alignment: link words, which are split at spaces, or the model's tokens. "
        "\\[default: word]",
        rich_help_panel=LINKS,
    ),
]
KeepMarkup = Annotated[
    bool,
    typer.Option(
        "--keep-markup",
        help="Translate the text without inline tags (<b>...</b>, <br/>), placeholders ({0}, %s, "
        "${name}) and entities (&nbsp;), and put these into the translation where the links say. "
        "Markup that finds no place is reported. Needs the same as --alignment.",
        rich_help_panel=LINKS,
    ),
]


@dataclass(frozen=True)
class Linking:
    """What is requested besides translations."""

    level: Level | None
    """What is linked; None: no links are requested"""
    keep_markup: bool

    @classmethod
    def asked(cls, alignment: bool, level: str | None, keep_markup: bool, format: str) -> "Linking":
        """Made from the options; ValueError if they do not go together."""
        known = None if level is None else known_name("--alignment-level", level, LEVELS)
        if known is not None and not alignment:
            raise ValueError("--alignment-level is for --alignment; add that, or leave it out")
        if alignment and keep_markup and format != "json":
            raise ValueError(
                "--alignment numbers words without markup, so with --keep-markup it needs --format "
                "json, which has both sides without it; add that, or leave one of both out"
            )
        return cls((known or "word") if alignment else None, keep_markup)

    def check(self, model: "ModelDescription") -> None:
        """Raise ValueError, before torch is loaded, if the model has nothing to read links from."""
        from relakit.align.layer_files import heads_or_layer, read_layer_about

        if self.level is None and not self.keep_markup:
            return
        _, with_layer = heads_or_layer(model.folder, model.config)
        if with_layer:
            read_layer_about(model.folder)

    def translator(self, translator: "Translator", folder: Path) -> "LinkedTranslator":
        """The translator for this request, with links as the first model's directory says."""
        from relakit.align.hypotheses import aligner_of
        from relakit.align.linked_translator import LinkedTranslator

        return LinkedTranslator(
            translator,
            links=None if self.level is None else aligner_of(translator, folder, level=self.level),
            markup=aligner_of(translator, folder) if self.keep_markup else None,
        )
