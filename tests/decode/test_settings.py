"""Each default of the search stands once: recipes, the translator and the command line read it."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

import pytest

import relakit
from relakit.cli.evaluate import evaluate
from relakit.cli.prepare import prepare
from relakit.cli.translate import translate
from relakit.data.prepared_format import PrepareSettings
from relakit.decode.settings import (
    DEVICE,
    PRECISION,
    PRECISIONS,
    FloatPrecision,
    SearchSettings,
    known_precision,
)
from relakit.decode.translator import Translator
from relakit.train.recipe import DataSection, TrainingSection, ValidationSection

SEARCH = ("beam", "length_penalty", "max_length", "batch_tokens")


def default(function: Callable[..., Any], name: str) -> object:
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize(
    "function",
    [
        translate,
        evaluate,
        Translator.translate,
        Translator.translate_nbest,
        Translator.translate_stream,
        Translator.translate_ids,
    ],
)
def test_the_search(function: Callable[..., Any]) -> None:
    settings = SearchSettings()
    for name in SEARCH:
        assert default(function, name) == getattr(settings, name)


@pytest.mark.parametrize("function", [translate, evaluate, Translator.load, relakit.load])
def test_precision_and_device(function: Callable[..., Any]) -> None:
    assert default(function, "precision") == PRECISION
    assert default(function, "device") == DEVICE


def test_recipes() -> None:
    validation, data = ValidationSection(), DataSection(folder="somewhere")  # type: ignore[arg-type]
    assert validation.final_beam == SearchSettings().beam
    for name in ("length_penalty", "min_length", "length_factor", "length_margin", "wide_ends"):
        assert getattr(validation, name) == getattr(SearchSettings(), name)
    assert TrainingSection(epochs=1).precision == PRECISION
    assert data.vocab_size == PrepareSettings().vocab_size
    assert data.max_tokens == PrepareSettings().max_tokens == default(prepare, "max_tokens")
    assert data.long_sentences == PrepareSettings().long_sentences


def test_precisions() -> None:
    assert set(get_args(FloatPrecision)) == {*PRECISIONS} - {"int8"}
    for name in PRECISIONS:
        assert known_precision(name) == name
        assert f'"{name}"' in (relakit.load.__doc__ or "")
    with pytest.raises(ValueError, match="unknown precision 'fp8'; choose one of fp32, bf16, int8"):
        known_precision("fp8")


def test_settings_for_people() -> None:
    assert str(SearchSettings(beam=2, max_length=9)) == "beam 2, length penalty 0.6"
