"""`relakit bench train`: training speed of this toolkit's attentions and of other toolkits."""

from typing import Annotated

import typer

from relakit.bench.peers import TRAINING_PEERS, PeerPlace
from relakit.bench.speed_settings import (
    ATTENTION_NAMES,
    GENERATED,
    PRECISIONS,
    SpeedSettings,
    TrainingSettings,
)
from relakit.cli import bench_speed as shared
from relakit.cli.bench_speed import HOW, WHAT, Output, given_or, split_names

QUICK_STEPS, QUICK_ROUNDS, QUICK_BATCH_TOKENS = 1, 3, 1024


def train(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Few rounds of small batches, in minutes.", rich_help_panel=WHAT
        ),
    ] = False,
    attention: Annotated[
        str, typer.Option(help="Of this toolkit's models.", rich_help_panel=WHAT)
    ] = ",".join(ATTENTION_NAMES),
    peers: Annotated[
        str, typer.Option(help="Other toolkits, or none.", rich_help_panel=WHAT)
    ] = ",".join(TRAINING_PEERS),
    peer_python: shared.PeerPython = PeerPlace.python,
    peer_scripts: shared.PeerScripts = PeerPlace.scripts,
    size: Annotated[
        str, typer.Option(help="Of all models: tiny, small, base.", rich_help_panel=WHAT)
    ] = "small",
    vocab: Annotated[
        int, typer.Option(help="Vocabulary of all models.", rich_help_panel=WHAT)
    ] = 8000,
    corpus: shared.Corpus = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16.", rich_help_panel=WHAT)] = ",".join(
        PRECISIONS
    ),
    batch_tokens: Annotated[
        int | None,
        typer.Option(help="Padded tokens of a batch. \\[default: 4096]", rich_help_panel=HOW),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Updates in a turn. \\[default: 2]", rich_help_panel=HOW)
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Turns of each contender. \\[default: 10]", rich_help_panel=HOW),
    ] = None,
    threads: shared.Threads = 1,
    seed: shared.Seed = 1,
    json_file: shared.JsonFile = None,
    csv_file: shared.CsvFile = None,
    plot_file: shared.PlotFile = None,
    resume: shared.Resume = False,
) -> None:
    """Time whole training updates: forward, backward, Adam.

    The contenders take turns on the same batches, which are bucketed by length. Speed is in target
    tokens per second. A peer that is not installed is listed as such. docs/benchmark.md says more.
    """
    settings = TrainingSettings(
        attentions=split_names(attention),
        peers=split_names(peers),
        precisions=split_names(precision),
        size=size,
        vocabulary=vocab,
        threads=threads,
        rounds=given_or(rounds, quick and QUICK_ROUNDS, SpeedSettings.rounds),
        steps=given_or(steps, quick and QUICK_STEPS, TrainingSettings.steps),
        batch_tokens=given_or(
            batch_tokens, quick and QUICK_BATCH_TOKENS, TrainingSettings.batch_tokens
        ),
        seed=seed,
        corpus=GENERATED if corpus is None else str(corpus),
    )
    place = PeerPlace(python=peer_python, scripts=peer_scripts)
    output = Output(json=json_file, csv=csv_file, plot=plot_file, resume=resume)
    from relakit.bench.speed_runs import measure_training

    shared.measure(
        "train",
        settings,
        output,
        lambda report, save, tell: measure_training(report, settings, place, save=save, tell=tell),
    )
