"""Peak memory of `relakit score` and `relakit align`: it must not grow with the corpus.

Each command runs on generated corpora of several sizes, with a model so small that a million pairs
take about an hour. Meanwhile the total resident memory of the command and all its worker processes
is sampled. Exits with code 1 if the largest peak of any size exceeds the smallest by more than the
tolerance.

    python benchmarks/pair_memory.py --pairs 10000 100000 1000000 --json results.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.bench.machine import describe_machine
from relakit.bench.results import write_csv
from relakit.data.generated import generate_pairs
from relakit.data.languages import LanguagePair
from relakit.data.tokenizer import learn_tokenizer
from relakit.files.writing import write_whole
from relakit.model import ATTENTION_KINDS, ModelAbout, ModelConfig, Transformer, save_model

COMMANDS: Final = ("score", "align")
SIZES: Final = (10_000, 100_000, 1_000_000)
PATTERN: Final = 20_000
"""Number of distinct pairs; larger corpora repeat them, which does not matter to the commands."""
LOOK_EVERY: Final = 0.05
"""Seconds between two samples."""
MIB: Final = 1 << 20
PROGRAM: Final = (sys.executable, "-m", "relakit")


@dataclass(frozen=True)
class MemoryResult:
    """How much memory one command needed."""

    command: str
    pairs: int
    peak_mib: float
    """Resident memory of all processes together; shared memory counts once per process."""
    largest_mib: float
    """Resident memory of the largest process"""


class MemoryWatch(threading.Thread):
    """Samples the memory of a process and all its descendants until told to stop."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._stopped = threading.Event()
        self.peak = self.largest = 0
        """Bytes: all processes together, and the largest one alone."""

    def run(self) -> None:
        while not self._stopped.wait(LOOK_EVERY):
            self.look()

    def look(self) -> None:
        sizes = [resident_bytes(process) for process in family(self._process)]
        self.peak = max(self.peak, sum(sizes))
        self.largest = max([self.largest, *sizes])

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def family(process: int) -> list[int]:
    """A process and all its descendants."""
    found = [process]
    for one in found:  # the list grows meanwhile
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found.extend(map(int, children.read_text().split()))
            except OSError:
                continue  # it has just ended
    return found


def resident_bytes(process: int) -> int:
    """Memory of a process; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def write_model(folder: Path) -> Path:
    """Write a model with one layer on either side and 16 features."""
    pairs = [(pair.source_text, pair.target_text) for pair in generate_pairs(2000)]
    tokenizer = learn_tokenizer([text for pair in pairs for text in pair], 1000)
    tokenizer.save(folder / "tokenizer.json")
    torch.manual_seed(1)
    attentions = {f"{kind}_attention": "rela-g" for kind in ATTENTION_KINDS}
    sizes = {"dim": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 16}
    fields = {"vocabulary": tokenizer.size, **sizes, **attentions}
    model = Transformer(ModelConfig.model_validate(fields))
    languages = LanguagePair.learn(*zip(*pairs, strict=True))
    about = ModelAbout("en", "de")
    path = save_model(
        folder / "model", model, folder / "tokenizer.json", about, languages=languages
    )
    chosen = ChosenOn(by="given")
    write_choice(path, AlignmentChoice(layer=0, heads=(0,), reading="normal", chosen=chosen))
    return path


def write_corpus(folder: Path, pairs: int) -> tuple[Path, Path]:
    """Write two files with one line per pair."""
    made = list(generate_pairs(min(pairs, PATTERN), split="test"))
    paths = folder / f"{pairs}.en", folder / f"{pairs}.de"
    for path, texts in zip(
        paths, ([p.source_text for p in made], [p.target_text for p in made]), strict=True
    ):
        with path.open("w", encoding="utf-8") as file:
            for start in range(0, pairs, len(texts)):
                file.writelines(f"{text}\n" for text in texts[: pairs - start])
    return paths


def measure(command: str, model: Path, corpus: tuple[Path, Path], workers: int) -> MemoryResult:
    """Run a command and watch its memory.

    Raises:
        ValueError: the command fails, or does not write one line per pair.
    """
    source, target = corpus
    output = source.with_name(f"{source.stem}.{command}")
    options = ["--source", source, "--target", target, "--output", output, "--workers", workers]
    process = subprocess.Popen(
        [*PROGRAM, command, str(model), *map(str, options)], stderr=subprocess.DEVNULL
    )
    watch = MemoryWatch(process.pid)
    watch.start()
    code = process.wait()
    watch.stop()
    if code:
        raise ValueError(f"relakit {command} ended with {code} on {source}")
    pairs, rows = count_lines(source), count_lines(output) - (command == "score")
    if rows != pairs:
        raise ValueError(f"relakit {command} gave {rows:,} lines for {pairs:,} pairs")
    output.unlink()
    return MemoryResult(command, pairs, watch.peak / MIB, watch.largest / MIB)


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def growth(results: Iterable[MemoryResult]) -> float:
    """How far the largest peak exceeds the smallest, as a share of the smallest."""
    peaks = [result.peak_mib for result in results]
    return max(peaks) / min(peaks) - 1


def write_results(path: Path, results: Sequence[MemoryResult], workers: int) -> None:
    """Write JSON that includes the machine, and the same numbers as a CSV file beside it."""
    rows = [asdict(result) for result in results]
    document = {"machine": asdict(describe_machine()), "workers": workers, "results": rows}
    write_whole(path, (json.dumps(document, indent=1) + "\n").encode())
    write_csv(path.with_suffix(".csv"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=SIZES, help="sizes of the corpora")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=0.05, help="growth, as a share")
    parser.add_argument("--json", type=Path, help="for the results, with a CSV file beside it")
    arguments = parser.parse_args()
    results: list[MemoryResult] = []
    with tempfile.TemporaryDirectory(prefix="relakit-bench-") as name:
        folder = Path(name)
        model = write_model(folder)
        for pairs in arguments.pairs:
            corpus = write_corpus(folder, pairs)
            for command in arguments.commands:
                result = measure(command, model, corpus, arguments.workers)
                results.append(result)
                print(
                    f"{command}, {pairs:,} pairs: {result.peak_mib:,.0f} MiB at most, the largest "
                    f"process {result.largest_mib:,.0f} MiB",
                    flush=True,
                )
                if arguments.json is not None:
                    write_results(arguments.json, results, arguments.workers)
    grown = False
    for command in arguments.commands:
        share = growth(result for result in results if result.command == command)
        grown = grown or share > arguments.tolerance
        print(f"{command}: {share:.1%} between the sizes")
    if grown:
        sys.exit(f"memory grows by more than {arguments.tolerance:.0%}")


if __name__ == "__main__":
    main()
