"""A vocabulary for each language, from text to translations and alignments."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import MODEL, TRAINING, assert_same, weights

from relakit.analysis import AnalysisPair, evaluate_alignment, score_pairs
from relakit.analysis.analyze import analyze_model
from relakit.analysis.gold import parse_pharaoh
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.data.tokenizer_pair import SOURCE_TOKENIZER_FILE, TokenizerPair, load_tokenizers
from relakit.decode.native_engine import NativeEngine, why_not_native
from relakit.decode.torch_engine import TorchEngine
from relakit.decode.translator import Translator
from relakit.model import load_model
from relakit.ops.native.extension import why_unavailable
from relakit.train.averaging import average_run
from relakit.train.recipe import Recipe
from relakit.train.recipe_file import make_recipe
from relakit.train.run import run_training


def recipe_of(folder: Path, *, data: Any = None, model: Any = None, **training: Any) -> Recipe:
    content = {
        "data": {
            "folder": str(folder),
            "vocab_size": 300,
            "vocabulary": "separate",
            **(data or {}),
        },
        "model": {**MODEL, **(model or {})},
        "training": {**TRAINING, **training},
        "validation": {"every": 10, "sentences": 3},
    }
    return make_recipe(content, "test")


@pytest.fixture(scope="module")
def run(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("separate") / "run"
    run_training(recipe_of(text_folder, updates=150, learning_rate_factor=1.0), folder)
    return folder


@pytest.fixture(scope="module")
def other_way(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("separate") / "other"
    run_training(recipe_of(text_folder, data={"reverse": True}), folder)
    return folder


def test_the_corpus_has_two_tokenizers(run: Path) -> None:
    corpus = PreparedCorpus.load(run / "corpus")
    tokenizers = corpus.tokenizers
    assert isinstance(tokenizers, TokenizerPair)
    assert "Ġthree" in tokenizers.source.tokens
    assert "Ġthree" not in tokenizers.target.tokens
    assert "Ġdrei" in tokenizers.target.tokens
    pair = corpus.train.source(0).tolist(), corpus.train.target(0).tolist()
    assert tokenizers.source.decode(pair[0]).split()[0] in ("one", "two", "three", "four", "five")
    assert tokenizers.target.decode(pair[1]).split()[0] in ("eins", "zwei", "drei", "vier", "fünf")


def test_a_model_translates(run: Path) -> None:
    translator = Translator.load(run / "model")
    sizes = translator.tokenizers.sizes
    config = translator.model.config
    assert (config.vocabulary, config.source_vocabulary) == sizes
    assert sizes[0] != sizes[1]
    assert translator.model.embedding.source_weight is not None
    assert len(translator.model.embedding.source_weight) == sizes[1]
    result = json.loads((run / "result.json").read_text())
    assert result["settings"]["recipe"]["model"]["source_embedding"] == "separate"
    texts = translator.translate(["one two three", "five"])
    assert all(set(text.split()) <= {"eins", "zwei", "drei", "vier", "fünf"} for text in texts)
    [forced] = translator.translate(["one two three"], prefixes=["vier dr"])
    assert forced.startswith("vier dr")


def test_both_engines_agree(run: Path, other_way: Path) -> None:
    """C++ takes a source with fewer entries than the target; others are said to be PyTorch's."""
    engines = 0
    for folder in (run / "model", other_way / "model"):
        model, _ = load_model(folder)
        tokenizers = load_tokenizers(folder)
        reasons = why_not_native(model)
        if reasons:
            is_larger = model.config.source_entries > model.config.vocabulary
            assert is_larger == any("the source's vocabulary has" in reason for reason in reasons)
            continue
        engines += 1
        sources = tokenizers.source.encode_batch(["one two", "drei vier"])
        tokens = torch.full((2,), 2)
        with torch.inference_mode():
            found = [
                engine.start([[*source, 3] for source in sources], 1).log_probabilities(tokens)
                for engine in (NativeEngine(model), TorchEngine(model))
            ]
        torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)
    # Of two vocabularies of different sizes, one is larger.
    assert engines == (0 if why_unavailable() else 1)


def test_the_other_direction(run: Path, other_way: Path) -> None:
    """The same corpus, with the tokenizers in each other's place."""
    one, other = load_tokenizers(run / "model"), load_tokenizers(other_way / "model")
    assert one.source.to_json() == other.target.to_json()
    assert one.target.to_json() == other.source.to_json()
    files = [
        (folder / "corpus" / "train.source.tokens").read_bytes() for folder in (run, other_way)
    ]
    assert files[0] == files[1]
    about = json.loads((other_way / "model" / "config.json").read_text())
    assert about["languages"] == {"source": "de", "target": "en"}


@pytest.mark.parametrize("reverse", [False, True])
def test_averaged(run: Path, other_way: Path, tmp_path: Path, reverse: bool) -> None:
    folder = other_way if reverse else run
    average_run(folder, tmp_path / "averaged")
    models = [load_model(path)[0] for path in (tmp_path / "averaged", folder / "model")]
    assert_same(models[0].state_dict(), models[1].state_dict())
    saved = load_tokenizers(tmp_path / "averaged")
    assert saved.source.to_json() == load_tokenizers(folder / "model").source.to_json()


def test_resumed_fine_tuned_and_with_dropout(run: Path, text_folder: Path, tmp_path: Path) -> None:
    data = {"bpe_dropout": {"source": 0.2}}
    run_training(recipe_of(text_folder, data=data), tmp_path / "whole")
    run_training(recipe_of(text_folder, data=data, updates=10), tmp_path / "parts")
    run_training(recipe_of(text_folder, data=data), tmp_path / "parts", resume=True)
    assert_same(weights(tmp_path / "parts"), weights(tmp_path / "whole"))
    start = {"start_from": str(run)}
    tuning = recipe_of(text_folder, model=start, updates=3)
    run_training(tuning, tmp_path / "tuned")
    assert (tmp_path / "tuned" / "model" / SOURCE_TOKENIZER_FILE).is_file()
    joint = recipe_of(text_folder, data={"vocabulary": "joint"}, model=start)
    with pytest.raises(ValueError, match=r"data\.vocabulary = 'joint', the model has 'separate'"):
        run_training(joint, tmp_path / "joint")


def test_analysis(run: Path) -> None:
    translator = Translator.load(run / "model")
    model, tokenizers = translator.model, translator.tokenizers
    texts = [("one two three", "eins zwei drei"), ("five four", "fünf vier")]
    pairs = [
        replace(AnalysisPair.from_texts(*pair), gold=parse_pharaoh("0-0 1-1")) for pair in texts
    ]
    analyze_model(model, tokenizers, pairs, name="model")
    assert evaluate_alignment(model, tokenizers, pairs) is not None
    scores = score_pairs(model, tokenizers, [texts[0], ("one two three", "vier vier vier")])
    assert scores.cross_entropy[0] < scores.cross_entropy[1]


def test_settings_that_do_not_fit(text_folder: Path, tmp_path: Path) -> None:
    shared = recipe_of(text_folder, model={"source_embedding": "shared"})
    with pytest.raises(
        ValueError, match=r"model\.source_embedding = 'shared'; leave one of them out"
    ):
        run_training(shared, tmp_path / "run")
    files = {"train": ParallelFiles(text_folder / "train.en", text_folder / "train.de")}
    prepare(files, tmp_path / "joint", settings=PrepareSettings(vocab_size=300))
    content = shared.model_dump(mode="json", exclude_unset=True)
    content["data"] = {"prepared": str(tmp_path / "joint"), "vocabulary": "separate"}
    with pytest.raises(
        ValueError, match=r"prepared with the vocabulary 'joint', but the recipe says"
    ):
        run_training(make_recipe(content, "test"), tmp_path / "run")
    with pytest.raises(
        ValueError, match="unknown vocabulary 'both'; choose one of joint, separate"
    ):
        PrepareSettings(vocabulary="both")  # type: ignore[arg-type]


def test_a_model_without_its_source_tokenizer(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for path in (run / "model").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / SOURCE_TOKENIZER_FILE).write_bytes((folder / "tokenizer.json").read_bytes())
    with pytest.raises(ValueError, match="is not the tokenizer that this model was trained with"):
        load_model(folder)
    (folder / SOURCE_TOKENIZER_FILE).unlink()
    with pytest.raises(FileNotFoundError, match="has no source_tokenizer"):
        load_model(folder)


def test_the_log_says_why_not_in_cpp(
    run: Path, other_way: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        larger = [
            folder
            for folder in (run, other_way)
            if (config := Translator.load(folder / "model").model.config).source_entries
            > config.vocabulary
        ]
    assert len(larger) == 1
    assert "the source's vocabulary has" in caplog.text
