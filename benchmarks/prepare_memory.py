"""Peak memory and speed of `relakit prepare` on a generated corpus of any size.

The words are made up, with frequencies as uneven as in a natural language: a few words make up most
of the text, and new ones keep appearing. Exits with code 1 if the memory exceeds the limit.

    python benchmarks/prepare_memory.py --pairs 5000000
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SYLLABLES = (
    "ba",
    "den",
    "fei",
    "gro",
    "hü",
    "kel",
    "lich",
    "mos",
    "nar",
    "ost",
    "pfe",
    "rus",
    "te",
)
CHUNK = 10_000
MEAN_WORDS = 20


def word(number: int) -> str:
    """A made-up word for every number; small numbers get short words."""
    parts = []
    while True:
        number, rest = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[rest])
        if not number:
            return "".join(parts)


def write_corpus(path: Path, pairs: int) -> None:
    random = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, pairs, CHUNK):
            for _ in range(min(CHUNK, pairs - start)):
                source, target = (
                    " ".join(map(word, random.zipf(1.3, size).tolist()))
                    for size in 1 + random.poisson(MEAN_WORDS - 1, 2)
                )
                file.write(f"{source}.\t{target}.\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--limit", type=float, default=2.0, help="GiB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "train.tsv"
        write_corpus(corpus, arguments.pairs)
        print(f"{arguments.pairs:,} pairs, {corpus.stat().st_size / 2**20:,.0f} MiB of text")
        start = time.perf_counter()
        command = [str(Path(sys.executable).with_name("relakit")), "prepare", f"{folder}/out"]
        options = ["--train-tsv", str(corpus), "--vocab-size", str(arguments.vocab_size)]
        subprocess.run([*command, *options], check=True)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"{peak:.2f} GiB at most, {arguments.pairs / seconds:,.0f} pairs per second")
    if peak > arguments.limit:
        sys.exit(f"more than {arguments.limit} GiB")


if __name__ == "__main__":
    main()
