"""A worker process: builds the work it is told, and does shards until nobody listens any more."""

import os
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread

from relakit.shards.cutting import Shard
from relakit.shards.engines.messages import Done, Failed, Message, Progressed
from relakit.shards.work import WorkDescription


def main() -> None:
    """``python -m relakit.shards.engines.worker DESCRIPTOR``, of one end of a pipe."""
    connection: Connection[bytes, bytes] = Connection(int(sys.argv[1]))
    inbox: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    serve(inbox.get, lambda message: connection.send_bytes(message.to_bytes()))


def _listen(connection: "Connection[bytes, bytes]", inbox: "SimpleQueue[bytes]") -> None:
    """Take messages, also in the middle of a shard: if our master is gone, so are we."""
    while True:
        try:
            inbox.put(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def serve(receive: Callable[[], bytes], send: Callable[[Message], None]) -> None:
    """Do what comes: first a description, then shards."""
    try:
        work = WorkDescription.from_json(receive()).build()
        while True:
            shard = Shard.from_json(receive())
            send(Done(work.run(shard.pairs, lambda pairs: send(Progressed(pairs)))))
    except Exception as error:  # whatever it is, the master has to say it
        send(Failed.by(error, traceback.format_exc()))


if __name__ == "__main__":
    main()
