"""Speed of Hugging Face models with ReLA-g relative to the same models with PyTorch's SDPA.

A Llama-like and a BERT-like model (512 features, 8 layers, random weights) run a forward pass and a
training step; the Llama-like one also generates one more token with a full cache. All contenders
take turns in one process, so only the ratios are meaningful. A ratio is the time with SDPA divided
by the time with ReLA-g; above 1, ReLA-g is faster. At the start, about half of a model's attention
weights are zero. Trained models have more zeros, which a threshold on the scores imitates here.

    python benchmarks/hf_speed.py --help
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import torch
import typer
from rich.console import Console
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    StaticCache,
)

import relakit
import relakit.hf
from relakit.amounts import number_with_noun
from relakit.bench.machine import describe_machine
from relakit.bench.results import Row, spread_columns, write_csv
from relakit.bench.rounds import (
    CaseRounds,
    Contender,
    Field,
    FixedRounds,
    RepeatedCall,
    seconds_per_call,
    take_turns,
)
from relakit.bench.tables import make_table, median_text, quartiles_text

FEATURES: Final = 512
LAYERS: Final = 8
HEADS: Final = 8
VOCABULARY: Final = 8000
LONGEST: Final = 32768
LENGTHS: Final = (512, 2048)
CACHED: Final = (2048, 16384)
TRAINED_ZEROS: Final = 0.9
SDPA: Final = "SDPA"
AT_START, TRAINED = "as it starts", "as if trained"
STEPS_OF_SEARCH: Final = 14
"""How often the interval that contains the threshold is halved."""


@dataclass(frozen=True)
class Timed:
    """A case, and what each contender does in it."""

    name: str
    calls: dict[str, Callable[[], object]]
    zeros: dict[str, float]
    """The share of weights that are zero, by contender."""


def build(family: str) -> PreTrainedModel:
    """A model from its config, with random weights that depend on the seed alone."""
    torch.manual_seed(1)
    sizes: dict[str, int] = {
        "vocab_size": VOCABULARY,
        "hidden_size": FEATURES,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "max_position_embeddings": LONGEST,
    }
    if family == "Llama":
        return LlamaForCausalLM(LlamaConfig(**sizes, intermediate_size=8 * FEATURES // 3))
    return BertForMaskedLM(BertConfig(**sizes, intermediate_size=4 * FEATURES))


def contenders_of(family: str) -> dict[str, PreTrainedModel]:
    """The same weights three times: SDPA, ReLA-g, and ReLA-g with more zeros."""
    model = build(family)
    model.set_attn_implementation("sdpa")
    at_start, trained = copy.deepcopy(model), copy.deepcopy(model)
    relakit.hf.convert(at_start)
    relakit.hf.convert(trained, relakit.AttentionSpec(threshold=threshold_for(at_start)))
    return {SDPA: model, AT_START: at_start, TRAINED: trained}


def threshold_for(model: PreTrainedModel) -> float:
    """What to subtract from the scores so that `TRAINED_ZEROS` of the weights are zero."""
    low, high = 0.0, 10.0
    trial = copy.deepcopy(model)
    for _ in range(STEPS_OF_SEARCH):
        middle = (low + high) / 2
        relakit.hf.convert(trial, relakit.AttentionSpec(threshold=middle))
        if share_of_zeros(trial) < TRAINED_ZEROS:
            low = middle
        else:
            high = middle
    return high


def share_of_zeros(model: PreTrainedModel, length: int = LENGTHS[0]) -> float:
    """Share of zero weights over all layers and heads, for random tokens."""
    zeros = valid = 0
    with torch.no_grad(), relakit.capture(model) as records:
        model(tokens(length))
    for record in (record for records_of in records.values() for record in records_of):
        allowed = torch.ones_like(record.weights, dtype=torch.bool)
        if record.valid is not None:
            allowed = record.valid.expand_as(record.weights)
        zeros += int(((record.weights == 0) & allowed).sum())
        valid += int(allowed.sum())
    return zeros / valid


def tokens(length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(5, VOCABULARY, (1, length), generator=generator)


def forward(model: PreTrainedModel, length: int) -> Callable[[], object]:
    inputs = tokens(length)

    def call() -> None:
        with torch.no_grad():
            model(inputs)

    return call


def training_step(model: PreTrainedModel, length: int) -> Callable[[], object]:
    inputs = tokens(length)
    # Keep the weights the same in every call; otherwise the share of zeros would change.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)

    def call() -> None:
        optimizer.zero_grad()
        model(inputs, labels=inputs).loss.backward()
        optimizer.step()

    return call


def next_token(model: PreTrainedModel, length: int, kind: str) -> Callable[[], object]:
    """A call that computes one more token after ``length`` cached ones."""
    prompt = CACHED[0]
    filled = DynamicCache(config=model.config)
    with torch.no_grad():
        model(tokens(prompt), past_key_values=filled)
    cache: Any = filled
    if kind == "static":
        cache = StaticCache(config=model.config, max_cache_len=length + 1)
    for number, layer in enumerate(filled.layers):
        # Reading a long text would take minutes; repeating the keys of a short one is as good.
        keys, values = (x.repeat(1, 1, length // prompt, 1) for x in (layer.keys, layer.values))
        if kind == "static":
            cache.update(keys, values, number)
        else:
            layer.keys, layer.values = keys, values
    inputs = tokens(1)

    def call() -> None:
        with torch.no_grad():
            model(inputs, past_key_values=cache)
        for layer in cache.layers:
            if kind == "static":
                layer.cumulative_length.fill_(length)
            else:
                layer.crop(-1)

    return call


def cases_of(family: str, models: dict[str, PreTrainedModel], passes: set[str]) -> list[Timed]:
    cases = []
    zeros = {label: share_of_zeros(models[label]) for label in (AT_START, TRAINED)}
    for name, make in (("forward", forward), ("training step", training_step)):
        if name not in passes:
            continue
        for length in LENGTHS:
            calls = {label: make(model, length) for label, model in models.items()}
            cases.append(Timed(f"{family}, {name}, {length} tokens", calls, zeros))
    if family == "Llama" and "next token" in passes:
        for length in CACHED:
            for kind in ("static", "dynamic"):
                calls = {label: next_token(model, length, kind) for label, model in models.items()}
                cases.append(Timed(f"{family}, next token, {kind} cache of {length}", calls, zeros))
    return cases


def measure(case: Timed, rounds: int) -> list[Row]:
    """One row for each of the two ReLA-g contenders."""
    measured = CaseRounds(case.name)
    contenders: dict[str, Contender] = {
        label: RepeatedCall(call) for label, call in case.calls.items()
    }
    take_turns(Field(contenders), measured, FixedRounds(rounds))
    rows = []
    for label in (AT_START, TRAINED):
        rows.append(
            {
                "case": case.name,
                "zeros": round(case.zeros[label], 3),
                "rounds": rounds,
                **spread_columns("SDPA / ReLA-g", measured.ratio(SDPA, label, seconds_per_call)),
                **spread_columns("seconds", measured.values(label, seconds_per_call)),
            }
        )
        ratio = measured.ratio(SDPA, label, seconds_per_call)
        print(
            f"{case.name}, {case.zeros[label]:.0%} zeros: {median_text(ratio)} "
            f"({quartiles_text(ratio)})",
            flush=True,
        )
    return rows


def main(
    rounds: Annotated[int, typer.Option(help="Turns per contender.")] = 9,
    threads: Annotated[int, typer.Option(help="CPU threads.")] = 1,
    only: Annotated[
        list[str] | None, typer.Option(help="forward, training step, next token; default: all.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="CSV file for the table.", dir_okay=False)
    ] = None,
) -> None:
    """Time Hugging Face models with ReLA-g against the same models with SDPA."""
    torch.set_num_threads(threads)
    machine = describe_machine()
    console = Console(width=110, highlight=False)
    console.print(
        f"{machine.cpu}; PyTorch {machine.torch} ({machine.torch_instructions}), "
        f"kernels {machine.rela_instructions}; {number_with_noun(threads, 'thread')}"
    )
    rows: list[Row] = []
    for family in ("Llama", "BERT"):
        passes = set(only or ("forward", "training step", "next token"))
        for case in cases_of(family, contenders_of(family), passes):
            rows += measure(case, rounds)
            if csv is not None:
                write_csv(csv, rows)
    cells = [
        [
            row["case"],
            f"{row['zeros']:.0%}",
            f"{row['SDPA / ReLA-g']:.2f}",
            f"{row['SDPA / ReLA-g_lower']:.2f}-{row['SDPA / ReLA-g_upper']:.2f}",
        ]
        for row in rows
    ]
    headings = ["case", "zeros", "SDPA / ReLA-g", "quartiles"]
    console.print(make_table("SDPA's time / ReLA-g's", headings, cells, left=("case",)))


if __name__ == "__main__":
    typer.run(main)
