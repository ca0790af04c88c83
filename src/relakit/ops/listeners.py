"""What `relakit.capture` hooks into: the attention function reports its calls here."""

from collections.abc import Callable

from relakit.ops.call import AttentionCall

Listener = Callable[[AttentionCall], None]

_listeners: list[Listener] = []


def report(call: AttentionCall) -> None:
    for listener in _listeners:
        listener(call)


def is_recording() -> bool:
    """Whether there is a listener."""
    return bool(_listeners)


def add_listener(listener: Listener) -> None:
    _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    _listeners.remove(listener)
