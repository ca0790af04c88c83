"""`relakit generate`: an English-German corpus about which everything is known."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from relakit.cli.consoles import messages_console, results_console
from relakit.cli.stage_bar import stage_bar
from relakit.data.generator_settings import SEED, SIZES, Split, known_split
from relakit.data.noise_draw import NOISE_KINDS, NoiseKind, check_shares, known_noise
from relakit.limits import MAX_PAIRS

if TYPE_CHECKING:
    from relakit.data.generated import GeneratedCounts

OTHERS = tuple(split for split in SIZES if split != "train")
OTHER_SIZES = ", ".join(f"{split}={SIZES[split]}" for split in OTHERS)

Key = TypeVar("Key", bound=str)
Number = TypeVar("Number", int, float)


def generate(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)
    ],
    pairs: Annotated[int, typer.Option(help="Number of training pairs.", show_default=False)],
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PAIRS",
            help="The size of another split; 0 leaves it out. Repeatable. "
            f"\\[default: {OTHER_SIZES}]",
        ),
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=SHARE",
            help=f"Make a share of the training pairs noisy: {', '.join(NOISE_KINDS)}. Repeatable.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Different seeds give different sentences.")] = SEED,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a corpus that was generated earlier.")
    ] = False,
) -> None:
    """Generate an English-German corpus with gold word alignments and part-of-speech tags.

    The folder holds what relakit prepare --folder and relakit train read (train.en, train.de and so
    on), the gold links (.links) and tags (.tags) that relakit analyze reads, and, with noise, a
    label for each training pair (train.noise). docs/corpora.md describes the files.

    For example: relakit generate corpus --pairs 100000

    With noise: relakit generate corpus --pairs 100000 --noise shuffled=0.1 --noise copied=0.05
    """
    from relakit.data.generated import write_corpus

    sizes = _sizes(pairs, split or ())
    shares = _shares(noise or ())
    if seed < 0:
        raise ValueError(f"--seed must not be negative, got {seed}")
    with stage_bar(messages_console()) as bar:
        counts = write_corpus(
            out, sizes=sizes, seed=seed, noise=shares, replace=force, on_stage=bar
        )
    render(counts, out, results_console())


def _sizes(pairs: int, others: Sequence[str]) -> dict[Split, int]:
    if pairs < 1:
        raise ValueError(f"--pairs must be at least 1, got {pairs}")
    given = _parsed("--split", "test=1000", others, known_split, int)
    if "train" in given:
        raise ValueError("--pairs sets the size of train; --split is for the other splits")
    for split, size in given.items():
        if size < 0:
            raise ValueError(f"--split {split}={size}: the size must not be negative")
    for option, size in {"--pairs": pairs, **{f"--split {s}": n for s, n in given.items()}}.items():
        if size > MAX_PAIRS:
            raise ValueError(f"{option} must be at most {MAX_PAIRS:,}, got {size:,}")
    sizes = {split: given.get(split, SIZES[split]) for split in OTHERS}
    return {"train": pairs, **{split: size for split, size in sizes.items() if size}}


def _shares(noise: Sequence[str]) -> dict[NoiseKind, float]:
    shares = _parsed("--noise", "shuffled=0.1", noise, known_noise, float)
    try:
        check_shares(shares)
    except ValueError as error:
        raise ValueError(f"--noise: {error}") from None
    return shares


def _parsed(
    option: str,
    example: str,
    values: Sequence[str],
    known: Callable[[str], Key],
    number: Callable[[str], Number],
) -> dict[Key, Number]:
    """The values of an option of the form NAME=NUMBER that may be given several times."""
    parsed: dict[Key, Number] = {}
    for value in values:
        name, _, text = value.partition("=")
        try:
            key = known(name)
        except ValueError as error:
            raise ValueError(f"{option} {value}: {error}") from None
        if key in parsed:
            raise ValueError(f"{option} {name} is given twice")
        try:
            parsed[key] = number(text)
        except ValueError:
            raise ValueError(
                f"{option} needs a name and a number, such as {example}, got {value!r}"
            ) from None
    return parsed


def render(counts: "Mapping[Split, GeneratedCounts]", out: Path, console: Console) -> None:
    """Print what was generated."""
    kinds = sorted({kind for split in counts.values() for kind in split.noise})
    table = Table("split", box=None, pad_edge=False)
    for title in ("pairs", "source words", "target words", "links", *kinds):
        table.add_column(title, justify="right")
    for name, split in counts.items():
        numbers = (split.pairs, split.source_words, split.target_words, split.links)
        noisy = (split.noise.get(kind, 0) for kind in kinds)
        table.add_row(name, *(f"{number:,}" for number in (*numbers, *noisy)))
    console.print(table)
    console.print(f"The corpus is in {out}.", soft_wrap=True)
