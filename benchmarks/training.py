"""Training speed of relakit's attentions and of other toolkits.

python benchmarks/training.py --help
"""

from typing import Annotated

import typer

import runs
from runs import HOW, WHAT, Output, given_or, split_names
from toolkits import options
from toolkits.peers import TRAINING_PEERS, PeerPlace
from toolkits.settings import ATTENTION_NAMES, GENERATED, PRECISIONS, TrainingSettings

app = runs.new_app()
QUICK_STEPS, QUICK_ROUNDS, QUICK_BATCH_TOKENS = 1, 3, 1024


@app.command()
def training(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Few rounds of small batches: takes minutes.", rich_help_panel=WHAT
        ),
    ] = False,
    attention: Annotated[
        str, typer.Option(help="Attentions of relakit's models.", rich_help_panel=WHAT)
    ] = ",".join(ATTENTION_NAMES),
    peers: Annotated[
        str, typer.Option(help="Other toolkits to compare with, or none.", rich_help_panel=WHAT)
    ] = ",".join(TRAINING_PEERS),
    peer_python: options.PeerPython = PeerPlace.python,
    peer_scripts: options.PeerScripts = PeerPlace.scripts,
    size: Annotated[
        str, typer.Option(help="Size of all models: tiny, small or base.", rich_help_panel=WHAT)
    ] = TrainingSettings.size,
    vocab: Annotated[
        int, typer.Option(help="Vocabulary size of all models.", rich_help_panel=WHAT)
    ] = TrainingSettings.vocabulary,
    corpus: options.Corpus = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16.", rich_help_panel=WHAT)] = ",".join(
        PRECISIONS
    ),
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            help=f"Padded tokens per batch. \\[default: {TrainingSettings.batch_tokens}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help=f"Updates per turn. \\[default: {TrainingSettings.steps}]", rich_help_panel=HOW
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"Turns per contender. \\[default: {TrainingSettings.rounds}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    threads: runs.Threads = TrainingSettings.threads,
    seed: runs.Seed = TrainingSettings.seed,
    json_file: runs.JsonFile = None,
    csv_file: runs.CsvFile = None,
    plot_file: runs.PlotFile = None,
    resume: runs.Resume = False,
) -> None:
    """Time whole training updates: forward, backward, Adam.

    The contenders take turns on the same batches, which are bucketed by length. Speed is in target
    tokens per second. A peer that is not installed is listed as such. See docs/benchmark.md.
    """
    settings = TrainingSettings(
        attentions=split_names(attention),
        peers=split_names(peers),
        precisions=split_names(precision),
        size=size,
        vocabulary=vocab,
        threads=threads,
        rounds=given_or(rounds, quick and QUICK_ROUNDS, TrainingSettings.rounds),
        steps=given_or(steps, quick and QUICK_STEPS, TrainingSettings.steps),
        batch_tokens=given_or(
            batch_tokens, quick and QUICK_BATCH_TOKENS, TrainingSettings.batch_tokens
        ),
        seed=seed,
        corpus=GENERATED if corpus is None else str(corpus),
    )
    place = PeerPlace(python=peer_python, scripts=peer_scripts)
    output = Output(json=json_file, csv=csv_file, plot=plot_file, resume=resume)
    from relakit.bench.machine import describe_machine
    from toolkits.measure import measure_training
    from toolkits.report import SpeedReport
    from toolkits.report_plot import draw_report
    from toolkits.report_table import print_report

    report = SpeedReport(benchmark="train", settings=settings, machine=describe_machine())
    runs.measure(
        report,
        output,
        lambda save, tell: measure_training(report, settings, place, save=save, tell=tell),
        show=lambda console: print_report(report, console),
        draw=lambda: draw_report(report),
    )


if __name__ == "__main__":
    runs.run_app(app)
