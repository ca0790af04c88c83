"""Each default of the search stands once: recipes, the translator and the command line read it."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args, get_type_hints

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
    SearchOptions,
    SearchSettings,
    known_precision,
)
from relakit.decode.translator import Translator
from relakit.limits import MAX_COUNT
from relakit.train.recipe import DataSection, TrainingSection, ValidationSection


def default(function: Callable[..., Any], name: str) -> object:
    return inspect.signature(function).parameters[name].default


@pytest.mark.parametrize("command", [translate, evaluate])
def test_commands_have_an_option_for_every_setting(command: Callable[..., Any]) -> None:
    settings = SearchSettings()
    for field in fields(SearchSettings):
        if field.name != "nbest":  # `translate` prints other lines with it, `evaluate` scores one
            assert default(command, field.name) == getattr(settings, field.name)


def test_keyword_arguments_are_the_settings() -> None:
    settings = get_type_hints(SearchSettings)
    assert list(get_type_hints(SearchOptions).items()) == list(settings.items())


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


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"length_penalty": 20.5}, "the length penalty must be at most 20, got 20.5"),
        ({"length_factor": 1e308}, r"the length factor must be at most 10,000, got 1e\+308"),
        ({"max_length": 10**400}, f"max_length must be at most {MAX_COUNT:,}, got 10"),
        ({"length_margin": 10**400}, f"length_margin must be at most {MAX_COUNT:,}, got 10"),
        ({"min_length": 10**400}, f"min_length must be at most {MAX_COUNT:,}, got 10"),
    ],
)
def test_what_would_overflow(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SearchSettings(**options)


def test_settings_for_people() -> None:
    assert str(SearchSettings(beam=2, max_length=9)) == "beam 2, length penalty 0.6"
