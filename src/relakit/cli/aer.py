"""`relakit aer`: score word alignments against gold alignments."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table
from rich.text import Text

from relakit.analysis.settings import BOOTSTRAP_SEED
from relakit.cli.consoles import results_console
from relakit.cli.link_file_options import first_of, format_of, link_file, reverse_of
from relakit.metrics.settings import SAMPLES

if TYPE_CHECKING:
    from relakit.analysis.estimate import Estimate
    from relakit.analysis.gold import FirstWord
    from relakit.analysis.link_scores import LinkScores

GOLD, LINKS, INTERVALS = "Gold links", "Links to judge", "Intervals"


def aer(
    gold: Annotated[
        Path, typer.Option(help="Gold word alignments, sure and possible.", rich_help_panel=GOLD)
    ],
    hypothesis: Annotated[
        list[Path],
        typer.Option(
            help="Links to score, for the same pairs, one line per pair. Repeatable.",
            rich_help_panel=LINKS,
        ),
    ],
    gold_format: Annotated[str, format_of("--gold", GOLD)] = "auto",
    gold_first: Annotated[int | None, first_of("--gold", GOLD)] = None,
    gold_reverse: Annotated[bool, reverse_of("--gold", GOLD)] = False,
    hypothesis_first: Annotated[
        int,
        typer.Option(
            min=0,
            max=1,
            help="The number of a sentence's first word in --hypothesis.",
            rich_help_panel=LINKS,
        ),
    ] = 0,
    hypothesis_reverse: Annotated[bool, reverse_of("--hypothesis", LINKS)] = False,
    samples: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many bootstrap samples are drawn for the intervals.",
            rich_help_panel=INTERVALS,
        ),
    ] = SAMPLES,
    seed: Annotated[int, typer.Option(min=0, rich_help_panel=INTERVALS)] = BOOTSTRAP_SEED,
) -> None:
    """Score word alignments: alignment error rate, precision, recall and F1.

    Links are counted over all pairs. Precision counts a link as right if it is a possible gold
    link, and recall counts the sure gold links that were found. The intervals are 95% bootstrap
    intervals over pairs.

    For example: relakit aer --gold test.talp --hypothesis links.pharaoh
    """
    from relakit.analysis.alignment_bootstrap import BootstrapSettings
    from relakit.analysis.link_file import LinkFile
    from relakit.analysis.link_scores import score_link_files

    settings = BootstrapSettings(samples=samples, seed=seed)
    is_read_once = len(hypothesis) == 1
    right = link_file(
        "--gold", gold, gold_format, gold_first, gold_reverse, is_read_once=is_read_once
    )
    for path in hypothesis:
        judged = LinkFile(
            path=path,
            format="pharaoh",
            first=cast("FirstWord", hypothesis_first),
            reverse=hypothesis_reverse,
        )
        _print(path, score_link_files(right, judged, settings))


def _print(path: Path, score: "LinkScores") -> None:
    console = results_console()
    counts = score.counts
    console.print(
        Text(f"{path}: {score.pairs:,} pairs, {counts.found:,} links, {counts.sure:,} sure ones"),
        soft_wrap=True,
    )
    table = Table.grid(padding=(0, 2))
    named = {"AER": "aer", "precision": "precision", "recall": "recall", "F1": "f1"}
    for name, field in named.items():
        estimate: Estimate = getattr(score, field)
        if math.isnan(estimate.value):  # precision, where no link was found
            table.add_row(f"  {name}", "-", "")
            continue
        interval = f"{estimate.low:.3f} to {estimate.high:.3f}"
        table.add_row(f"  {name}", f"{estimate.value:.3f}", f"({interval})")
    console.print(table)
