"""The C++ extension, and what it answers."""

from typing import Any


class WatchedExtension:
    """Whether each call of one of its functions was served: the answer was not None."""

    def __init__(self, native: Any, name: str) -> None:
        self._native = native
        self._name = name
        self.served: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._native, name)
        if name != self._name:
            return function

        def call(*arguments: Any) -> Any:
            answer = function(*arguments)
            self.served.append(answer is not None)
            return answer

        return call
