"""A peer's worker that computes nothing: it speaks the protocol, and misbehaves on demand."""

from pathlib import Path

WORKER = '''
import json
import sys
import time

BEHAVIOUR = {behaviour!r}
NAME = {name!r}


def tokens(path, first, count):
    """Target tokens of some batches, from the safetensors file's own bytes."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        content = file.read()
    batches = sum(name.startswith("target.") for name in header)
    total = 0
    for number in range(first, first + count):
        start, end = header[f"target.{{number % batches}}"]["data_offsets"]
        ids = content[start:end]
        total += sum(any(ids[i : i + 8]) for i in range(0, len(ids), 8))
    return total


def answer(request):
    do = request["do"]
    if BEHAVIOUR == "fails at setup" and do.startswith("setup"):
        return {{"error": "RuntimeError: out of luck"}}
    if BEHAVIOUR == "dies" and do in ("train-steps", "decode"):
        print("its last words", file=sys.stderr)
        sys.exit(3)
    if BEHAVIOUR == "babbles":
        return "no object"
    if do == "setup-train":
        answer.batches = request["batches"]
        return {{"ok": True, "about": f"{{NAME}} 1.0"}}
    if do == "train-steps":
        trained = tokens(answer.batches, request["first"], request["count"])
        if BEHAVIOUR == "skips tokens":
            trained -= 1
        return {{"seconds": 0.5, "target_tokens": trained, "loss": 1.0}}
    if do == "setup-decode":
        open(request["model"], "rb").close()
        return {{"ok": True, "about": f"{{NAME}} 1.0 {{request['precision']}}"}}
    if do == "decode":
        length = request["exact_length"] or 3
        if BEHAVIOUR == "stops early":
            length -= 1
        outputs = [[7] * length for _ in request["sentences"]]
        return {{"seconds": 0.25, "target_tokens": 0, "outputs": outputs}}
    if do == "score":
        entropies = [0.1] * len(request["sources"])
        return {{"seconds": 0.5, "cross_entropies": entropies}}
    return {{"ok": True, "bye": True}}


for line in sys.stdin:
    request = json.loads(line)
    if BEHAVIOUR == "hangs":
        time.sleep(60)
    print(json.dumps(answer(request)), flush=True)
    if request["do"] == "quit":
        break
'''


def write_fake_peers(folder: Path, **behaviours: str) -> Path:
    """Worker scripts by peer and behaviour ("works", or a way not to); the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, behaviour in behaviours.items():
        text = WORKER.format(behaviour=behaviour, name=name)
        (folder / f"{name}_worker.py").write_text(text)
    return folder
