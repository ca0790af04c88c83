"""How the benchmark talks with its peers. The peers themselves: benchmarks/peers/check.py."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"

WORKER = """
import os
from protocol import need, serve

def double(request):
    print("a library prints")
    os.system("echo a process prints")
    return {"result": 2 * need(request, "number")}

serve({"double": double})
"""


def converse(*lines: str) -> tuple[list[dict[str, Any]], str, int]:
    """The answers to the lines, what went to stderr, and the exit code."""
    finished = subprocess.run(
        [sys.executable, "-c", WORKER],
        input="".join(f"{line}\n" for line in lines),
        cwd=PEERS,
        capture_output=True,
        text=True,
        timeout=60,
    )
    answers = [json.loads(line) for line in finished.stdout.splitlines()]
    return answers, finished.stderr, finished.returncode


def test_only_answers_reach_standard_output() -> None:
    answers, printed, code = converse('{"do": "double", "number": 21}')
    assert answers == [{"result": 42}]
    assert "a library prints" in printed
    assert "a process prints" in printed
    assert code == 0


def test_quit_ends_the_worker() -> None:
    answers, _, code = converse('{"do": "quit"}', '{"do": "double", "number": 1}')
    assert answers == [{"ok": True, "bye": True}]
    assert code == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"do": "treble"}', "unknown request 'treble'; known: double, quit"),
        ('{"do": "double"}', "the request 'double' lacks 'number'"),
        ('{"number": 1}', "the request None lacks 'do'"),
        ("[1]", "a request is a JSON object"),
        ("{", "JSONDecodeError"),
    ],
)
def test_an_error_is_an_answer_and_the_worker_goes_on(line: str, message: str) -> None:
    answers, _, _ = converse(line, '{"do": "double", "number": 2}')
    assert message in answers[0]["error"]
    assert answers[1] == {"result": 4}
