"""Options of `score` and `filter` that say how pairs are scored."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relakit.analysis.settings import BATCH_TOKENS
from relakit.cli.completion import complete_model
from relakit.cli.pair_job import COMPUTATION

if TYPE_CHECKING:
    from relakit.data.languages import LanguagePair

SCORES = "The scores"

Reverse = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        help="A directory of a model for the opposite direction, for dual cross-entropy. If both "
        "models have an alignment layer, it also helps to find unsupported words.",
        rich_help_panel=SCORES,
        autocompletion=complete_model,
    ),
]
LanguagesFrom = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        metavar="SOURCE TARGET",
        help="Clean text to learn both languages from. \\[default: what MODEL was trained on]",
        rich_help_panel=SCORES,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum tokens on a side; a longer side is scored by its beginning, and reported. "
        "\\[default: as many as fit into 256 MiB of attention]",
        rich_help_panel=SCORES,
    ),
]
BatchTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Padded tokens to compute at once; scores do not depend on it. "
        f"\\[default: {BATCH_TOKENS}]",
        rich_help_panel=COMPUTATION,
    ),
]


def learned_languages(files: tuple[Path, Path] | None) -> "LanguagePair | None":
    """What is learned about both languages from the files of --languages-from."""
    if files is None:
        return None
    from relakit.data.languages import LanguageModel, LanguagePair
    from relakit.data.lines import read_lines

    learned = []
    for path in files:
        try:
            learned.append(LanguageModel.learn(read_lines(path)))
        except ValueError as error:
            named = str(path) in str(error)
            raise ValueError(f"--languages-from {'' if named else f'{path}: '}{error}") from None
    return LanguagePair(*learned)
