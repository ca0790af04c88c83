"""Sentence pairs per second of `relakit score` and `relakit align`, beside CTranslate2 and eflomal.

python benchmarks/pair_throughput.py --help
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

import runs
from runs import HOW, WHAT, Output, given_or, split_names
from toolkits import options
from toolkits.pair_settings import ATTENTIONS, PEERS, PairSettings
from toolkits.peers import PeerPlace
from toolkits.settings import GENERATED

app = runs.new_app()
QUICK_ROUNDS, QUICK_PAIRS = 2, 200
PROGRAM = "eflomal-align"


@app.command()
def pair_throughput(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Few rounds and few pairs: takes a minute.", rich_help_panel=WHAT
        ),
    ] = False,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="A model directory, one per attention; CTranslate2 gets the weights of the "
            "softmax model. Repeatable. \\[default: random weights]",
            file_okay=False,
            rich_help_panel=WHAT,
        ),
    ] = None,
    attention: Annotated[
        str,
        typer.Option(help="Attentions of models with random weights.", rich_help_panel=WHAT),
    ] = ",".join(ATTENTIONS),
    size: Annotated[
        str, typer.Option(help="Size of random models: tiny, small or base.", rich_help_panel=WHAT)
    ] = PairSettings.size,
    vocab: Annotated[
        int, typer.Option(help="Vocabulary size of random models.", rich_help_panel=WHAT)
    ] = PairSettings.vocabulary,
    source: Annotated[
        Path | None,
        typer.Option(
            help="File of source sentences. \\[default: a generated corpus]", rich_help_panel=WHAT
        ),
    ] = None,
    target: Annotated[
        Path | None, typer.Option(help="File of their translations.", rich_help_panel=WHAT)
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            help=f"Number of pairs. \\[default: {PairSettings.pairs}]", rich_help_panel=WHAT
        ),
    ] = None,
    peers: Annotated[
        str, typer.Option(help="Other tools to compare with, or none.", rich_help_panel=WHAT)
    ] = ",".join(PEERS),
    peer_python: options.PeerPython = PeerPlace.python,
    peer_scripts: options.PeerScripts = PeerPlace.scripts,
    eflomal: Annotated[
        Path | None,
        typer.Option(
            help=f"The program. \\[default: {PROGRAM} beside this Python, or on the path]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"Turns per contender. \\[default: {PairSettings.rounds}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    threads: runs.Threads = PairSettings.threads,
    seed: runs.Seed = PairSettings.seed,
    json_file: runs.JsonFile = None,
    csv_file: runs.CsvFile = None,
    resume: runs.Resume = False,
) -> None:
    """Time scoring and aligning of the same pairs, in turns.

    relakit does what a worker process of the command does, with the model in memory. CTranslate2's
    score_batch gets tokens, and its scores are first compared with ours. eflomal starts from
    scratch, as its users start it. They do not compute the same thing; the output says what each
    computes.
    """
    settings = PairSettings(
        models=tuple(map(str, model or ())),
        attentions=split_names(attention),
        size=size,
        vocabulary=vocab,
        source=GENERATED if source is None else str(source),
        target=GENERATED if target is None else str(target),
        pairs=given_or(pairs, quick and QUICK_PAIRS, PairSettings.pairs),
        peers=split_names(peers),
        threads=threads,
        rounds=given_or(rounds, quick and QUICK_ROUNDS, PairSettings.rounds),
        seed=seed,
    )
    place = PeerPlace(python=peer_python, scripts=peer_scripts)
    # For eflomal, which asks OpenMP for its threads. Set before torch asks, too.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    from relakit.bench.machine import describe_machine
    from toolkits.measure import measure_pairs
    from toolkits.pair_report import PairReport, print_pairs

    report = PairReport(settings=settings, machine=describe_machine())
    program = eflomal or find_eflomal()
    runs.measure(
        report,
        Output(json=json_file, csv=csv_file, resume=resume),
        lambda save, tell: measure_pairs(report, place, program, save=save, tell=tell),
        show=lambda console: print_pairs(report, console),
    )


def find_eflomal() -> Path | None:
    """eflomal's program, if it is installed."""
    beside = Path(sys.executable).with_name(PROGRAM)
    found = str(beside) if beside.is_file() else shutil.which(PROGRAM)
    return None if found is None else Path(found)


if __name__ == "__main__":
    runs.run_app(app)
