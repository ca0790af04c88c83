"""The report about models of transformers: a folder with a page, from one line of Python."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tiny_hf_models import ARCHITECTURES
from tiny_tokenizers import word_piece_tokenizer, word_tokenizer

import relakit.hf
from relakit.hf import report as report_function
from relakit.hf.report import analyze_for_report

TEXTS = ["w3 w4 w5 w6 w7", "w9 w10 w11", "w40 w3 w3 w8 w12 w20 w21"]


def converted(name: str, attention: Any = "rela-g") -> Any:
    model = ARCHITECTURES[name].build()
    relakit.hf.convert(model, attention)
    return model


def page_data(folder: Path) -> dict[str, Any]:
    text = (folder / "report.html").read_text(encoding="utf-8")
    found = re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.mark.parametrize(
    ("name", "causal"), [("bert", False), ("gpt2", True), ("llama", True), ("modernbert", False)]
)
def test_a_folder_for_one_model(name: str, causal: bool, tmp_path: Path) -> None:
    model = converted(name)
    written = relakit.hf.report(model, word_tokenizer(), TEXTS, tmp_path / "out", figures=False)
    assert written.explored == 3
    data = page_data(written.folder)
    (shown,) = data["models"]
    assert shown["name"] == type(model).__name__
    assert shown["kinds"]["self"]["causal"] is causal
    assert [sentence["source"] for sentence in data["sentences"]] == TEXTS
    result = relakit.hf.analyze(model, word_tokenizer(), TEXTS).result
    assert shown["kinds"]["self"]["nullRate"] == [list(layer) for layer in result.null_rate]


def test_two_models_and_the_same_bytes_again(tmp_path: Path) -> None:
    models = {"softmax": converted("llama", "softmax"), "ReLA-g": converted("llama")}
    for folder in ("one", "other"):
        relakit.hf.report(models, word_tokenizer(), TEXTS, tmp_path / folder, figures=False)
    one, other = (tmp_path / folder / "report.html" for folder in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    data = page_data(tmp_path / "one")
    assert [model["name"] for model in data["models"]] == ["softmax", "ReLA-g"]
    assert data["comparisons"][0].startswith("ReLA-g against softmax: +")


def test_an_encoder_beside_a_decoder_each_with_its_tokenizer(tmp_path: Path) -> None:
    models = {"gpt2": converted("gpt2"), "bert": converted("bert")}
    tokenizers = {"gpt2": word_tokenizer(), "bert": word_piece_tokenizer()}
    relakit.hf.report(models, tokenizers, "the dog", tmp_path / "out", figures=False)
    data = page_data(tmp_path / "out")
    assert [model["sourceTokens"] for model in data["models"]] == [2, 4]
    with pytest.raises(ValueError, match="there is no tokenizer for bert, only for gpt2"):
        relakit.hf.report(models, {"gpt2": word_tokenizer()}, "w3", tmp_path / "none")


def test_only_some_modules_and_texts(tmp_path: Path) -> None:
    model = ARCHITECTURES["bert"].build()
    relakit.hf.convert(model, where="*layer.0.*")
    written = relakit.hf.report(
        model, word_tokenizer(), TEXTS, tmp_path / "out", where="*layer.0.*", explored=1
    )
    assert written.explored == 1
    data = page_data(written.folder)
    assert data["models"][0]["kinds"]["self"]["layers"] == 1
    assert (data["givenSentences"], data["sentences"][0]["index"]) == (3, 1)


def test_long_texts_end_it_or_are_left_out(tmp_path: Path) -> None:
    model = converted("gpt2")
    texts = [TEXTS[0], "w3 " * 65, TEXTS[1]]
    with pytest.raises(ValueError, match="text 2: it has 65 tokens, but the model has 64"):
        relakit.hf.report(model, word_tokenizer(), texts, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    reasons: list[str] = []
    (analysis,) = analyze_for_report(
        {"m": model}, word_tokenizer(), texts, too_long="skip", left_out=reasons.extend
    )
    assert [view.text for view in analysis.views] == [TEXTS[0], TEXTS[1]]
    assert len(reasons) == 1
    assert analysis.analysis.inputs["left out"] == "1 of 3 texts, which are too long"
    with pytest.raises(ValueError, match="all 1 texts are too long; the first: text 1: it has 65"):
        analyze_for_report({"m": model}, word_tokenizer(), texts[1:2], too_long="skip")


def test_memory_is_counted_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relakit.limits.machine_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"attention of m over text 1 \(5 tokens\) would need"):
        analyze_for_report({"m": converted("gpt2")}, word_tokenizer(), TEXTS)


def test_what_cannot_be_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def refused(model: Any, texts: Any, problem: str, **options: Any) -> None:
        with pytest.raises(ValueError, match=problem):
            report_function(model, word_tokenizer(), texts, out, **options)
        assert not out.exists()

    refused(ARCHITECTURES["bert"].build(), TEXTS, "BertForMaskedLM was not converted")
    refused(converted("marian"), TEXTS, "MarianMTModel is an encoder-decoder")
    refused(converted("vit"), TEXTS, "reads pixel_values, not text")
    refused(converted("bert"), [], "there are no texts to analyze")
    refused(converted("bert"), "", "text 1: it has no tokens")
    refused({}, TEXTS, "a report needs at least one model")
    refused(converted("bert"), TEXTS, "too_long must be error or skip, got 'cut'", too_long="cut")


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match=r"thesis\.txt"):
        relakit.hf.report(converted("bert"), word_tokenizer(), TEXTS, tmp_path)
