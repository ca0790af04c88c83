"""Options that say how to read a file of word links."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import typer

if TYPE_CHECKING:
    from relakit.analysis.gold import FirstWord, GoldFormatChoice
    from relakit.analysis.link_file import LinkFile

FORMATS: Final = "auto|pharaoh|naacl|talp"


def format_of(option: str, panel: str) -> Any:
    """The option ``OPTION-format``, for the file that ``OPTION`` names."""
    return typer.Option(metavar=FORMATS, help=f"The format of {option}.", rich_help_panel=panel)


def first_of(option: str, panel: str) -> Any:
    """The option ``OPTION-first``."""
    return typer.Option(
        min=0,
        max=1,
        help=f"The number of a sentence's first word in {option}. \\[default: the format's]",
        rich_help_panel=panel,
    )


def reverse_of(option: str, panel: str) -> Any:
    """The option ``OPTION-reverse``."""
    return typer.Option(
        f"{option}-reverse", help=f"{option} names the target word first.", rich_help_panel=panel
    )


def refuse_without_file(
    option: str, path: Path | None, format: str, first: int | None, reverse: bool
) -> None:
    """Raise ValueError if there are options for reading a file, but no file."""
    given = {"format": format != "auto", "first": first is not None, "reverse": reverse}
    for name, is_given in given.items():
        if is_given and path is None:
            raise ValueError(f"{option}-{name} is about the file of {option}; give it, too")


def link_file(
    option: str,
    path: Path,
    format: str,
    first: int | None,
    reverse: bool,
    *,
    is_read_once: bool = False,
) -> "LinkFile":
    """The file that an option names, and how to read it; ValueError for a pipe that is read twice.

    ``is_read_once``: it is, unless its format has to be found first.
    """
    from relakit.analysis.link_file import LinkFile
    from relakit.shards.cutting import check_read_twice

    if not is_read_once:
        check_read_twice(path, "links", option=option)
    elif format == "auto":
        advice = f", or name their format with {option}-format"
        check_read_twice(path, "links", option=option, advice=advice)
    return LinkFile(
        path=path,
        format=cast("GoldFormatChoice", format),
        first=cast("FirstWord | None", first),
        reverse=reverse,
        option=option,
    )
