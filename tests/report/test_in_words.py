"""The paragraph on top: it says what the numbers say, and what is missing."""

import pytest
from report_page import Sample
from report_samples import sample_analysis, sample_views

from relakit.analysis.results import ClassNullRates, Interval, ModelAnalysis
from relakit.closed_gates import MANY_CLOSED
from relakit.report.in_words import comparison_in_words, model_in_words


@pytest.fixture
def analysis(sample: Sample) -> ModelAnalysis:
    return sample.analyses[0]


def words(analysis: ModelAnalysis, clarity: list[list[float]] | None = None) -> str:
    return model_in_words(analysis, clarity).replace("\N{NO-BREAK SPACE}", " ")


def with_cross(analysis: ModelAnalysis, **numbers: object) -> ModelAnalysis:
    cross = analysis.kind("cross").model_copy(update=numbers)
    return analysis.model_copy(update={"kinds": (*analysis.kinds[:2], cross)})


def test_what_is_known_is_said(analysis: ModelAnalysis) -> None:
    text = words(analysis)
    assert "ReLA-g has 3 encoder layers and 3 decoder layers of 4 heads each" in text
    assert "with rela-g attention." in text
    assert "translations of 6 test sentences score 33.1 BLEU, which says little about so" in text
    cross = analysis.kind("cross")
    rates = [rate or 0 for layer in cross.null_rate for rate in layer]
    assert f"{100 * sum(rates) / len(rates):.1f} % of the cross-attention queries" in text
    assert f"({100 * max(rates):.1f} %)" in text
    assert analysis.alignment is not None
    scores = analysis.alignment.scores(analysis.alignment.best_reading)
    layer, head = scores.best_head
    aer = scores.heads[layer][head].aer
    reading = analysis.alignment.best_reading
    assert f"layer {layer + 1}, head {head + 1}, {reading} reading: AER {aer:.2f}" in text
    assert "Wrong sources raise the null rate most in layer 1, by 4.0 points" in text
    assert "(95 % interval 3.0 to 5.0)" in text
    assert "closed gates in cross-attention: 30.0 % in layer 1." in text


def test_what_is_missing_is_said_too(analysis: ModelAnalysis) -> None:
    bare = analysis.model_copy(update={"bleu": None, "alignment": None, "shuffled": None})
    text = words(bare, [[0.1, 0.2, 0.0, 0.0], [0.1, 0.1, 0.64, 0.1], [0.0] * 4])
    assert "it did not translate them, so there is no BLEU" in text
    assert "no gold links, so how well it aligns words is not known; the head that points" in text
    assert "layer 2, head 3 (clarity 0.64 of 1)" in text
    assert "With one pair alone there is no wrong source" in text
    assert "AER" not in text
    assert words(bare).count("is not known.") == 1, "without sentences no clarity either"


def test_enough_sentences_need_no_caution(analysis: ModelAnalysis) -> None:
    many = analysis.model_copy(update={"pairs": 1000})
    assert "1,000 test sentences score 33.1 BLEU." in words(many)


def test_softmax_has_no_zeros(sample: Sample) -> None:
    text = words(sample.analyses[1])
    assert "None of its attention weights is exactly 0." in text
    assert "attends to something in every cross-attention head" in text
    assert "Wrong sources" not in text
    assert text.endswith("Nothing else stands out.")


def test_different_attention_is_told_apart(analysis: ModelAnalysis) -> None:
    text = words(with_cross(analysis, attention="softmax"))
    assert "rela-g in the encoder's self-attention" in text
    assert "softmax in cross-attention" in text


def test_what_stands_out(analysis: ModelAnalysis) -> None:
    shuffled = analysis.shuffled
    assert shuffled is not None
    flat = shuffled.model_copy(
        update={"cross_gap": (Interval(mean=0.01, low=-0.01, high=0.03),) * 3}
    )
    strange = with_cross(
        analysis.model_copy(update={"shuffled": flat}),
        null_rate=((0.1, 0.2, 0.995, 0.3), (0.1,) * 4, (1.0, 0.1, 0.1, 0.1)),
        layer_null_rate=(0.0, 0.12, None),
        end_sink=((0.1, 0.1, 0.1, 0.75), (0.1,) * 4, (0.6, 0.1, 0.1, None)),
        output_rms=(900.0, 8.0, 10.0),
    )
    text = words(strange)
    assert "Wrong sources raise the null rate in no layer by more than chance (95 % level)." in text
    assert "Nearly always null: layer 1, head 3 (99.5 %); layer 3, head 1 (100.0 %)." in text
    assert "nothing in any head: layer 2 (12.0 %)" in text
    assert (
        "2 heads put at least half of the weight on the end of the sentence, a sink: layer 1, "
        "head 4 (75.0 %); layer 3, head 1 (60.0 %)."
    ) in text
    assert "RMS(z) of cross-attention is 900 in layer 1 and 10 in the middle layer" in text


def test_closed_gates_are_many_where_training_warns_of_them(analysis: ModelAnalysis) -> None:
    text = words(with_cross(analysis, closed_gates=(MANY_CLOSED, MANY_CLOSED + 0.01, None)))
    assert "closed gates in cross-attention: 21.0 % in layer 2." in text


def test_rare_classes_are_not_compared(analysis: ModelAnalysis) -> None:
    classes = ClassNullRates(
        origin="tags",
        classes=("noun", "comma", "symbol"),
        counts=(1000, 10, 9),
        null_rate=(((0.2, 0.4, 0.9),),),
    )
    text = words(analysis.model_copy(update={"classes": classes}))
    assert "after words of the class “comma” (40.0 %) and rarest after “noun” (20.0 %)." in text


def test_comparison(sample: Sample) -> None:
    rela, softmax = sample.analyses
    text = comparison_in_words(rela, softmax)
    assert text.startswith("softmax against ReLA-g: \N{MINUS SIGN}4.7 BLEU, \N{MINUS SIGN}")
    assert "AER of the best head (" in text
    assert "±0.0 BLEU" in comparison_in_words(rela, rela)
    assert "(alike)" in comparison_in_words(rela, rela)
    no_bleu = rela.model_copy(update={"bleu": None, "alignment": None})
    assert "BLEU" not in comparison_in_words(no_bleu, softmax)
    assert "AER" not in comparison_in_words(no_bleu, softmax)


def test_one_head_and_one_layer() -> None:
    views = sample_views(2, sparse=True, layers=1, heads=1)
    text = words(sample_analysis("tiny", views, sparse=True))
    assert "1 encoder layer and 1 decoder layer of 1 head each" in text
