"""`relakit demo`: from nothing to a model, its translations and its word alignments."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from relakit.analysis import AlignmentReport
    from relakit.data.generated import GeneratedPair
    from relakit.decode import Translator
    from relakit.metrics.bleu import CorpusScore
    from relakit.train.result import Result

SAMPLES = 6


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Where to work and to leave the model.", metavar="DIR")
    ] = Path("runs/demo"),
    attention: Annotated[
        str, typer.Option(help="The model's attention; softmax, for example, to compare.")
    ] = "rela-g",
    again: Annotated[
        bool, typer.Option("--again", help="Train anew, even if DIR holds a finished demo.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a setting of the recipe `demo`."),
    ] = None,
) -> None:
    """Generate an English-German corpus, train a small model on it, and show what it can do.

    It takes a few minutes. A demo that was stopped goes on where it was. The model directory that
    it leaves serves every other command.
    """
    from relakit.train.recipe_file import load_recipe

    recipe = load_recipe("demo", [f"model.attention={attention}", *(settings or ())])
    if recipe.data.generated is None:
        raise ValueError("the demo needs its generated corpus; use `relakit train` for others")
    generated = recipe.data.generated
    console = Console(highlight=False)
    result = _train(recipe, out, again)
    if result is None:
        console.print(f"{out} holds a finished demo; --again trains anew.", soft_wrap=True)

    from relakit.data.generated import generate_pairs
    from relakit.decode import Translator

    translator = Translator.load(out / "model")
    pairs = list(generate_pairs(generated.test, seed=generated.seed, split="test"))
    outputs = translator.translate([pair.source_text for pair in pairs])
    console.print(_sample_table(pairs, outputs))
    score, alignment = _measure(translator, pairs, outputs)
    console.print(_score_table(score, alignment, len(pairs), result))
    _print_next(console, out)


def _train(recipe: object, out: Path, again: bool) -> "Result | None":
    """Train, unless that is done already: None then."""
    import shutil

    from relakit.cli.preparing import preparation_bar
    from relakit.train.recipe import Recipe
    from relakit.train.run import run_training

    assert isinstance(recipe, Recipe)
    if again and (out / "recipe.json").is_file():
        shutil.rmtree(out)
    if (out / "model" / "config.json").is_file() and (out / "recipe.json").is_file():
        return None
    console = Console(stderr=True)
    result, ending = run_training(
        recipe,
        out,
        resume=(out / "recipe.json").is_file(),
        console=console,
        preparing=lambda: preparation_bar(console),
    )
    if result.verdict != "finished":
        console.print(f"{result.verdict}: {result.reason}")
        raise typer.Exit(3 if ending.signal is None else 128 + ending.signal)
    return result


def _sample_table(pairs: Sequence["GeneratedPair"], outputs: Sequence[str]) -> Table:
    table = Table(title="Sentences that the model has never seen", title_justify="left")
    table.add_column("")
    table.add_column("")
    # The longest few tell more than the first few.
    chosen = sorted(range(len(pairs)), key=lambda i: -len(pairs[i].source))[: 4 * SAMPLES : 4]
    for index in chosen:
        pair, output = pairs[index], outputs[index]
        table.add_row("English", pair.source_text)
        is_right = output == pair.target_text
        table.add_row("relakit", f"{output} {'[green]✓[/]' if is_right else ''}")
        if not is_right:
            table.add_row("reference", pair.target_text)
        table.add_section()
    return table


def _measure(
    translator: "Translator", pairs: Sequence["GeneratedPair"], outputs: Sequence[str]
) -> "tuple[CorpusScore, AlignmentReport]":
    from relakit.analysis import evaluate_alignment, generated_gold_pair
    from relakit.metrics.bleu import bleu_score

    score = bleu_score(outputs, [pair.target_text for pair in pairs])
    gold = map(generated_gold_pair, pairs)
    return score, evaluate_alignment(translator.model, translator.tokenizer, gold)


def _score_table(
    score: "CorpusScore", alignment: "AlignmentReport", sentences: int, result: "Result | None"
) -> Table:
    reading = alignment.best_reading
    layer, head = alignment.scores(reading).best_head
    best = alignment.best_score(reading)
    table = Table(title=f"On {sentences:,} held-out sentences", title_justify="left")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("")
    table.add_row("BLEU", f"{score.score:.1f}", score.signature)
    table.add_row(
        "alignment error rate",
        f"{best.aer:.2f}",
        f"words linked by cross-attention, layer {layer + 1}, head {head + 1}, {reading}; "
        "0 is perfect",
    )
    table.add_row("precision, recall", f"{best.precision:.2f}, {best.recall:.2f}", "of these links")
    if result is not None:
        speed = f"{result.tokens_per_second:,.0f} target tokens/s"
        table.add_row("training", f"{result.seconds:.0f} s", speed)
    return table


def _print_next(console: Console, out: Path) -> None:
    model, text = out / "model", out / "text"
    console.print(f"The model is in {model}. Try:", soft_wrap=True)
    for command in (
        f"echo 'The old teacher does not see the small dog.' | relakit translate {model}",
        f"relakit evaluate {model} --source {text / 'test.en'} --reference {text / 'test.de'}",
        f"relakit demo --attention softmax --out {out.with_name(out.name + '-softmax')}",
    ):
        console.print(f"  {command}", soft_wrap=True)
