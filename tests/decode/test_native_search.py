"""The search in C++ by itself: what it is given as plain numbers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from native_extension import ISAS, NATIVE

VOCABULARY, DIM, END = 2048, 8, 2
FIRST, BETTER = 5, 1500
"""Tokens in the parts of two threads; the second is better by less than a sum of 100 can show."""


class OneStep:
    """A model without layers, whose logits are the first feature of its output weights."""

    def __init__(self, isa: str, beams: int = 1, **changed: Any) -> None:
        self.isa = isa
        self.weights = np.zeros((VOCABULARY, DIM), np.float32)
        self.weights[:, 0] = -50.0
        self.weights[FIRST, 0] = 3.0
        self.weights[BETTER, 0] = 3.000002
        self.embeddings = np.zeros((VOCABULARY, DIM), np.float32)
        self.embeddings[:, 0] = 1.0
        self.positions = np.zeros((4, DIM), np.float32)
        output = NATIVE.PackedLinear(
            isa, self.weights.ctypes.data, 0, VOCABULARY, DIM, False, -np.inf
        )
        table = self.embeddings.ctypes.data
        model = NATIVE.PackedModel(DIM, 1, False, table, table, output)
        given = {"tokens": [7, 3], "lengths": [2], **changed}
        self.search = NATIVE.Search(
            isa, 1, model, given["tokens"], given["lengths"], self.positions.ctypes.data, beams
        )
        self.beams = beams

    def step(self) -> None:
        tokens = np.full(self.beams, 1, np.int64)
        self.search.step(self.isa, 1, tokens.ctypes.data, self.positions.ctypes.data, 0)

    def choose(self, score: float, threads: int, count: int = 2) -> npt.NDArray[np.int64]:
        scores = np.full((1, self.beams), score, np.float32)
        best = np.empty((1, count), np.float32)
        beams, tokens = np.empty((2, 1, count), np.int64)
        addresses = (best.ctypes.data, beams.ctypes.data, tokens.ctypes.data)
        assert self.search.choose(
            self.isa, threads, scores.ctypes.data, count, [], 0, END, *addresses
        )
        return tokens


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_equal_scores_of_different_logits(isa: str, threads: int) -> None:
    """The better logit comes first, though another thread finds it."""
    run = OneStep(isa)
    run.step()
    assert run.choose(-100.0, threads).tolist() == [[BETTER, FIRST]]


def test_lengths_that_do_not_fit_the_tokens() -> None:
    with pytest.raises(ValueError, match="the sentences have 3 tokens, but 2 are given"):
        OneStep(ISAS[0], lengths=[3])


def test_no_beams() -> None:
    with pytest.raises(ValueError, match="the number of beams is 0, but must be from 1"):
        OneStep(ISAS[0], beams=0)


def test_no_candidates() -> None:
    run = OneStep(ISAS[0])
    run.step()
    with pytest.raises(ValueError, match="the number of candidates is 0, but must be from 1"):
        run.choose(0.0, 1, count=0)


@pytest.mark.parametrize("kept", [None, [0]])
def test_results_come_after_a_step(kept: list[int] | None) -> None:
    run = OneStep(ISAS[0])
    if kept is not None:
        run.step()
        run.search.keep(kept)
    with pytest.raises(RuntimeError, match="a search has results right after a step only"):
        run.choose(0.0, 1)
    run.step()
    run.choose(0.0, 1)


@pytest.mark.skipif(len(ISAS) < 2, reason="there is only one instruction set")
def test_another_instruction_set_than_before() -> None:
    run = OneStep(ISAS[0])
    run.step()
    run.isa = ISAS[1]
    for use in (run.step, lambda: run.choose(0.0, 1)):
        with pytest.raises(ValueError, match=f"the weights were not packed for {ISAS[1]}"):
            use()


@pytest.mark.parametrize("tokens", [(1, VOCABULARY), (-1, -1), (1, 4)])
def test_a_step_with_wrong_tokens_has_no_effect(tokens: tuple[int, int]) -> None:
    run = OneStep(ISAS[0], beams=2)
    wrong = np.array(tokens, np.int64)
    for _ in range(2):  # the same each time: it is still the first step
        with pytest.raises(ValueError, match=r"is not among the model's|begin with tokens 1 and 4"):
            run.search.step(ISAS[0], 1, wrong.ctypes.data, run.positions.ctypes.data, 0)
    run.step()
    assert run.choose(0.0, 1).tolist() == [[BETTER, FIRST]]


@pytest.mark.parametrize("bad", [-1, 2, 10**9])
def test_a_parent_that_is_not_there(bad: int) -> None:
    run = OneStep(ISAS[0], beams=2)
    run.step()
    parents = np.array([0, bad], np.int64)
    with pytest.raises(ValueError, match=f"a parent is {bad}, but must be from 0 to 1"):
        run.search.reorder(parents.ctypes.data)


@pytest.mark.parametrize(("places", "bad"), [([2], 2), ([-1], -1), ([1, 0], 0), ([0, 0], 0)])
def test_sentences_that_are_not_there(places: list[int], bad: int) -> None:
    run = OneStep(ISAS[0], tokens=[7, 3, 4, 3], lengths=[2, 2])
    with pytest.raises(ValueError, match=f"a sentence's place is {bad}, but must be from"):
        run.search.keep(places)


def test_lists_for_the_sentences_that_are_kept() -> None:
    run = OneStep(ISAS[0], tokens=[7, 3, 4, 3], lengths=[2, 2])
    run.search.keep([1])
    allowed = np.array([END, FIRST], np.int64)
    run.search.allow(ISAS[0], 1, allowed.ctypes.data, [2])
    run.step()
    assert run.choose(0.0, 1).tolist() == [[FIRST, END]]


LIMITED = """
import resource, sys
sys.path[:0] = {folders!r}
from test_native_search import ISAS, OneStep
run = OneStep(ISAS[0])
run.step()
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 20),) * 2)
print(run.choose(-100.0, 2).tolist())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says how much memory a process has")
def test_fewer_threads_than_wanted() -> None:
    """No room for the stack of another thread: the work is done without it."""
    script = LIMITED.format(folders=[str(folder) for folder in Path(__file__).parents[:2]])
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.stdout == f"[[{BETTER}, {FIRST}]]\n", run.stderr
