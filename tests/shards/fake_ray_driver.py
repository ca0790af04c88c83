"""Stands for a driver of Ray that misbehaves: it does a shard, and then what it is told, for once.

How is in the settings of the work: ``driver`` (hang, die, crash or fail) and ``times``, a folder in
which each such driver leaves a file, and how many may be there. One that is told to end leaves
``parted`` beside that folder.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from relakit.shards.cutting import Shard
from relakit.shards.engines.child import NOTHING_MORE, Master
from relakit.shards.engines.messages import Done, Failed
from relakit.shards.work import WorkDescription


def main() -> None:
    master = Master()
    description = WorkDescription.from_json(master.receive())
    _, count = json.loads(master.receive())
    shards = [Shard.from_json(master.receive()) for _ in range(count)]
    folder, most = Path(description.settings["times"][0]), description.settings["times"][1]
    times = len(list(folder.iterdir()))
    work = description.build()
    for number, shard in enumerate(shards):
        if number == 1 and times < most:
            (folder / str(times)).touch()
            misbehave(master, description.settings["driver"])
        result = work.run(shard.pairs, lambda pairs: None)
        master.send(b"%d\n%b" % (shard.index, Done(result).to_bytes()))
    assert master.receive() == NOTHING_MORE
    folder.with_name("parted").touch()


def misbehave(master: Master, how: str) -> None:
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "crash":
        subprocess.Popen(["sleep", "600"])  # such as a raylet
        print("it says much\nno space left on device", file=sys.stderr, flush=True)
        os._exit(3)
    if how == "fail":
        master.send(b"\n" + Failed("value", "no actors").to_bytes())
    time.sleep(600)


if __name__ == "__main__":
    main()
