"""Random damage (hypothesis): what is read is read, or refused as documented, in bounded memory.

A few examples of each, always the same ones; ``make torture`` sets RELAKIT_FUZZ to more.
"""

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from fault_folder import RECIPE
from fault_rows import FOREIGN_WORDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peak_memory import growth_below

import relakit
from relakit.analysis.gold import GoldFormatChoice, read_gold
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.tokenizer import Tokenizer
from relakit.model import load_model
from relakit.train.recipe_file import load_recipe

pytestmark = pytest.mark.xdist_group("faults")

fuzzed = partial(
    settings,
    max_examples=int(os.environ.get("RELAKIT_FUZZ", "40")),
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
REFUSED = (ValueError, OSError)
MAX_GROWTH = 512  # MiB

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=9)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
cuts = st.tuples(st.integers(0, 1 << 16), st.integers(0, 9), st.binary(max_size=9))
"""Where to replace how many bytes by which."""


@pytest.fixture(autouse=True)
def _bounded_memory() -> Iterator[None]:
    with growth_below(MAX_GROWTH):
        yield


def damaged(content: bytes, cut: tuple[int, int, bytes]) -> bytes:
    at, count, new = cut
    at %= len(content) + 1
    return content[:at] + new + content[at + count :]


def leaves_of(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a JSON document, also to those that hold others."""
    yield path
    if not isinstance(content, (dict, list)):
        return
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield from leaves_of(value, (*path, key))


def with_value(content: Any, where: int, value: Any) -> Any:
    """A JSON document with one of its values replaced."""
    paths = list(leaves_of(content))
    path = paths[where % len(paths)]
    if not path:
        return value
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return content


def tolerate(use: Callable[[], object]) -> None:
    """Let it work, or refuse in our own words."""
    message = ""
    try:
        use()
    except REFUSED as error:
        message = str(error)
    assert [word for word in FOREIGN_WORDS if word in message] == []
    assert "\n" not in message


@fuzzed()
@given(cut=cuts)
def test_recipes_of_other_bytes(cut: tuple[int, int, bytes], tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(damaged(RECIPE.encode(), cut))
    tolerate(lambda: load_recipe(str(path)))


@fuzzed()
@given(
    key=st.sampled_from(
        ["data.vocab_size", "data.folder", "data", "model.attention", "model.attention.power",
         "model.dim", "model", "training.updates", "training.adam_betas", "validation.beam", "x.y"]
    ) | st.text(max_size=12),
    value=st.text(max_size=20) | values.map(lambda value: json.dumps(value)),
)  # fmt: skip
def test_settings_of_recipes(key: str, value: str) -> None:
    tolerate(lambda: load_recipe("demo", [f"{key}={value}"]))


@fuzzed()
@given(where=st.integers(0, 10**4), value=values)
def test_config_with_other_values(
    where: int, value: Any, whole_folder: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(whole_folder / "model", tmp_path / "model", dirs_exist_ok=True)
    config = model / "config.json"
    config.write_text(json.dumps(with_value(json.loads(config.read_text()), where, value)))
    tolerate(lambda: load_model(model))


@fuzzed()
@given(name=st.sampled_from(["config.json", "model.safetensors"]), cut=cuts)
def test_models_of_other_bytes(
    name: str, cut: tuple[int, int, bytes], whole_folder: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(whole_folder / "model", tmp_path / "model", dirs_exist_ok=True)
    (model / name).write_bytes(damaged((model / name).read_bytes(), cut))
    tolerate(lambda: load_model(model))


@fuzzed()
@given(where=st.integers(0, 10**4), value=values, length=st.none() | st.integers(0, 2**64 - 1))
def test_headers_of_weights(
    where: int, value: Any, length: int | None, whole_folder: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(whole_folder / "model", tmp_path / "model", dirs_exist_ok=True)
    weights = model / "model.safetensors"
    content = weights.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = with_value(json.loads(content[8 : 8 + size]), where, value)
    text = json.dumps(header).encode()
    start = struct.pack("<Q", len(text) if length is None else length)
    weights.write_bytes(start + text + content[8 + size :])
    tolerate(lambda: load_model(model))


links = st.text("0123456789-?pPS \n\t", max_size=40)


@fuzzed()
@given(
    content=links.map(str.encode) | st.binary(max_size=40),
    form=st.sampled_from(["auto", "pharaoh", "naacl", "talp"]),
)
def test_gold_files(content: bytes, form: GoldFormatChoice, tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_bytes(content)
    tolerate(lambda: sum(1 for _ in read_gold(path, format=form)))


@fuzzed()
@given(where=st.integers(0, 10**4), value=values)
def test_tokenizers_with_other_values(
    where: int, value: Any, whole_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "tokenizer.json"
    content = json.loads((whole_folder / "tokenizer.json").read_text())
    path.write_text(json.dumps(with_value(content, where, value)))
    tolerate(lambda: Tokenizer.load(path).encode("An old dog."))


@fuzzed()
@given(cut=cuts)
def test_tokenizers_of_other_bytes(
    cut: tuple[int, int, bytes], whole_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(damaged((whole_folder / "tokenizer.json").read_bytes(), cut))
    tolerate(lambda: Tokenizer.load(path).encode("An old dog."))


@fuzzed()
@given(where=st.integers(0, 10**4), value=values)
def test_prepared_corpora_with_other_values(
    where: int, value: Any, whole_folder: Path, tmp_path: Path
) -> None:
    corpus = shutil.copytree(whole_folder / "prepared", tmp_path / "prepared", dirs_exist_ok=True)
    document = corpus / "corpus.json"
    document.write_text(json.dumps(with_value(json.loads(document.read_text()), where, value)))
    tolerate(lambda: PreparedCorpus.load(corpus).train)


@fuzzed()
@given(
    shape=st.lists(st.integers(0, 6), max_size=5),
    dtype=st.sampled_from(
        [torch.bool, torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64]
    ),
    fill=st.sampled_from([0.0, 1.0, float("inf"), float("-inf"), float("nan")]),
    is_causal=st.booleans(),
    activation=st.sampled_from(["relu", "softmax", "entmax15", "sigmoid"]),
)
def test_masks(
    shape: list[int], dtype: torch.dtype, fill: float, is_causal: bool, activation: Any
) -> None:
    query, key, value = torch.randn(3, 2, 3, 5, 4)
    number = fill if dtype.is_floating_point or dtype.is_complex else bool(fill == 1.0)
    mask = torch.full(shape, number, dtype=dtype)
    with suppress(ValueError, TypeError):
        output = relakit.attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, activation=activation
        )
        assert output.shape == query.shape
