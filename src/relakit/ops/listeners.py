"""What `relakit.capture` hooks into: the attention function reports its calls here."""

from collections.abc import Callable

from relakit.ops.call import AttentionCall

Listener = Callable[[AttentionCall], None]

_listeners: list[Listener] = []


def report(call: AttentionCall) -> None:
    """Tell every listener about a call."""
    for listener in _listeners:
        listener(call)


def is_recording() -> bool:
    """Whether anybody listens."""
    return bool(_listeners)


def add_listener(listener: Listener) -> None:
    """From now on, tell this listener about every call."""
    _listeners.append(listener)


def remove_listener(listener: Listener) -> None:
    """Stop telling this listener."""
    _listeners.remove(listener)
