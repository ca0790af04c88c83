"""`relakit demo`: from nothing to a model, its translations and its word alignments."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from relakit.cli.analyze import analysis_bar
from relakit.cli.consoles import messages_console, results_console
from relakit.files.output_paths import MODEL as MODEL_DIRECTORY
from relakit.train.run_folder import MODEL, RESULT, RUNS, TEXT

if TYPE_CHECKING:
    from relakit.analysis import AlignmentResult, AnalysisPair, AnalyzedModel, Reading
    from relakit.data.generated import GeneratedPair
    from relakit.decode.translator import Translator
    from relakit.metrics.bleu import CorpusScore
    from relakit.train.recipe import Recipe
    from relakit.train.result import Result

RECIPE = "demo"
REPORT = "report"
SHOWN = 6
"""How many sentences are printed with their translations."""


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Where to work and to leave the model.", metavar="DIR")
    ] = Path(RUNS) / RECIPE,
    attention: Annotated[
        str | None,
        typer.Option(
            help="The model's attention, such as softmax for comparison. \\[default: the recipe's]",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Train again, even if DIR holds a finished demo.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help=f"Override a setting of the recipe {RECIPE}."
        ),
    ] = None,
) -> None:
    """Generate an English-German corpus, train a small model on it, and show what it can do.

    It takes a few minutes. A demo that was stopped continues where it left off. Its model directory
    works with every other command, and DIR/report/report.html shows what its attention does.
    """
    from relakit.train.recipe_file import load_recipe

    chosen = [] if attention is None else [f"model.attention={attention}"]
    recipe = load_recipe(RECIPE, [*chosen, *(settings or ())])
    if recipe.data.generated is None:
        raise ValueError("the demo needs its generated corpus; use `relakit train` for another")
    generated = recipe.data.generated
    if (recipe.data.source, recipe.data.target, recipe.data.reverse) != ("en", "de", False):
        raise ValueError(
            "the demo translates from English to German; use `relakit train demo` with the same "
            "settings for the other direction"
        )
    console = results_console()
    result = _train(recipe, out, again)
    if result is None:
        console.print(f"{out} holds a finished demo; --again trains it again.", soft_wrap=True)

    from relakit.analysis import add_translations, generated_gold_pair
    from relakit.data.generated import generate_pairs
    from relakit.decode.translator import Translator
    from relakit.metrics.bleu import bleu_score
    from relakit.model.attention_setting import write_attention
    from relakit.report import write_report

    translator = Translator.load(out / MODEL)
    pairs = list(generate_pairs(generated.test, seed=generated.seed, split="test"))
    outputs = translator.translate([pair.source_text for pair in pairs])
    console.print("Sentences that the model has never seen:")
    console.print(_sample_table(pairs, outputs))
    score = bleu_score(outputs, [pair.target_text for pair in pairs])
    valid = generate_pairs(generated.valid, seed=generated.seed, split="valid")
    gold_pairs = [generated_gold_pair(pair) for pair in pairs]
    name = f"{RECIPE}, {write_attention(recipe.model.attention)}"
    analyzed = _analyze(translator, gold_pairs, name)
    analyzed = add_translations(analyzed, translator, gold_pairs, outputs, score)
    assert analyzed.analysis.alignment is not None  # the corpus has gold links
    table = _score_table(score, _choose_head(translator, valid), analyzed.analysis.alignment)
    if result is not None:
        speed = f"{result.tokens_per_second:,.0f} target tokens/s"
        table.add_row("training", f"{result.seconds:.0f} s", speed)
    console.print(f"On {len(pairs):,} held-out sentences:")
    console.print(table)
    with messages_console().status("Writing the report ..."):
        written = write_report([analyzed], out / REPORT, title="relakit demo")
    _print_next(console, out, written.page)


def _train(recipe: "Recipe", out: Path, again: bool) -> "Result | None":
    """Train; None if the demo was already trained."""
    from relakit.cli.stage_bar import stage_bar
    from relakit.train.preflight import check_run, check_settings, settled_settings
    from relakit.train.result import read_verdict
    from relakit.train.resume import check_place_of_model, read_recipe

    before = read_recipe(out)
    if before is not None and before.description != recipe.description:
        raise ValueError(f"{out} holds a run that is not a demo; choose another --out")
    if again and before is not None:
        from relakit.train.run import remove_run

        check_settings(settled_settings(recipe))  # while the old demo is still there
        check_place_of_model(out)
        remove_run(out)
        before = None
    is_finished = read_verdict(out / RESULT) == "finished" and MODEL_DIRECTORY.is_at(out / MODEL)
    if before is not None and is_finished:
        if before != settled_settings(recipe, before):
            raise ValueError(
                f"{out} holds a demo with other settings; choose another --out, or --again"
            )
        return None
    check_run(recipe, out, resume=before is not None)
    from relakit.train.run import run_training

    console = messages_console()
    result, ending = run_training(
        recipe,
        out,
        resume=before is not None,
        console=console,
        stage_bar=lambda: stage_bar(console),
    )
    if result.verdict != "finished":
        console.print(f"{result.verdict}: {result.reason}")
        raise typer.Exit(3 if ending.signal is None else 128 + ending.signal)
    return result


def _sample_table(pairs: Sequence["GeneratedPair"], outputs: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False, show_lines=False)
    table.add_column()
    table.add_column()
    # Spread evenly by length, so that both short and long sentences are shown.
    by_length = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))
    step = max(1, len(pairs) // SHOWN)
    for index in by_length[step // 2 :: step][:SHOWN]:
        pair, output = pairs[index], outputs[index]
        table.add_row("English", pair.source_text)
        is_right = output == pair.target_text
        mark = (" ✓", "green") if is_right else ""
        table.add_row("relakit", Text.assemble(output, mark))
        if not is_right:
            table.add_row("reference", pair.target_text)
        table.add_section()
    return table


class Head(NamedTuple):
    """A cross-attention head, and how to read it."""

    reading: "Reading"
    layer: int
    head: int


def _analyze(
    translator: "Translator", pairs: Sequence["AnalysisPair"], name: str
) -> "AnalyzedModel":
    """Analyze the model on the test set."""
    from relakit.analysis import analyze_models

    with analysis_bar(messages_console(), len(pairs)) as progress:
        [analyzed] = analyze_models(
            {name: translator},
            pairs,
            inputs={"pairs": "the test split of the generated corpus"},
            translate=False,
            progress=progress,
        )
    return analyzed


def _choose_head(translator: "Translator", pairs: Iterable["GeneratedPair"]) -> Head:
    """The head that aligns best on the validation set, so that the test set stays untouched."""
    from relakit.analysis import evaluate_alignment, generated_gold_pair

    gold = map(generated_gold_pair, pairs)
    report = evaluate_alignment(translator.model, translator.tokenizers, gold)
    reading = report.best_reading
    return Head(reading, *report.scores(reading).best_head)


def _score_table(score: "CorpusScore", chosen: Head, report: "AlignmentResult") -> Table:
    reading, layer, head = chosen
    aligned = report.scores(reading).heads[layer][head]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    table.add_row("BLEU", f"{score.score:.1f}", score.signature)
    table.add_row(
        "alignment error rate",
        f"{aligned.aer:.2f}",
        f"of links by cross-attention, layer {layer + 1}, head {head + 1} ({reading}), "
        "which was best on the validation set",
    )
    table.add_row("their precision, recall", f"{aligned.precision:.2f}, {aligned.recall:.2f}", "")
    return table


def _print_next(console: Console, out: Path, report: Path) -> None:
    model, text, softmax = out / MODEL, out / TEXT, out.with_name(out.name + "-softmax")
    seen = f"What its attention looks at: open {report} in a browser."
    console.print(seen, soft_wrap=True)
    console.print(f"The model is in {model}. Try:", soft_wrap=True)
    for command in (
        f"echo 'The old teacher does not see the small dog.' | relakit translate {model}",
        f"relakit evaluate {model} --source {text / 'test.en'} --reference {text / 'test.de'}",
        f"relakit demo --attention softmax --out {softmax}",
        f"relakit analyze {model} --compare {softmax / 'model'} --source {text / 'test.en'} "
        f"--target {text / 'test.de'} --gold {text / 'test.links'} "
        f"--tags {text / 'test.de.tags'} --out {out.with_name(out.name + '-analysis')}",
    ):
        console.print(f"  {command}", soft_wrap=True)
