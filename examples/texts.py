"""Texts for the examples: your files, or Python's standard library, which every machine has.

Its sources are a few million characters that need no download: text for a language model, and
functions to classify by the package they come from.
"""

import ast
import sys
import sysconfig
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<end>"
"""Separates texts, and pads the shorter ones in a batch."""

PACKAGES = (
    "asyncio",
    "email",
    "http",
    "importlib",
    "logging",
    "multiprocessing",
    "unittest",
    "urllib",
    "xml",
)
"""Packages of the standard library with 150 functions or more, which every installation has."""
SHORTEST_FUNCTION = 60
"""In characters; ``return self.x`` could be from anywhere."""

# Tests, tables, and what some installations lack.
_LEFT_OUT = {"test", "tests", "encodings", "pydoc_data"} | {
    "distutils",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "tkinter",
    "turtledemo",
}


class Labelled(NamedTuple):
    """A text to classify."""

    label: str
    text: str


@dataclass(frozen=True)
class Split:
    """Texts to train on, and texts that are kept for measuring."""

    training: list[str]
    held_out: list[str]


def read_texts(paths: Sequence[Path] = ()) -> Split:
    """The texts of files, cut at double blank lines. One in 20 pieces is held out.

    In Python's sources two blank lines separate functions, in many plain texts chapters.
    Without paths, the files are the modules of the standard library.
    """
    split = Split([], [])
    for path in paths or _standard_modules():
        for piece in _read(path).split("\n\n\n"):
            if piece.strip():
                side = split.held_out if is_held_out(piece, one_of=20) else split.training
                side.append(piece.strip("\n"))
    if not (split.training and split.held_out):
        raise ValueError(
            f"{', '.join(map(str, paths))}: {len(split.training)} texts to train on and "
            f"{len(split.held_out)} held out, which are too few; texts end at two blank lines"
        )
    return split


def read_labelled(path: Path | None = None) -> tuple[list[Labelled], list[Labelled]]:
    """Labelled texts to train on, and one in 5 held out, from lines ``label<TAB>text`` of a file.

    Without a path: functions of the standard library without their names and docstrings, labelled
    with their package.
    """
    every = list(_functions() if path is None else _lines(path))
    held_out = [example for example in every if is_held_out(example.text, one_of=5)]
    training = [example for example in every if not is_held_out(example.text, one_of=5)]
    if len({example.label for example in training}) < 2 or not held_out:
        raise ValueError(
            f"{path}: {len(training)} texts to train on and {len(held_out)} held out, which are "
            "too few; at least two labels and some dozens of texts are needed"
        )
    return training, held_out


def is_held_out(text: str, *, one_of: int) -> bool:
    """Whether a text is held out; equal texts are on the same side."""
    return zlib.crc32(text.encode()) % one_of == 0


def train_tokenizer(texts: Sequence[str], size: int) -> Tokenizer:
    """Byte-pair encoding: no text is unknown, and decoding restores every byte. END has id 0."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if size <= len(alphabet):
        raise ValueError(f"a vocabulary must have more than {len(alphabet)} tokens, got {size}")
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def describe(path: Path | Sequence[Path] | None) -> str:
    """Where texts come from, in words."""
    if not path:
        version = ".".join(map(str, sys.version_info[:2]))
        return f"the standard library of Python {version}"
    return ", ".join(map(str, [path] if isinstance(path, Path) else path))


def _standard_modules(*packages: str) -> list[Path]:
    """Source files of some packages or of all, in an order that is the same on every machine."""
    root = Path(sysconfig.get_path("stdlib"))
    chosen = packages or sorted(sys.stdlib_module_names)
    found = [
        path for name in chosen for path in (root / f"{name}.py", *(root / name).rglob("*.py"))
    ]
    inside = [path for path in found if not _LEFT_OUT & set(path.relative_to(root).parts)]
    return sorted(path for path in inside if path.is_file())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: byte {error.start:,} cannot be decoded") from None


def _functions() -> Iterator[Labelled]:
    root = Path(sysconfig.get_path("stdlib"))
    for path in _standard_modules(*PACKAGES):
        source = _read(path)
        lines = source.split("\n")  # as ast counts them: a form feed ends no line
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body if ast.get_docstring(node) is None else node.body[1:]
                text = "\n".join(lines[body[0].lineno - 1 : node.end_lineno]) if body else ""
                if len(text) >= SHORTEST_FUNCTION:
                    yield Labelled(path.relative_to(root).parts[0], text)


def _lines(path: Path) -> Iterator[Labelled]:
    for number, line in enumerate(_read(path).removesuffix("\n").split("\n"), 1):
        label, tab, text = line.partition("\t")
        if not (label and tab and text.strip()):
            raise ValueError(f"{path}, line {number:,} is not label<TAB>text: {line[:60]!r}")
        yield Labelled(label, text)
