import math
from pathlib import Path

import pytest
import torch
from model_folders import TEXTS, write_model
from random_models import padded, random_model, random_sources

import relakit
from relakit.data.tokenizer import BEGIN, END, Tokenizer, learn_tokenizer
from relakit.decode.beam import beam_search
from relakit.decode.ensemble import EnsembleEngine
from relakit.decode.native_engine import NativeEngine, why_not_native
from relakit.decode.settings import SearchSettings
from relakit.decode.torch_engine import TorchEngine
from relakit.model import ModelAbout, Transformer, save_model


@torch.no_grad()
def log_probability(models: list[Transformer], source: list[int], tokens: list[int]) -> float:
    """By the definition: the log of the mean of the probabilities, token by token."""
    shares = [
        model.logits(model(padded([source]), torch.tensor([[BEGIN, *tokens]])))[0].softmax(1)
        for model in models
    ]
    mean = torch.stack(shares).mean(0)
    return sum(math.log(mean[place, token]) for place, token in enumerate([*tokens, END]))


@pytest.mark.parametrize("make_engine", [TorchEngine, NativeEngine])
def test_probabilities_are_averaged(make_engine: type[TorchEngine] | type[NativeEngine]) -> None:
    models = [
        random_model(vocabulary=20),
        random_model(vocabulary=20, seed=1),
        random_model("softmax", vocabulary=20, seed=2, dim=16),
    ]
    if make_engine is NativeEngine and (reasons := why_not_native(models[0])):
        pytest.skip("; ".join(reasons))
    engine = EnsembleEngine([make_engine(model) for model in models])
    sources = random_sources([5, 3, 6, 2, 2], vocabulary=20)
    settings = SearchSettings(beam=3, min_length=2, max_length=7)
    limits = [settings.max_length or 0] * len(sources)
    found = beam_search(engine, [[*s, END] for s in sources], limits, settings)
    for source, hypotheses in zip(sources, found, strict=True):
        assert len(hypotheses) == 3
        for ended in hypotheses:
            assert 2 <= len(ended.tokens) <= 7
            expected = log_probability(models, source, ended.tokens)
            assert ended.log_probability == pytest.approx(expected, abs=1e-4)


def test_a_model_with_itself_is_that_model(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    lines = ["A small dog runs.", "", "the old bridge"]
    alone, twice = relakit.load(folder), relakit.load(folder, folder)
    assert twice.translate(lines, max_length=9) == alone.translate(lines, max_length=9)
    other = write_model(tmp_path / "other", seed=1)
    both = relakit.load(folder, other)
    assert len(both.models) == 2
    assert both.translate(lines, max_length=9) != alone.translate(lines, max_length=9)


def written(folder: Path, tokenizer: Tokenizer, rows: int, target: str = "de") -> Path:
    tokenizer.save(folder.with_suffix(".json"))
    model = random_model(vocabulary=rows)
    about = ModelAbout(source_language="en", target_language=target)
    return save_model(folder, model, folder.with_suffix(".json"), about)


def test_models_that_do_not_fit_together(tmp_path: Path) -> None:
    tokenizer = learn_tokenizer(TEXTS * 5, vocab_size=300)
    first = written(tmp_path / "first", tokenizer, 300)
    smaller = learn_tokenizer(TEXTS * 5, vocab_size=290)
    foreign = learn_tokenizer(["quite other words here"] * 5, vocab_size=300)
    cases = [
        (written(tmp_path / "fr", tokenizer, 300, "fr"), "target languages are 'de' and 'fr'"),
        (written(tmp_path / "smaller", smaller, 290), "have 300 and 290 tokens"),
        (written(tmp_path / "foreign", foreign, foreign.size), "token 260 is '.*' and '.*'"),
    ]
    for other, problem in cases:
        expected = f"{first} and {other} cannot translate together: .*{problem}"
        with pytest.raises(ValueError, match=expected):
            relakit.load(first, other)


def test_nothing_to_load() -> None:
    with pytest.raises(ValueError, match="name a model directory"):
        relakit.load()
