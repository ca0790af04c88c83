"""A model's own translations in the results: scores, and attention by forced decoding."""

from collections.abc import Callable

import numpy as np
import pytest

from relakit.analysis import (
    AnalysisPair,
    AnalyzedModel,
    add_translations,
    analyze_model,
    analyze_models,
    generated_gold_pair,
    own_translations,
    score_pairs,
    split_words,
)
from relakit.attention_kinds import ATTENTION_KINDS
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer
from relakit.decode.translator import Translator
from relakit.metrics.bleu import bleu_score
from relakit.metrics.sentence_scores import sentence_chrf
from relakit.model import Transformer

PAIRS = [generated_gold_pair(pair) for pair in generate_pairs(5, split="test")]
OUTPUTS = ["Der Hund schläft.", PAIRS[1].target, "x", "", "Der Der Hund, Hund"]


@pytest.fixture(scope="module")
def translator(make_model: Callable[[str], Transformer], tokenizer: Tokenizer) -> Translator:
    return Translator(make_model("rela-g"), tokenizer)


@pytest.fixture(scope="module")
def analyzed(translator: Translator) -> AnalyzedModel:
    [analyzed] = analyze_models({"m": translator}, PAIRS, explored=4, translate=False)
    bleu = bleu_score(OUTPUTS, [pair.target for pair in PAIRS])
    return add_translations(analyzed, translator, PAIRS, OUTPUTS, bleu)


def test_scores_and_outputs(analyzed: AnalyzedModel) -> None:
    assert analyzed.analysis.bleu == bleu_score(OUTPUTS, [p.target for p in PAIRS]).score
    assert [view.output for view in analyzed.views] == [OUTPUTS[v.index] for v in analyzed.views]
    for view in analyzed.views:
        assert view.chrf == sentence_chrf(OUTPUTS[view.index], PAIRS[view.index].target)
    by_index = {view.index: view for view in analyzed.views}
    assert (by_index[1].chrf, by_index[1].own) == (100, None), "the reference itself"
    assert by_index[3].chrf == 0
    assert by_index[3].own is not None
    assert by_index[3].own.weights["cross"].shape[2] == 1, "only the end is predicted"


def test_own_attention_is_that_of_a_pair_with_the_output(
    analyzed: AnalyzedModel, translator: Translator
) -> None:
    owns = [AnalysisPair.from_texts(p.source, o) for p, o in zip(PAIRS, OUTPUTS, strict=True)]
    _, views = analyze_model(
        translator.model, translator.tokenizer, owns, name="own", keep=range(len(owns))
    )
    compared = 0
    for view in analyzed.views:
        if view.own is None:
            continue
        compared += 1
        expected = views[view.index]
        assert (view.own.index, view.own.target) == (view.index, OUTPUTS[view.index])
        assert view.own.source_words == PAIRS[view.index].source_words
        assert view.own.target_words == split_words(OUTPUTS[view.index])
        assert view.own.gold is None
        for kind in ATTENTION_KINDS:
            np.testing.assert_allclose(view.own.weights[kind], expected.weights[kind], atol=1e-4)
    assert compared == 3


def test_words_of_an_output_are_split_as_the_reference_s(translator: Translator) -> None:
    pairs = [AnalysisPair.from_texts("a b.", "c d.", tokenized=True)]
    [analyzed] = analyze_models({"m": translator}, pairs, translate=False)
    outputs = ["e f."]
    bleu = bleu_score(outputs, ["c d."])
    own = add_translations(analyzed, translator, pairs, outputs, bleu).views[0].own
    assert own is not None
    assert own.target_words == ((0, 1), (2, 4))


def test_losses_are_those_of_the_scoring_pass(
    analyzed: AnalyzedModel, translator: Translator
) -> None:
    texts = [(pair.source, pair.target) for pair in PAIRS]
    scores = score_pairs(translator.model, translator.tokenizer, texts)
    for view in analyzed.views:
        assert view.loss == pytest.approx(float(scores.cross_entropy[view.index]), rel=1e-5)


def test_the_longest_are_left_out_where_memory_is_short(
    analyzed: AnalyzedModel, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {
        view.index: sum(view.own.weights[kind].nbytes for kind in ATTENTION_KINDS)
        for view in analyzed.views
        if view.own is not None
    }
    bleu = bleu_score(OUTPUTS, [pair.target for pair in PAIRS])
    longest = max(sizes, key=sizes.__getitem__)
    for room, expected in [
        (sum(sizes.values()), {*sizes}),
        (sum(sizes.values()) - 1, {*sizes} - {longest}),
    ]:
        monkeypatch.setattr(own_translations, "MOST_BYTES", room)
        again = add_translations(analyzed, translator, PAIRS, OUTPUTS, bleu)
        assert {view.index for view in again.views if view.own is not None} == expected
        assert [view.chrf for view in again.views] == [view.chrf for view in analyzed.views]
