"""Time and memory of `analyze_model`, against a plain forward pass over the same sentence pairs.

Both take turns in one process, so only their ratio is meaningful. The forward pass has the same
batches, encoder, decoder and output projection, but records nothing. The analysis is complete:
tokens, shuffled targets, and alignment against made-up gold links. Peak memory is measured in
separate processes, each of which repeats the pairs up to a different number.

    python benchmarks/analysis_cost.py MODEL --source test.en.gz --target test.de.gz
"""

import argparse
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import torch
from torch import Tensor

import relakit
from relakit.amounts import number_with_noun
from relakit.analysis import AnalysisPair, GoldAlignment, analyze_model, split_words
from relakit.analysis.pair_batches import plan_pair_batches
from relakit.analysis.settings import BATCH_TOKENS
from relakit.bench.rounds import (
    CaseRounds,
    Field,
    FixedRounds,
    RepeatedCall,
    seconds_per_call,
    take_turns,
)
from relakit.bench.tables import median_text, quartiles_text
from relakit.data.batches import pad_batch
from relakit.data.parallel_files import ParallelFiles, read_pairs
from relakit.data.tokenizer import BEGIN, END, Tokenizer
from relakit.model import Transformer


def with_diagonal_links(source: str, target: str) -> AnalysisPair:
    """A pair with made-up links; which links they are does not affect the time."""
    words = split_words(source), split_words(target)
    links = frozenset((word, word) for word in range(min(map(len, words))))
    return AnalysisPair(source, target, *words, GoldAlignment(links))


def make_batches(tokenizer: Tokenizer, pairs: list[AnalysisPair]) -> list[tuple[Tensor, Tensor]]:
    ids = [(tokenizer.encode(pair.source).ids, tokenizer.encode(pair.target).ids) for pair in pairs]
    plan = plan_pair_batches([(len(s) + 1, len(t) + 1) for s, t in ids], BATCH_TOKENS, sys.maxsize)
    return [
        (
            torch.from_numpy(pad_batch([ids[i][0] for i in batch], end=END)),
            torch.from_numpy(pad_batch([ids[i][1] for i in batch], begin=BEGIN)),
        )
        for batch in plan
    ]


def run_forward(model: Transformer, batches: list[tuple[Tensor, Tensor]]) -> None:
    with torch.inference_mode():
        for source, target in batches:
            model.logits(model(source, target))


def compare_times(options: argparse.Namespace, pairs: list[AnalysisPair]) -> None:
    translator = relakit.load(options.model)
    model, tokenizer = translator.model.eval(), translator.tokenizer
    batches = make_batches(tokenizer, pairs)
    field = Field(
        {
            "forward": RepeatedCall(lambda: run_forward(model, batches)),
            "analysis": RepeatedCall(lambda: analyze_model(model, tokenizer, pairs, name="model")),
        }
    )
    case = CaseRounds("analysis")
    take_turns(field, case, FixedRounds(options.rounds))
    forward, analysis = (case.values(name, seconds_per_call) for name in field.contenders)
    ratio = case.ratio("analysis", "forward", seconds_per_call)
    print(
        f"{len(pairs):,} pairs, {number_with_noun(options.threads, 'thread')}, medians of "
        f"{number_with_noun(options.rounds, 'round')}: forward {median_text(forward)} s, analysis "
        f"{median_text(analysis)} s, ratio {median_text(ratio)} ({quartiles_text(ratio)})"
    )


def analyze_repeated(options: argparse.Namespace, pairs: list[AnalysisPair], count: int) -> None:
    """Analyze ``count`` pairs in this separate process, and print its peak memory."""
    translator = relakit.load(options.model)
    repeated = islice(cycle(pairs), count)
    analyze_model(translator.model, translator.tokenizer, repeated, name="model")
    # Not getrusage: there, a new process starts with its parent's peak.
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--counts", type=int, nargs="*", default=[250, 1000, 4000])
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    files = ParallelFiles(options.source, options.target)
    pairs = [with_diagonal_links(*pair) for pair in read_pairs(files)]
    if options.memory_of is not None:
        analyze_repeated(options, pairs, options.memory_of)
        return
    compare_times(options, pairs)
    for count in options.counts:
        command = [sys.executable, *sys.argv, "--memory-of", str(count)]
        peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(f"{count:,} pairs: {float(peak):,.0f} MiB at most")


if __name__ == "__main__":
    main()
