"""Translation speed of relakit's attentions and of other toolkits.

python benchmarks/decoding.py --help
"""

from pathlib import Path
from typing import Annotated

import typer

import runs
from runs import HOW, WHAT, Output, given_or, split_names, split_numbers
from toolkits import options
from toolkits.peers import DECODING_PEERS, PeerPlace
from toolkits.settings import ATTENTION_NAMES, GENERATED, DecodingSettings

app = runs.new_app()
QUICK_ROUNDS, QUICK_SENTENCES, QUICK_GROUP_SENTENCES = 2, 16, 2


@app.command()
def decoding(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Few rounds and few sentences: takes minutes.", rich_help_panel=WHAT
        ),
    ] = False,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="A model directory, one per attention; the peers get the weights of the softmax "
            "model. Repeatable. \\[default: random weights]",
            file_okay=False,
            rich_help_panel=WHAT,
        ),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            help="Attentions of models with random weights. "
            f"\\[default: {','.join(ATTENTION_NAMES)}]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    peers: Annotated[
        str, typer.Option(help="Other toolkits to compare with, or none.", rich_help_panel=WHAT)
    ] = ",".join(DECODING_PEERS),
    peer_python: options.PeerPython = PeerPlace.python,
    peer_scripts: options.PeerScripts = PeerPlace.scripts,
    size: Annotated[
        str, typer.Option(help="Size of random models: tiny, small or base.", rich_help_panel=WHAT)
    ] = DecodingSettings.size,
    vocab: Annotated[
        int, typer.Option(help="Vocabulary size of random models.", rich_help_panel=WHAT)
    ] = DecodingSettings.vocabulary,
    corpus: options.Corpus = None,
    split: Annotated[
        str, typer.Option(help="The part of the corpus to translate.", rich_help_panel=WHAT)
    ] = DecodingSettings.split,
    precision: Annotated[
        str,
        typer.Option(
            help="fp32, bf16, int8; CTranslate2 always runs fp32 and int8.", rich_help_panel=WHAT
        ),
    ] = ",".join(DecodingSettings.precisions),
    batch_size: Annotated[
        str, typer.Option(help="Sentences per batch, or none.", rich_help_panel=WHAT)
    ] = ",".join(map(str, DecodingSettings.batch_sizes)),
    groups: Annotated[
        int,
        typer.Option(help="Groups by source length (Figure 2); 0 for none.", rich_help_panel=WHAT),
    ] = DecodingSettings.groups,
    beam: Annotated[
        int, typer.Option(help="Beam size.", rich_help_panel=HOW)
    ] = DecodingSettings.beam,
    exact_length: Annotated[
        bool | None,
        typer.Option(
            "--exact-length/--free-length",
            help="Whether all translations in a batch get the mean length of its references. "
            "\\[default: only with random weights]",
            rich_help_panel=HOW,
        ),
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            help="Sentences for each batch size. \\[default: four batches, at least 32]",
            rich_help_panel=HOW,
        ),
    ] = None,
    group_sentences: Annotated[
        int | None,
        typer.Option(
            help=f"Sentences in each group. \\[default: {DecodingSettings.group_sentences}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"Turns per contender. \\[default: {DecodingSettings.rounds}]",
            rich_help_panel=HOW,
        ),
    ] = None,
    threads: runs.Threads = DecodingSettings.threads,
    seed: runs.Seed = DecodingSettings.seed,
    json_file: runs.JsonFile = None,
    csv_file: runs.CsvFile = None,
    plot_file: runs.PlotFile = None,
    resume: runs.Resume = False,
) -> None:
    """Time beam search, with several sentences at a time and one by one.

    The contenders take turns on the same batches. Without --model the weights are random, and all
    contenders generate the same number of tokens. See docs/benchmark.md.
    """
    if model and attention is not None:
        raise ValueError("--model and --attention exclude each other: models have their attention")
    settings = DecodingSettings(
        attentions=ATTENTION_NAMES if attention is None else split_names(attention),
        models=tuple(str(folder) for folder in model or ()),
        peers=split_names(peers),
        precisions=split_names(precision),
        size=size,
        vocabulary=vocab,
        threads=threads,
        rounds=given_or(rounds, quick and QUICK_ROUNDS, DecodingSettings.rounds),
        seed=seed,
        corpus=GENERATED if corpus is None else str(corpus),
        split=split,
        batch_sizes=split_numbers(batch_size, "--batch-size"),
        beam=beam,
        exact_length=not model if exact_length is None else exact_length,
        sentences=QUICK_SENTENCES if quick and sentences is None else sentences,
        groups=groups,
        group_sentences=given_or(
            group_sentences, quick and QUICK_GROUP_SENTENCES, DecodingSettings.group_sentences
        ),
    )
    place = PeerPlace(python=peer_python, scripts=peer_scripts)
    output = Output(json=json_file, csv=csv_file, plot=plot_file, resume=resume)
    from relakit.bench.machine import describe_machine
    from toolkits.decoding_turns import with_models
    from toolkits.measure import measure_decoding
    from toolkits.report import SpeedReport
    from toolkits.report_plot import draw_report
    from toolkits.report_table import print_report

    if settings.models:
        settings = with_models(settings)
    report = SpeedReport(benchmark="decode", settings=settings, machine=describe_machine())
    runs.measure(
        report,
        output,
        lambda save, tell: measure_decoding(report, settings, place, save=save, tell=tell),
        show=lambda console: print_report(report, console),
        draw=lambda: draw_report(report),
    )


if __name__ == "__main__":
    runs.run_app(app)
