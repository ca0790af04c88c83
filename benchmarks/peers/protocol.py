"""How a worker talks to the benchmark: requests and answers are JSON objects, one per line.

A worker does nothing between requests, so the benchmark can let several of them take turns.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TextIO

Request = dict[str, Any]
Answer = dict[str, Any]
Handler = Callable[[Request], Answer]


def need(request: Request, field: str) -> Any:
    """A field that the request must have."""
    if field not in request:
        raise ValueError(f"the request {request.get('do')!r} lacks {field!r}")
    return request[field]


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answer requests until ``quit`` or the end of the input."""
    answers = _private_stdout()
    try:
        for line in sys.stdin:
            answer = _answer(line, handlers)
            print(json.dumps(answer), file=answers, flush=True)
            if answer.get("bye"):
                return
    except (KeyboardInterrupt, BrokenPipeError):
        return  # the benchmark was stopped or is gone: nobody is left to answer


def _answer(line: str, handlers: Mapping[str, Handler]) -> Answer:
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError(f"a request is a JSON object, not {line.strip()!r}")
        name = need(request, "do")
        if name == "quit":
            return {"ok": True, "bye": True}
        if name not in handlers:
            known = ", ".join([*handlers, "quit"])
            raise ValueError(f"unknown request {name!r}; known: {known}")
        return handlers[name](request)
    except Exception as error:  # whatever a peer raises belongs in the benchmark's report
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def _private_stdout() -> TextIO:
    """Standard output for answers only: what libraries print, in C++ too, goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers
