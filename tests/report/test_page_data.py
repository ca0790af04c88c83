"""The page's numbers: all of them, and nothing in them that ends the script."""

import json

from report_page import Sample

from relakit.report.page_data import finite, json_for_script, page_data


def test_json_cannot_end_the_script() -> None:
    document = {"text": "</script><!--<script> & \u2028 \u2029 \udc80 'ä' 😀"}
    text = json_for_script(document)
    assert not set("<>&\u2028\u2029") & set(text)
    text.encode("utf-8")
    assert json.loads(text) == document


def test_numbers_of_the_models(sample: Sample) -> None:
    analysis = sample.analyses[0]
    data = json.loads(json_for_script(page_data(sample.analyses, title="t", clarity=[None, None])))
    model = data["models"][0]
    assert [m["name"] for m in data["models"]] == ["ReLA-g", "softmax"]
    cross = analysis.kind("cross")
    assert model["kinds"]["cross"]["nullRate"] == [list(layer) for layer in cross.null_rate]
    assert model["kinds"]["cross"]["nullVariance"] == list(cross.null_variance())
    assert model["kinds"]["cross"]["outputRms"] == list(cross.output_rms or ())
    assert model["kinds"]["cross"]["closedGates"] == list(cross.closed_gates or ())
    assert data["models"][1]["kinds"]["cross"]["closedGates"] is None
    assert analysis.alignment is not None
    scores = analysis.alignment.shifted
    assert model["alignment"]["shifted"]["aol"] == scores.aol
    assert model["alignment"]["shifted"]["bestHeads"] == list(scores.best_heads)
    expected = [[finite(score.aer) for score in layer] for layer in scores.heads]
    assert model["alignment"]["shifted"]["heads"] == expected


def test_numbers_that_were_not_counted() -> None:
    assert finite(float("nan")) is None
    assert finite(0.0) == 0.0


def test_inputs_are_shown(sample: Sample) -> None:
    def inputs(**known: object) -> object:
        analysis = sample.analyses[0].model_copy(update=known)
        return page_data([analysis], title="t", clarity=[None])["models"][0]["inputs"]

    assert inputs() == {}
    assert inputs(inputs={"source": "a.de", "beam": "4"}) == {"source": "a.de", "beam": "4"}
