"""`relakit bench decode`: translation speed of this toolkit's attentions and of other toolkits."""

from pathlib import Path
from typing import Annotated

import typer

from relakit.bench.peers import DECODING_PEERS, PeerPlace
from relakit.bench.speed_settings import ATTENTION_NAMES, GENERATED, DecodingSettings
from relakit.cli import bench_speed as shared
from relakit.cli.bench_speed import HOW, WHAT, Output, given_or, split_names, split_numbers

QUICK_ROUNDS, QUICK_SENTENCES, QUICK_GROUP_SENTENCES = 2, 16, 2


def decode(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Few rounds, few sentences, in minutes.", rich_help_panel=WHAT
        ),
    ] = False,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="A model directory, one for each attention; the peers get the weights of the one "
            "with softmax. Repeatable. \\[default: random weights]",
            file_okay=False,
            rich_help_panel=WHAT,
        ),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            help=f"Of models with random weights. \\[default: {','.join(ATTENTION_NAMES)}]",
            rich_help_panel=WHAT,
        ),
    ] = None,
    peers: Annotated[
        str, typer.Option(help="Other toolkits, or none.", rich_help_panel=WHAT)
    ] = ",".join(DECODING_PEERS),
    peer_python: shared.PeerPython = PeerPlace.python,
    peer_scripts: shared.PeerScripts = PeerPlace.scripts,
    size: Annotated[
        str, typer.Option(help="Of random models: tiny, small, base.", rich_help_panel=WHAT)
    ] = "small",
    vocab: Annotated[
        int, typer.Option(help="Vocabulary of random models.", rich_help_panel=WHAT)
    ] = 8000,
    corpus: shared.Corpus = None,
    split: Annotated[
        str, typer.Option(help="The part of the corpus to translate.", rich_help_panel=WHAT)
    ] = DecodingSettings.split,
    precision: Annotated[
        str,
        typer.Option(help="fp32, bf16, int8; CTranslate2: fp32 and int8.", rich_help_panel=WHAT),
    ] = ",".join(DecodingSettings.precisions),
    batch_size: Annotated[
        str, typer.Option(help="Sentences at a time, or none.", rich_help_panel=WHAT)
    ] = "64,1",
    groups: Annotated[
        int,
        typer.Option(help="Groups by source length (Figure 2); 0: none.", rich_help_panel=WHAT),
    ] = DecodingSettings.groups,
    beam: Annotated[int, typer.Option(help="Beam.", rich_help_panel=HOW)] = DecodingSettings.beam,
    exact_length: Annotated[
        bool | None,
        typer.Option(
            "--exact-length/--free-length",
            help="Whether all translations of a batch get the mean length of its references. "
            "\\[default: with random weights only]",
            rich_help_panel=HOW,
        ),
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            help="For each batch size. \\[default: four batches, 32 at least]", rich_help_panel=HOW
        ),
    ] = None,
    group_sentences: Annotated[
        int | None, typer.Option(help="In each group. \\[default: 16]", rich_help_panel=HOW)
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Turns of each contender. \\[default: 5]", rich_help_panel=HOW),
    ] = None,
    threads: shared.Threads = 1,
    seed: shared.Seed = 1,
    json_file: shared.JsonFile = None,
    csv_file: shared.CsvFile = None,
    plot_file: shared.PlotFile = None,
    resume: shared.Resume = False,
) -> None:
    """Time beam search, with several sentences at a time and one by one.

    The contenders take turns on the same batches. Without --model the weights are random, and
    everyone generates the same number of tokens. docs/benchmark.md says more.
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
    from relakit.bench.decoding_speed import with_models
    from relakit.bench.speed_runs import measure_decoding

    if settings.models:
        settings = with_models(settings)
    shared.measure(
        "decode",
        settings,
        output,
        lambda report, save, tell: measure_decoding(report, settings, place, save=save, tell=tell),
    )
