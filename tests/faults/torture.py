"""``make torture``: kill commands at random moments, and run them again.

After each kill the same command must finish, give what an undisturbed one gives, and leave nothing
else behind. The results become a page, made from a JSON file that keeps what an earlier run found
about commands that are not killed this time. Not part of ``make test``: it takes minutes.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fault_folder import build

from relakit.files.writing import write_whole

PROGRAM = (sys.executable, "-c", "from relakit.cli.main import main; main()")
TIMED = {"seconds", "minutes", "tokens_per_second"}
"""Keys whose values no two runs share."""
NOT_COMPARED = ("tensorboard", "log.jsonl")
"""They hold times."""
NAME = "here"
"""Of every folder that is compared: an analysis names the model after the folder it is in."""
BLIND = 0.2
"""The share of the kills that come at any moment; the others come after the first trace on disk."""
MOST_TRIES = 3
"""For each kill: a command may end before it."""
LOOK_EVERY = 0.01
"""Seconds."""
PAGE = Path("results/torture.md")
"""The outcomes are beside it, in a JSON file."""


@dataclass(frozen=True)
class Victim:
    """A command to kill, what it makes, and how to go on after a kill."""

    name: str
    command: str
    makes: str
    again: str | None = None
    """What continues it where ``makes`` has begun; None: the same command."""


VICTIMS = (
    Victim(
        "prepare",
        "prepare out --folder corpus --source-lang en --target-lang de --vocab-size 300",
        "out",
    ),
    Victim(
        "train",
        "train recipe.toml --out out --set training.updates=12",
        "out",
        "train recipe.toml --out out --set training.updates=12 --resume",
    ),
    Victim(
        "analyze",
        "analyze model --source text.en --target text.de --gold gold --no-translate --out out",
        "out",
    ),
    Victim(
        "score",
        "score model --source corpus/train.en --target corpus/train.de --shard-pairs 3 --workers 2 "
        "--output out/scores.tsv.gz",
        "out",
    ),
    Victim(  # it also chooses heads, and keeps the choice with the model
        "align",
        "align model --source corpus/train.en --target corpus/train.de --shard-pairs 3 --workers 2 "
        "--format json --output out/links.zst",
        "out",
    ),
    Victim(
        "filter",
        "filter model --source corpus/train.en --target corpus/train.de --shard-pairs 3 "
        "--workers 2 --keep 0.5 --output out",
        "out",
    ),
)


@dataclass
class Outcome:
    """What became of the runs of one victim."""

    kills: int = 0
    too_late: int = 0
    """The command had finished before."""
    with_traces: int = 0
    """The kill left something in the folder."""
    complete: int = 0
    """The kill came when all was on the disk, and the command again refused to replace it."""
    problems: list[str] = field(default_factory=list)
    seed: int = 0
    """Of the moments."""
    python: str = platform.python_version()
    system: str = platform.system()


def start(command: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, *command.split()],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def finish(command: str, folder: Path) -> tuple[int, str]:
    process = start(command, folder)
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors.decode(errors="replace").strip()


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def result_of(folder: Path) -> dict[str, str]:
    """A digest of each file; times are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or any(part in NOT_COMPARED for part in name.split("/")):
            continue
        content = path.read_bytes()
        if path.suffix == ".json":
            content = json.dumps(without_times(json.loads(content)), sort_keys=True).encode()
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def without_times(content: object) -> object:
    if isinstance(content, dict):
        return {key: without_times(value) for key, value in content.items() if key not in TIMED}
    return [without_times(value) for value in content] if isinstance(content, list) else content


def torment(
    victim: Victim, whole: Path, kills: int, seed: int, tell: Callable[[str], None]
) -> Outcome:
    """Kill a command again and again, each time in a fresh folder."""
    draw = random.Random(f"{victim.name} {seed}")
    outcome = Outcome(seed=seed)
    with tempfile.TemporaryDirectory() as place:
        undisturbed = Path(shutil.copytree(whole, Path(place) / "undisturbed" / NAME))
        writing, seconds, errors = timed(victim, undisturbed)
        if errors:
            raise SystemExit(f"{victim.name} fails undisturbed: {errors}")
        expected = result_of(undisturbed / victim.makes)
        names = listing(undisturbed)
        for number in range(MOST_TRIES * kills):
            folder = Path(shutil.copytree(whole, Path(place) / f"{number}" / NAME))
            is_blind = draw.random() < BLIND
            after = draw.random() * (seconds if is_blind else seconds - writing)
            moment = Moment(after, from_first_trace=not is_blind)
            problem = _once(victim, folder, moment, names, expected, outcome)
            if problem is not None:
                outcome.problems.append(f"try {number + 1}: {problem}")
            tell(f"{victim.name}: {outcome.kills} of {kills}")
            shutil.rmtree(folder.parent)
            if outcome.kills == kills:
                break
    return outcome


@dataclass(frozen=True)
class Moment:
    """When a command is killed."""

    seconds: float
    from_first_trace: bool
    """Counted from the first change in the folder, and not from the start."""


def wait_for_trace(process: subprocess.Popen[bytes], folder: Path, before: set[str]) -> None:
    """Until the folder holds something else, or the command has ended."""
    while process.poll() is None and listing(folder) == before:
        time.sleep(LOOK_EVERY)


def timed(victim: Victim, folder: Path) -> tuple[float, float, str]:
    """Seconds until the first trace and until the end; and what is wrong, if the command fails."""
    before = listing(folder)
    begin = time.monotonic()
    process = start(victim.command, folder)
    wait_for_trace(process, folder, before)
    writing = time.monotonic() - begin
    _, errors = process.communicate(timeout=300)
    return writing, time.monotonic() - begin, errors.decode() if process.returncode else ""


def _once(
    victim: Victim,
    folder: Path,
    moment: Moment,
    names: set[str],
    expected: dict[str, str],
    outcome: Outcome,
) -> str | None:
    """One kill and the command again; returns what is wrong afterwards."""
    before = listing(folder)
    process = start(victim.command, folder)
    if moment.from_first_trace:
        wait_for_trace(process, folder, before)
    try:
        process.wait(timeout=moment.seconds)
        outcome.too_late += 1
        return None
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own session: nothing else is in it
        process.communicate()
    outcome.kills += 1
    outcome.with_traces += listing(folder) != before
    has_begun = (folder / victim.makes / "recipe.json").exists()
    command = victim.again if victim.again is not None and has_begun else victim.command
    code, errors = finish(command, folder)
    is_there = (folder / victim.makes).exists()
    if code and is_there and result_of(folder / victim.makes) == expected:
        outcome.complete += 1
        return None
    if code:
        return f"the command again ended with {code}: {errors[-300:]}"
    found = result_of(folder / victim.makes)
    other = sorted(n for n in found.keys() | expected.keys() if found.get(n) != expected.get(n))
    if other:
        return f"another result: {', '.join(other[:5])}"
    strange = sorted(n for n in listing(folder) - names if not set(n.split("/")) & {*NOT_COMPARED})
    return f"left behind: {', '.join(strange[:5])}" if strange else None


def read_outcomes(path: Path) -> dict[str, Outcome]:
    """What earlier runs found, by command."""
    if not path.exists():
        return {}
    return {name: Outcome(**found) for name, found in json.loads(path.read_text()).items()}


def page(outcomes: dict[str, Outcome]) -> str:
    """The results for people."""
    lines = [
        "# Killed and run again",
        "",
        "Written by `make torture` (`tests/faults/torture.py`). Each command was killed with",
        "`kill -9` in a folder of its own: one time in five at a random moment of its usual time,",
        "otherwise at a random moment after its first trace on the disk. Then it was run again",
        "(`train` with `--resume` where its run had begun). It passes if it then ends with 0,",
        "gives byte for byte what an undisturbed command gives (times left out) and leaves nothing",
        "else behind. Logs and training curves, which hold times, are not compared.",
        "Where all was on the disk already, byte for byte, `prepare` refuses to replace it without",
        "`--force`, and that is counted apart.",
        "",
        "| command | killed | with traces on disk | finished before | complete, refused again | "
        "same result afterwards | seed | Python |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, outcome in outcomes.items():
        passed = outcome.kills - len(outcome.problems)
        lines.append(
            f"| `{name}` | {outcome.kills} | {outcome.with_traces} | {outcome.too_late} | "
            f"{outcome.complete} | {passed} of {outcome.kills} | {outcome.seed} | "
            f"{outcome.python}, {outcome.system} |"
        )
    problems = [f"- `{name}`, {p}" for name, o in outcomes.items() for p in o.problems]
    lines += ["", *(problems or ["No problem was found."])]
    return "\n".join(lines) + "\n"


def main() -> None:
    names = [victim.name for victim in VICTIMS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="of each command (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (default: 1)")
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="COMMAND",
        help=f"some of {', '.join(names)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--page", type=Path, default=PAGE, help=f"with a JSON file beside it (default: {PAGE})"
    )
    arguments = parser.parse_args()
    kept = arguments.page.with_suffix(".json")
    outcomes = read_outcomes(kept)
    with tempfile.TemporaryDirectory() as place:
        whole = build(Path(place) / "whole")
        for victim in VICTIMS:
            if victim.name not in arguments.only:
                continue
            outcomes[victim.name] = torment(
                victim, whole, arguments.kills, arguments.seed, lambda text: print(text, flush=True)
            )
            found = {name: asdict(outcomes[name]) for name in names if name in outcomes}
            write_whole(kept, (json.dumps(found, indent=1) + "\n").encode())
    text = page({name: outcomes[name] for name in names if name in outcomes})
    write_whole(arguments.page, text.encode())
    print(text)
    sys.exit(any(outcome.problems for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
