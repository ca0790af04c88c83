"""The options of commands that read sentence pairs, and where they say that these are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

if TYPE_CHECKING:
    from relakit.data.parallel_files import PairFormat, ParallelFiles
    from relakit.model.description import ModelAbout

PAIRS: Final = "The pairs"
AUTO: Final = "auto"
_FORMATS: Final = (AUTO, "tsv", "bars", "tmx")

SourceFile = Annotated[
    Path,
    typer.Option(
        "--source",
        metavar="FILE",
        help="Sentences, one per line, or both sides of the pairs; plain, gzip or zstd.",
        rich_help_panel=PAIRS,
    ),
]
TargetFile = Annotated[
    Path | None,
    typer.Option(
        "--target",
        metavar="FILE",
        help="Their translations, line by line. \\[default: --source has them, too]",
        rich_help_panel=PAIRS,
    ),
]
InputFormat = Annotated[
    str,
    typer.Option(
        metavar="|".join(_FORMATS),
        help="How --source has both sides: in columns with tabs between them, as 'source ||| "
        "target', or as a translation memory. auto: by its name and its first line.",
        rich_help_panel=PAIRS,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE,TARGET",
        help="Columns of a tsv: by number from 1, or by their names in its first line. "
        "\\[default: 1,2]",
        rich_help_panel=PAIRS,
    ),
]
SourceLang = Annotated[
    str | None,
    typer.Option(
        metavar="LANG",
        help="Of a tmx, such as en. \\[default: the model's]",
        rich_help_panel=PAIRS,
    ),
]
TargetLang = Annotated[
    str | None,
    typer.Option(
        metavar="LANG",
        help="Of a tmx, such as de. \\[default: the model's]",
        rich_help_panel=PAIRS,
    ),
]


def named_pairs(
    source: Path,
    target: Path | None,
    *,
    input_format: str,
    columns: str | None,
    source_lang: str | None,
    target_lang: str | None,
    about: "ModelAbout",
) -> "ParallelFiles":
    """The pairs that options name; ``about`` knows the model's languages.

    Raises:
        OSError, ValueError: options that do not go together, or a file that is not there.
    """
    from relakit.data.parallel_files import ParallelFiles, guess_format

    for option, path in (("--source", source), ("--target", target)):
        if path is not None and not path.exists():
            raise FileNotFoundError(f"{option} {path}: there is no such file")
        if path is not None and path.is_dir():
            raise IsADirectoryError(f"{option} {path}: it is a folder")
    if input_format not in _FORMATS:
        raise ValueError(
            f"--input-format must be one of {', '.join(_FORMATS)}, got {input_format!r}"
        )
    given = {
        "--columns": columns,
        "--source-lang": source_lang,
        "--target-lang": target_lang,
        "--input-format": None if input_format == AUTO else input_format,
    }
    if target is not None:
        _refuse(given, given, "is for a --source with both sides; leave it or --target out")
        return ParallelFiles(source, target)
    is_guessed = input_format == AUTO and columns is None and source.is_file()
    known = "tsv" if input_format == AUTO else input_format
    found = guess_format(source) if is_guessed else cast("PairFormat", known)
    if found != "tsv":
        _refuse(given, ("--columns",), f"is for tables, {source} is read as {found}")
    if found != "tmx":
        _refuse(given, ("--source-lang", "--target-lang"), f"is for a tmx, {source} is a {found}")
        return ParallelFiles(source, format=found, columns=_two_columns(columns))
    languages = (source_lang or about.source_language, target_lang or about.target_language)
    both = None if None in languages else cast("tuple[str, str]", languages)
    return ParallelFiles(source, format="tmx", languages=both)


def _refuse(given: dict[str, str | None], names: object, why: str) -> None:
    for name, value in given.items():
        if value is not None and name in cast("tuple[str, ...]", names):
            raise ValueError(f"{name} {value} {why}")


def _two_columns(columns: str | None) -> tuple[str, str]:
    from relakit.data.parallel_files import ParallelFiles

    if columns is None:
        return ParallelFiles.columns
    parts = [part.strip() for part in columns.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f"--columns must name two, with a comma between them, such as 1,2 or en,de, got "
            f"{columns!r}"
        )
    return parts[0], parts[1]
