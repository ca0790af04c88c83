"""Several models on one test set: what `analyze_models` adds to `analyze_model`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from relakit.analysis import (
    AnalysisSettings,
    AnalyzedModel,
    analyze_model,
    analyze_models,
    generated_gold_pair,
    name_models,
)
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer
from relakit.decode.translator import Translator
from relakit.metrics.bleu import bleu_score
from relakit.model import Transformer

ModelMaker = Callable[[str], Transformer]
PAIRS = [generated_gold_pair(pair) for pair in generate_pairs(5, split="test")]
SETTINGS = AnalysisSettings(shuffle_seed=7)


@pytest.fixture(scope="module")
def models(make_model: ModelMaker, tokenizer: Tokenizer) -> dict[str, Translator]:
    return {name: Translator(make_model(name), tokenizer) for name in ("rela-g", "softmax")}


def test_each_model_is_analyzed_and_translates(models: dict[str, Translator]) -> None:
    told: list[tuple[str, str, int]] = []
    found = analyze_models(
        models,
        PAIRS,
        settings=SETTINGS,
        end="competes",
        inputs={"pairs": "five"},
        explored=2,
        progress=lambda *news: told.append(news),
    )
    references = [pair.target for pair in PAIRS]
    for (name, translator), analyzed in zip(models.items(), found, strict=True):
        model, tokenizer = translator.model, translator.tokenizer
        outputs = translator.translate([pair.source for pair in PAIRS])
        bleu = bleu_score(outputs, references)
        expected, _ = analyze_model(
            model, tokenizer, PAIRS, name=name, settings=SETTINGS, end="competes"
        )
        added = {
            "inputs": {"pairs": "five"},
            "bleu": bleu.score,
            "bleu_signature": bleu.signature,
        }
        assert analyzed.analysis == expected.model_copy(update=added)
        assert [view.index for view in analyzed.views] == [1, 3]
        assert [view.output for view in analyzed.views] == [outputs[1], outputs[3]]
        for stage in ("attention", "translations"):
            done = [count for *where, count in told if where == [name, stage]]
            assert (done[0], done[-1]) == (0, 5)
            assert done == sorted(done)


def test_without_translations(models: dict[str, Translator]) -> None:
    found = analyze_models({"m": models["rela-g"]}, PAIRS[:2], translate=False)
    assert [type(one) for one in found] == [AnalyzedModel]
    assert (found[0].analysis.bleu, found[0].analysis.inputs) == (None, {})
    assert [view.output for view in found[0].views] == [None, None]


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["runs/a/model", "runs/b/model"], ["a", "b"]),
        (["runs/a/model", "runs/b"], ["a", "b"]),
        (["x/a/model", "y/a/model"], ["a 1", "a 2"]),
    ],
)
def test_names_tell_models_apart(folders: list[str], names: list[str]) -> None:
    assert name_models([Path(folder) for folder in folders]) == names
