"""Commands that once lost files, hung, took all memory, or answered badly.

Rows of the tables in tests/faults are referred to by table and row. The other commands succeed, or
need a device, a small disk, another process or a file of hundreds of megabytes.
"""

import os
import shutil
import stat
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from all_rows import TABLES
from fault_rows import Break, Row, append, copy, link, put, remove, set_json

from answers.case import RELAKIT, Case, Holds
from relakit.data.tokenizer import learn_tokenizer
from relakit.files.locks import locked

TRANSLATE: Final = "translate model --input text.en --output"
ANALYZE: Final = "analyze model --source text.en --target text.de --no-translate --out report"
FILES: Final = "--train text.en text.de --vocab-size 300"
LONGEST: Final = "it has more than 1,048,576 bytes, the most a line may have; give text with one sentence per line"
CROPPED: Final = (
    "text.en, line 1: it has more than 1,024 tokens; such lines are translated up to token 1,024"
)
STOPPED: Final = """
import os, signal, threading, time
from pathlib import Path
from relakit.cli.main import main
def stop():
    while not Path("out/checkpoints/update-0000004").exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=stop, daemon=True).start()
main()
"""
"""Runs the command line, and sends it a signal after its fourth update."""
SMALL_DISK: Final = 'mkdir -p disk && mount -t tmpfs -o size={size} tmpfs disk && exec "$@"'


def from_table(table: str, broken: str) -> Case:
    """Look up a row by its name."""
    (found,) = (row for row in TABLES[table] if row.broken == broken)
    return Case(found)


def ends_well(
    name: str,
    command: str,
    says: str,
    *breaks: Break,
    holds: Holds = lambda folder, ended: True,
) -> Case:
    """A command that succeeds, and what it says while it runs."""
    return Case(Row(name, command, says, breaks, code=0), holds=holds)


def on_small_disk(size: str) -> tuple[str, ...]:
    """Start the command line in a folder where ``disk`` is a disk of this size."""
    return ("unshare", "--mount", "sh", "-c", SMALL_DISK.format(size=size), "sh", *RELAKIT)


def can_mount() -> bool:
    """Whether this user has the right to mount a small disk."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def make_device(name: str) -> Break:
    """Make a device like /dev/null, which only root can; other users get a link to it."""

    def do(folder: Path) -> None:
        try:
            os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            (folder / name).symlink_to("/dev/null")

    return do


def is_device(name: str) -> Holds:
    return lambda folder, ended: stat.S_ISCHR((folder / name).stat().st_mode)


@cache
def bomb(megabytes: int = 600) -> bytes:
    """A gzip file of a single line that is a thousand times larger."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(b"x" * (1 << 20)) for _ in range(megabytes)]
    return b"".join([*parts, packer.flush()])


def put_bomb(name: str) -> Break:
    return lambda folder: put(name, bomb())(folder)


def put_tokenizer(name: str, vocabulary: int) -> Break:
    """Put in place a tokenizer whose size differs from the model's."""
    texts = ["the old dog and the small house of the men"] * 9
    return lambda folder: learn_tokenizer(texts, vocab_size=vocabulary).save(folder / name)


@contextmanager
def another_run(folder: Path) -> Iterator[None]:
    """Hold the lock of ``out``: this process plays another one that trains there."""
    with locked(folder / "out"):
        yield


NEVER_HARM: Final = (
    ends_well(
        "`evaluate --output` is a device",
        "evaluate model --source text.en --reference text.de --output null",
        "",
        make_device("null"),
        holds=is_device("null"),
    ),
    ends_well(
        "`evaluate --output` is a symbolic link",
        "evaluate model --source text.en --reference text.de --output link",
        "",
        put("target", "old\n"),
        link("link", "target"),
        holds=lambda folder, ended: (
            (folder / "link").is_symlink() and (folder / "target").read_text() != "old\n"
        ),
    ),
    ends_well(
        "`translate --output /dev/stdout > file`",
        f"{TRANSLATE} /dev/stdout",
        "",
        holds=lambda folder, ended: ended.output.count("\n") == 3,
    ),
    ends_well(
        "a killed `prepare` left its temporary folder",
        f"prepare out {FILES}",
        "",
        put(".out.host-1-0123abcd.tmp/x", ""),
        lambda folder: os.utime(folder / ".out.host-1-0123abcd.tmp", (0, 0)),
        holds=lambda folder, ended: not (folder / ".out.host-1-0123abcd.tmp").exists(),
    ),
    from_table("outputs", "translate: the input"),
    from_table("outputs", "translate: a link to the input"),
    from_table("runs, average, demo", "--out is a prepared corpus"),
    from_table("runs, average, demo", "a run is there"),
    from_table("outputs", "analyze: a prepared corpus"),
    Case(
        Row(
            "two runs in one --out",
            "train recipe.toml --out out",
            "another process is at work in out: process ... on ...; wait for it or stop it",
            leaves=("out",),
        ),
        meanwhile=another_run,
    ),
)
"""Cases about writing."""

FULL: Final = (
    Case(
        Row(
            "`translate --output` on a full disk",
            f"{TRANSLATE} /dev/full",
            "/dev/full cannot be written: no space is left on the disk...",
        )
    ),
    Case(
        Row(
            "`prepare` on a full disk",
            f"prepare disk/out {FILES}",
            "disk/out... cannot be written: no space is left on the disk: ... needed, ... free; make room or choose another place",
            leaves=("disk",),
        ),
        on_small_disk("8k"),
    ),
    Case(
        Row(
            "`train` on a full disk",
            "train recipe.toml --out disk/out",
            "disk/out/... cannot be written: no space is left on the disk: ... needed, ... free; make room or choose another place, then relakit train --resume --out disk/out",
            leaves=("disk",),
        ),
        on_small_disk("48k"),
    ),
    Case(
        Row(
            "`analyze` on a full disk",
            "analyze model --source text.en --target text.de --no-translate --out disk/report",
            "disk/report... cannot be written: no space is left on the disk: ... needed, ... free; make room or choose another place",
            leaves=("disk",),
        ),
        on_small_disk("48k"),
    ),
)
"""Cases with full disks; all but the first need the right to mount a disk."""

NEVER_EXPLODE: Final = (
    ends_well(
        "`translate`: a line of 10,000 tokens",
        f"{TRANSLATE} out.de",
        CROPPED,
        put("text.en", "dog " * 10_000),
    ),
    ends_well(
        "`translate`: a line of 1 MB",
        f"{TRANSLATE} out.de",
        CROPPED,
        put("text.en", "x" * 1_000_000),
    ),
    Case(
        Row(
            "`translate`: a line of 600 MB in a small gzip file",
            f"{TRANSLATE} out.de",
            f"text.en, line 1: {LONGEST}",
            (put_bomb("text.en"),),
        )
    ),
    Case(
        Row(
            "`prepare`: the same file",
            f"prepare out {FILES}",
            f"text.en, line 1: {LONGEST}",
            (put_bomb("text.en"),),
        )
    ),
    Case(
        Row(
            "`analyze --gold`: the same file",
            f"{ANALYZE} --gold gold",
            f"gold, line 1: {LONGEST}",
            (put_bomb("gold"),),
        )
    ),
    Case(
        Row(
            "`analyze --tags`: the same file",
            f"{ANALYZE} --tags tags",
            f"tags, line 1: {LONGEST}",
            (put_bomb("tags"),),
        )
    ),
    Case(
        Row(
            "`evaluate`: the same file",
            "evaluate --hypothesis text.en --reference text.de",
            f"text.en, line 1: {LONGEST}",
            (put_bomb("text.en"),),
        )
    ),
    Case(
        Row(
            "`config.json`: the same file",
            f"{TRANSLATE} out.de",
            "model/config.json is not UTF-8 (byte 0x8b at position 2): it is no file of settings",
            (put_bomb("model/config.json"),),
        )
    ),
    ends_well(
        "`analyze`: a pair of 3,000 tokens",
        ANALYZE,
        "text.en, line 4: more than 1,024 tokens on a side; left out (--max-tokens)",
        append("text.en", b"dog " * 3_000 + b"\n"),
        append("text.de", b"Hund " * 3_000 + b"\n"),
    ),
    from_table("model directories, translate", "a hundred million layers"),
    Case(
        Row(
            "a hundred million layers, to analyze",
            ANALYZE,
            "model/config.json says model.decoder_layers = 100,000,000, but model.safetensors beside it has the weights of a model with 1: they do not belong together; copy both from one model",
            (set_json("model/config.json", "model.decoder_layers", 100_000_000),),
        )
    ),
    from_table("recipes", "dim of a billion"),
    from_table("recipes", "a model larger than memory"),
    from_table("recipes", "a hundred million layers"),
    from_table("model directories, translate", "a beam of a hundred thousand"),
    from_table("recipes", "a beam of a hundred thousand"),
    from_table("model directories, translate", "a hundred thousand threads"),
    from_table("recipes", "a hundred thousand threads"),
    from_table("analyze, gold files", "naacl with sentence 999,999,999"),
    from_table("analyze, gold files", "naacl with sentence 9,999,999 of 3"),
    from_table("recipes", "a device where nothing is computed"),
    from_table("model directories, translate", "another tokenizer"),
    Case(
        Row(
            "the tokenizer of a model with fewer ids",
            f"{TRANSLATE} out.de",
            "model/tokenizer.json has 280 entries, the model 300: they do not belong together",
            (
                put_tokenizer("model/tokenizer.json", 280),
                set_json("model/config.json", "tokenizer_sha256", None),
            ),
        )
    ),
    from_table("recipes", "other languages than the corpus"),
    from_table("recipes", "two places for the data"),
    from_table("recipes", "two places for the data by --set"),
    from_table("prepared corpora", "a token that the tokenizer has not"),
)
"""Cases about sizes, and about things that do not belong together."""

SAY_IT_WELL: Final = (
    from_table("text files", "prepare: something after gzip"),
    from_table("text files", "translate: something after gzip"),
    from_table("text files", "prepare: blank lines"),
    from_table("text files", "evaluate: blank lines"),
    from_table("text files", "translate: a folder"),
    from_table("text files", "analyze: a folder"),
    from_table("outputs", "translate: a folder"),
    from_table("text files", "translate: a NUL byte"),
    from_table("recipes", "batches of one token"),
    from_table("recipes", "a vocabulary of a billion"),
    from_table("prepare", "a vocabulary of a billion"),
    ends_well(
        "the folder of `--output` is missing",
        f"{TRANSLATE} some/where/out.de",
        "",
        holds=lambda folder, ended: (folder / "some/where/out.de").is_file(),
    ),
    ends_well(
        "a vocabulary that cannot be reached",
        f"prepare out {FILES.replace('300', '30000')}",
        "the vocabulary has ... tokens, not 30,000 as asked for (vocab_size): no more pairs of tokens occur 2 times in text.en and text.de",
    ),
    ends_well(
        "a test set that lacks a language",
        "prepare out --folder corpus --source-lang en --target-lang de --vocab-size 300",
        "corpus/test_2017.en exists, but no test_2017.de (plain, .gz or .zst): this test set is left out",
        copy("corpus/test.en", "corpus/test_2017.en"),
    ),
    from_table("runs, average, demo", "resumed with another seed"),
    from_table("runs, average, demo", "resumed with two changes"),
    ends_well(
        "resumed with more updates and another validation",
        "train --resume --out run --set training.updates=6 --set validation.beam=2",
        "finished",
        holds=lambda folder, ended: (folder / "run/checkpoints/update-0000006").is_dir(),
    ),
    ends_well(
        "`relakit average`",
        "average run --out out --last 1",
        "",
        holds=lambda folder, ended: (folder / "out/model.safetensors").is_file(),
    ),
    Case(
        Row(
            "a run that SIGTERM stops",
            "train recipe.toml --out out --set training.updates=100000",
            "continue with: relakit train --resume --out out",
            code=143,
        ),
        (RELAKIT[0], "-c", STOPPED),
        holds=lambda folder, ended: (folder / "out/model/model.safetensors").is_file(),
    ),
    Case(
        Row(
            "a checkpoint is half there",
            "train --resume --out run --set training.updates=6",
            "run/checkpoints/update-0000004 is damaged, or of another model (run/checkpoints/update-0000004/adam.safetensors is missing); remove that folder, and --resume continues from the checkpoint before it",
            (remove("run/checkpoints/update-0000004/adam.safetensors"),),
        )
    ),
)
"""Cases about messages."""
