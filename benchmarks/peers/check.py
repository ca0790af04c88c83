"""Do all toolkits compute the same model? Run this with the Python of the peers' environment.

    build/peers/bin/python benchmarks/peers/check.py

Prints one line per check and exits with code 1 if one fails. Small models, no timing.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import reference
from batches import BEGIN, END, PAD, Batch, padded, write_batches
from weights import Size, Weights, marian_state, random_weights, write_weights

HERE = Path(__file__).parent
SIZE = Size(d_model=32, heads=4, layers=2, ffn=64, vocab=24)
TORCH_PEERS = ("joeynmt", "marian")
PEERS = (*TORCH_PEERS, "ctranslate2")


class Peer:
    """A worker process; ``ask`` raises an exception if the worker answers with an error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / f"{name}_worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"do": do, **fields}), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer


@contextmanager
def started(names: tuple[str, ...]) -> Iterator[dict[str, Peer]]:
    peers = {name: Peer(name) for name in names}
    try:
        yield peers
    finally:
        for peer in peers.values():
            peer.process.communicate()  # a worker ends when its input ends


class Checks:
    def __init__(self) -> None:
        self.failed = 0

    def report(self, passed: bool, text: str) -> None:
        self.failed += not passed
        print("ok  " if passed else "FAIL", text, flush=True)

    def close(self, found: Any, expected: Any, tolerance: float, what: str) -> None:
        error = float(np.abs(np.asarray(found) - np.asarray(expected)).max())
        self.report(error <= tolerance, f"{what}: largest difference {error:.1e}")


def sentences(lengths: tuple[int, ...], seed: int) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [generator.integers(END + 1, SIZE.vocab, length).tolist() for length in lengths]


def trained_to_copy(folder: Path) -> Weights:
    """Weights of a model that has nearly learnt to copy: sharp choices, natural ends, some errors.

    Random weights repeat one word forever, and every search finds that.
    """
    import marian_worker

    weights = random_weights(SIZE, seed=0)
    write_weights(folder / "start.safetensors", weights)
    generator = np.random.default_rng(4)
    batches = []
    for seed in range(50):
        ids = padded([[*s, END] for s in sentences(tuple(generator.integers(3, 13, 32)), seed)])
        batches.append(Batch(ids, ids))
    write_batches(folder / "copies.safetensors", batches)
    worker = marian_worker.Worker()
    worker.setup_train(
        {
            "size": SIZE.__dict__,
            "weights": str(folder / "start.safetensors"),
            "batches": str(folder / "copies.safetensors"),
            "dropout": 0.0,
            "learning_rate": 2e-3,
        }
    )
    worker.train_steps({"first": 0, "count": 400})
    state = worker.trained.state_dict()
    names = {id(array): name for name, array in weights.arrays.items()}
    arrays = {
        names[id(array)]: state[name].numpy()
        for name, array in marian_state(weights).items()
        if id(array) in names
    }
    return Weights(SIZE, arrays)


def check_logits(checks: Checks, weights: Weights) -> None:
    import joeynmt_worker
    import marian_worker

    source = padded([[*sentence, END] for sentence in sentences((7, 4, 1), seed=1)])
    inputs = padded([[BEGIN, *sentence] for sentence in sentences((5, 8, 2), seed=2)])
    expected = reference.logits(weights, source, inputs)
    marian = marian_worker.make_model(SIZE, 0.0, 0.0, "sdpa").eval()
    marian_worker.load_weights(marian, weights)
    found = marian_worker.logits(marian, source, inputs)
    checks.close(found, expected, 1e-4, "logits of Marian and the NumPy reference")
    joeynmt = joeynmt_worker.make_model(SIZE, 0.0).eval()
    joeynmt_worker.load_weights(joeynmt, weights)
    found = joeynmt_worker.logits(joeynmt, source, inputs)
    checks.close(found, expected, 1e-4, "logits of JoeyNMT and the NumPy reference")


def check_ctranslate2_scores(checks: Checks, weights: Weights, model: str) -> None:
    import ctranslate2_worker

    sources, targets = sentences((7, 4, 1), seed=1), sentences((5, 8, 2), seed=2)
    source = padded([[*sentence, END] for sentence in sources])
    inputs = padded([[BEGIN, *sentence] for sentence in targets])
    expected = reference.log_probabilities(reference.logits(weights, source, inputs))
    for precision, tolerance in (("fp32", 1e-4), ("int8", 0.5)):
        worker = ctranslate2_worker.Worker()
        worker.setup_decode({"model": model, "precision": precision})
        words = [[[str(i) for i in ids] for ids in side] for side in (sources, targets)]
        scores = worker.translator.score_batch(*words)
        errors = [
            abs(score - expected[row, column, token])
            for row, target in enumerate(targets)
            for column, (score, token) in enumerate(
                zip(scores[row].log_probs, [*target, END], strict=True)
            )
        ]
        what = f"log-probabilities of CTranslate2 {precision} and the NumPy reference"
        checks.close(errors, 0, tolerance, what)


def check_hypotheses(checks: Checks, peers: dict[str, Peer], model: str) -> None:
    given = sentences((9, 4, 6, 11, 5, 12, 8, 10, 7, 4, 12, 9), seed=100)
    for peer in peers.values():
        peer.ask("setup-decode", model=model, threads=1)
    same_work: list[dict[str, Any]] = [
        {"beam": 1},
        *({"beam": 4, "exact_length": 4, "batch_size": size} for size in (1, 5, 64)),
    ]
    for search in same_work:
        ask = {"sentences": given, "max_length": 30, **search}
        answers = {name: peer.ask("decode", **ask) for name, peer in peers.items()}
        outputs = [answer["outputs"] for answer in answers.values()]
        lengths = [len(output) for output in outputs[0]]
        same = all(output == outputs[0] for output in outputs)
        checks.report(same, f"{search}: same hypotheses, of lengths {lengths}")
        tokens = {answer["target_tokens"] for answer in answers.values()}
        ends = 0 if "exact_length" in search else len(given)
        checks.report(tokens == {sum(lengths) + ends}, f"{search}: tokens {tokens}")
    # Past the natural end, the toolkits differ in what they do with END's probability.
    for name, peer in peers.items():
        answer = peer.ask("decode", sentences=given, beam=4, batch_size=5, exact_length=20)
        lengths = [len(output) for output in answer["outputs"]]
        right = set(lengths) == {20} and answer["target_tokens"] == 20 * len(given)
        checks.report(right, f"{name}, exact length 20: lengths {set(lengths)}")
    check_free_length(checks, peers, given)


def check_free_length(checks: Checks, peers: dict[str, Peer], given: list[list[int]]) -> None:
    """Beam search to natural ends, where length penalties and stopping rules differ."""
    found = {}
    for name, peer in peers.items():
        outputs = [
            peer.ask("decode", sentences=given, beam=4, max_length=30, batch_size=size)["outputs"]
            for size in (1, 5, 64)
        ]
        alike = outputs[0] == outputs[1] == outputs[2]
        checks.report(alike, f"{name}, beam 4, free length: the same at any batch size")
        found[name] = outputs[0]
    for first, second in combinations(found, 2):
        equal = sum(a == b for a, b in zip(found[first], found[second], strict=True))
        text = f"{first} and {second}, beam 4, free length: {equal} of {len(given)} alike"
        checks.report(equal >= 0.75 * len(given), text)


def check_training(checks: Checks, peers: dict[str, Peer], folder: Path, weights: Weights) -> None:
    batches = []
    for number, (first, second) in enumerate([((7, 4, 6), (8, 5, 2)), ((3, 9), (9, 4))]):
        source = padded([[*ids, END] for ids in sentences(first, seed=10 + number)])
        target = padded([[*ids, END] for ids in sentences(second, seed=20 + number)])
        batches.append(Batch(source, target))
    write_batches(folder / "batches.safetensors", batches)
    setting = {
        "size": SIZE.__dict__,
        "batches": str(folder / "batches.safetensors"),
        "weights": str(folder / "random.safetensors"),
        "dropout": 0.0,
        "label_smoothing": 0.0,
    }
    batch = batches[0]
    scores = reference.log_probabilities(
        reference.logits(weights, batch.source, batch.decoder_input)
    )
    chosen = np.take_along_axis(scores, batch.target[..., None], axis=-1)[..., 0]
    expected = -chosen[batch.target != PAD].mean()
    losses = {}
    for name in TORCH_PEERS:
        peers[name].ask("setup-train", **setting)
        answers = [peers[name].ask("train-steps", first=i, count=1) for i in range(6)]
        losses[name] = [answer["loss"] for answer in answers]
        checks.close(losses[name][0], expected, 1e-4, f"first training loss of {name}")
        tokens = [answer["target_tokens"] for answer in answers[:2]]
        right = tokens == [batch.target_tokens for batch in batches]
        checks.report(right, f"target tokens counted by {name}: {tokens}")
        checks.report(losses[name][-2] < losses[name][0], f"{name} learns: {losses[name]}")
    checks.close(losses["joeynmt"], losses["marian"], 1e-3, "training losses, six updates")
    for name in TORCH_PEERS:
        peers[name].ask("setup-train", **{**setting, "precision": "bf16", "dropout": 0.1})
        loss = peers[name].ask("train-steps", first=0, count=4)["loss"]
        checks.report(bool(np.isfinite(loss)), f"{name} trains in bf16: loss {loss:.3f}")


def check_errors(checks: Checks, peers: dict[str, Peer]) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("sing", {}),
        ("setup-decode", {}),
        ("decode", {"sentences": []}),
    ]
    for name, peer in peers.items():
        for do, fields in wrong:
            try:
                answer = peer.ask(do, **fields)
            except RuntimeError as error:
                checks.report(True, f"{do!r} with {fields}: {error}")
            else:
                checks.report(False, f"{name} answered {do!r} with {answer}")


def main() -> int:
    checks = Checks()
    weights = random_weights(SIZE, seed=0)
    with tempfile.TemporaryDirectory() as name, started(PEERS) as peers:
        folder = Path(name)
        random, copying = folder / "random.safetensors", folder / "copying.safetensors"
        write_weights(random, weights)
        write_weights(copying, trained_to_copy(folder))
        check_logits(checks, weights)
        check_ctranslate2_scores(checks, weights, str(random))
        check_errors(checks, peers)
        check_hypotheses(checks, peers, str(copying))
        check_training(checks, peers, folder, weights)
    print(f"{checks.failed} checks failed" if checks.failed else "all checks passed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
