"""The page, the paragraph and the folder of models that read texts, as data."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_page import Sample
from text_samples import TEXTS, text_analysis, text_view, two_models
from unpacking import unpack_text

from relakit.analysis.results import ModelAnalysis
from relakit.report import page_file, write_page, write_report
from relakit.report.in_words import comparison_in_words, model_in_words
from relakit.report.packing import MOST_TOKENS, fits_page, pack_view


def document(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    found = re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def write(path: Path, *models: Any, **options: Any) -> int:
    views = {model.analysis.name: model.views for model in models}
    return write_page([model.analysis for model in models], views, path, **options)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_packed_text_has_its_weights_and_what_is_seen(sparse: bool) -> None:
    view = text_view(0, TEXTS[0], sparse=sparse, window=3)
    packed = pack_view(view)
    header, weights, seen = unpack_text(packed.text)
    assert (packed.source, packed.target, packed.chrf) == (TEXTS[0], "", None)
    assert header["sourceTokens"] == list(view.tokens)
    assert header["sourceWords"][:3] == ["<s>", "The", "old"]
    np.testing.assert_array_equal(seen, view.seen)
    np.testing.assert_array_equal(weights == 0, view.weights == 0)
    step = view.weights.max((-1, -2), keepdims=True) / 255
    assert (abs(weights - view.weights) <= step).all()
    assert packed.null_rate == pytest.approx((view.weights == 0).all(-1).mean())


def test_weights_must_fit_the_tokens() -> None:
    view = text_view(4, TEXTS[2])
    with pytest.raises(ValueError, match=r"text 5: self attention must have the shape"):
        pack_view(dataclasses.replace(view, weights=view.weights[..., :-1]))
    view.weights[0, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in the self attention of text 5: "):
        pack_view(view)


def test_the_page_knows_one_kind_of_attention(tmp_path: Path) -> None:
    models = two_models()
    assert write(tmp_path / "report.html", *models) == 3
    data = document(tmp_path / "report.html")
    assert data["kinds"] == ["self"]
    assert data["hasWords"] is True
    assert [model["kinds"]["self"]["causal"] for model in data["models"]] == [True, False]
    first = models[0].result
    assert data["models"][0]["kinds"]["self"]["firstSink"] == [list(x) for x in first.first_sink]
    assert data["models"][0]["classes"] is None
    assert [sentence["source"] for sentence in data["sentences"]] == list(TEXTS)


def test_without_words_there_are_tokens_alone(tmp_path: Path) -> None:
    views = [text_view(0, TEXTS[0], words=False)]
    write(tmp_path / "report.html", text_analysis("m", views))
    assert document(tmp_path / "report.html")["hasWords"] is False


def test_texts_that_are_too_long_are_counted_but_not_shown(tmp_path: Path) -> None:
    long = text_view(1, " ".join(["dog"] * MOST_TOKENS), layers=1, heads=1)
    short = text_view(0, TEXTS[0], layers=1, heads=1)
    assert write(tmp_path / "report.html", text_analysis("m", [short, long])) == 1
    data = document(tmp_path / "report.html")
    assert (data["givenSentences"], len(data["sentences"])) == (2, 1)
    assert fits_page(MOST_TOKENS, 1000)
    assert not fits_page(MOST_TOKENS + 1, 1000)
    assert not fits_page(10, 10**9)


def test_a_single_text_may_take_the_whole_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_file, "MOST_VIEW_BYTES", 100)
    assert write(tmp_path / "one.html", text_analysis("m", [text_view(0, TEXTS[0])])) == 1


def test_pairs_and_texts_do_not_mix(sample: Sample, tmp_path: Path) -> None:
    texts = two_models()[0].analysis
    with pytest.raises(ValueError, match="one was analyzed on texts and one on sentence pairs"):
        write_page([sample.analyses[1], texts], {}, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_models_must_have_read_the_same(tmp_path: Path) -> None:
    one, other = two_models()
    views = [text_view(0, "Another text.", sparse=False, causal=False)]
    changed = text_analysis(other.analysis.name, views, sparse=False, causal=False)
    with pytest.raises(ValueError, match="text 1 is not the same for ReLA-g and softmax"):
        write(tmp_path / "report.html", one, changed)


def test_in_words() -> None:
    rela, softmax = two_models()
    text = model_in_words(rela.analysis, [[0.1, 0.2, 0.0], [0.3, 0.0, 0.0]])
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    assert "ReLA-g has 2 layers of 3 heads each, with rela-g attention; a token may" in text
    assert "attend to itself and those before it. It read 3 texts of" in text
    nulls = np.array(rela.result.null_rate)
    layer, head = np.unravel_index(nulls.argmax(), nulls.shape)
    assert f"{100 * nulls.mean():.1f} % of the queries attend to nothing, most in layer" in text
    assert f"layer {layer + 1}, head {head + 1} ({100 * nulls.max():.1f} %)" in text
    sinks = np.array(rela.result.first_sink)
    assert f"On average {100 * sinks.mean():.1f} % of a head's weight lies on the first" in text
    assert "Heads differ most in layer 2 (head diversity 0.30 nats at temperature 1)." in text
    assert "points most clearly is layer 2, head 1 (clarity 0.30 of 1)." in text
    for word in ("BLEU", "AER", "gold", "cross", "source"):
        assert word not in text
    text = model_in_words(softmax.analysis, None)
    assert "a token may attend to all tokens." in text
    assert "None of its attention weights is exactly 0. Every token attends to something" in text
    text = comparison_in_words(rela.analysis, softmax.analysis)
    assert text.startswith("softmax against ReLA-g: \N{MINUS SIGN}")
    assert "points of weight on the first token." in text


def test_the_folder_is_the_same_twice(tmp_path: Path) -> None:
    one = write_report(two_models(), tmp_path / "one", figures=False)
    write_report(two_models(), tmp_path / "other", figures=False)
    assert one.explored == 3
    files = sorted(p.relative_to(one.folder) for p in one.folder.rglob("*") if p.is_file())
    assert Path("tables/first_sink.csv") in files
    assert Path("tables/null_rate_by_class.csv") not in files
    for file in files:
        assert (one.folder / file).read_bytes() == (tmp_path / "other" / file).read_bytes()
    again = ModelAnalysis.read(one.folder / "analysis-1.json")
    assert again == two_models()[0].analysis
    assert again.is_of_texts
    rows = (one.folder / "tables/sparsity.csv").read_text().splitlines()
    assert rows[1].startswith("ReLA-g,decoder,1,1,")
    assert len(rows) == 1 + 2 * 2 * 3


def test_what_an_analysis_must_have(sample: Sample) -> None:
    pairs = sample.analyses[0]
    with pytest.raises(ValueError, match="kinds must be encoder, decoder, cross, or encoder or"):
        ModelAnalysis.model_validate({**pairs.model_dump(), "kinds": [pairs.kind("cross")]})
    with pytest.raises(ValueError, match="there must be classes and target_tokens"):
        ModelAnalysis.model_validate({**pairs.model_dump(), "classes": None})
