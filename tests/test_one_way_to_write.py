"""Everything that is written goes through `relakit.files.writing`; what does not is listed here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WRITERS = {
    "copy2", "copyfile", "copytree", "makedirs", "mkdir", "mkdtemp", "mkstemp", "savefig",
    "save_file", "savetxt", "savez", "symlink_to", "touch", "write_bytes", "write_text",
    "NamedTemporaryFile", "SummaryWriter", "TemporaryDirectory",
}  # fmt: skip
"""Functions and methods that write, whatever they are called on."""
OF_MODULES = {
    ("os", "open"), ("os", "rename"), ("os", "replace"), ("os", "write"), ("np", "save"),
    ("torch", "save"), ("shutil", "copy"), ("shutil", "move"),
}  # fmt: skip
HERE = {
    "src/relakit/files/writing.py": "it is the way",
    "src/relakit/files/output_stream.py": "a part of it",
    "src/relakit/files/leftovers.py": "a part of it",
    "src/relakit/files/locks.py": "lock files, which nobody keeps",
}
ELSEWHERE = {
    ("src/relakit/report/figure_files.py", "savefig"): "into memory",
    ("src/relakit/bench/memory.py", "write_text"): "a switch of the kernel's in /proc",
    ("src/relakit/reproduce/eflomal.py", "TemporaryDirectory"): "what eflomal reads and writes",
    ("benchmarks/call_cost.py", "TemporaryDirectory"): "logs of workers",
    ("benchmarks/workers.py", "open"): "such a log",
    ("benchmarks/prepare_memory.py", "TemporaryDirectory"): "a corpus to measure with",
    ("benchmarks/prepare_memory.py", "open"): "the same",
    ("benchmarks/error_answers.py", "TemporaryDirectory"): "folders with something broken",
    ("benchmarks/error_answers.py", "copytree"): "the same",
    ("benchmarks/answers/named_commands.py", "symlink_to"): "the same",
    ("benchmarks/alignment.py", "TemporaryDirectory"): "copies of models, to add layers to",
    ("benchmarks/alignment_study/systems.py", "copytree"): "the same",
    ("benchmarks/filtering.py", "TemporaryDirectory"): "pairs to filter",
    ("benchmarks/pair_memory.py", "TemporaryDirectory"): "a corpus to measure with",
    ("benchmarks/pair_memory.py", "open"): "the same",
    ("benchmarks/toolkits/pair_turns.py", "mkdir"): "what the others read",
    ("benchmarks/toolkits/pair_turns.py", "write_text"): "the same",
    ("benchmarks/toolkits/measure.py", "TemporaryDirectory"): "what the other toolkits read",
    ("benchmarks/toolkits/training_turns.py", "save_file"): "the same",
    ("benchmarks/toolkits/peer_weights.py", "save_file"): "the same",
}
"""For the time of one call, or not on a disk."""


def writing_calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = function.value if isinstance(function, ast.Attribute) else None
        module = owner.id if isinstance(owner, ast.Name) else ""
        if name in WRITERS or (module, name) in OF_MODULES or (name == "open" and _is_write(node)):
            yield name


def _is_write(call: ast.Call) -> bool:
    """Whether one of the arguments of ``open`` is a mode for writing."""
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    modes = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    return any(set(mode) <= set("rwxabt+") and set(mode) & set("wxa+") for mode in modes)


def sources() -> list[Path]:
    peers = ROOT / "benchmarks" / "peers"  # scripts for environments without relakit
    found = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    return sorted(path for path in found if peers not in path.parents)


def test_there_is_no_other_way() -> None:
    found = {
        (str(path.relative_to(ROOT)), name) for path in sources() for name in writing_calls(path)
    }
    others = {(path, name) for path, name in found if path not in HERE}
    assert others == set(ELSEWHERE)


@pytest.mark.parametrize(
    "code",
    [
        'path.open("wb")', 'open(path, "a")', 'open(path, mode="x")', "path.write_text(text)",
        "np.save(path, x)", "shutil.copyfile(a, b)", "os.replace(a, b)", 'path.open("r+")',
    ],
)  # fmt: skip
def test_others_would_be_found(code: str, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(code)
    assert list(writing_calls(tmp_path / "code.py"))


def test_reading_is_free(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text('path.open("rb"); open(path); text.replace("w", "a")')
    assert not list(writing_calls(tmp_path / "code.py"))
