"""A worker process: builds the work it is given, and does shards until nobody listens any more."""

import traceback
from collections.abc import Callable

from relakit.shards.cutting import Shard
from relakit.shards.engines.child import Master
from relakit.shards.engines.messages import Done, Failed, Message, Progressed
from relakit.shards.work import WorkDescription


def main() -> None:
    """Run the process that `ChildProcess` starts."""
    master = Master()
    serve(master.receive, lambda message: master.send(message.to_bytes()))


def serve(receive: Callable[[], bytes], send: Callable[[Message], None]) -> None:
    """Take a description of the work first, then do the shards that follow."""
    try:
        work = WorkDescription.from_json(receive()).build()
        while True:
            shard = Shard.from_json(receive())
            send(Done(work.run(shard.pairs, lambda pairs: send(Progressed(pairs)))))
    except Exception as error:  # whatever it is, the master has to report it
        send(Failed.by(error, traceback.format_exc()))


if __name__ == "__main__":
    main()
