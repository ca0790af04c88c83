"""Translations with links and with markup, line by line."""

from collections.abc import Iterator
from itertools import repeat

import pytest
from random_models import random_model

from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice, ChosenOn
from relakit.align.hypotheses import align_hypotheses
from relakit.align.linked_translator import LinkedHypothesis, LinkedTranslator
from relakit.align.markup import find_markup
from relakit.align.markup_placing import Sentence
from relakit.align.markup_writing import put_back
from relakit.align.source_lines import SourceLine, source_lines
from relakit.data.tokenizer import Tokenizer
from relakit.decode.translator import Translator

LINES = [
    "The <b>old man</b> sees {0}.",
    "",
    "The old man sees a dog.",
    "<br/>",
    "Maria <i>hurries</i> in the morning, doesn't she?",
]
OPTIONS = {"nbest": 2, "max_length": 9}
CHOICE = AlignmentChoice(layer=1, heads=(2,), reading="normal", chosen=ChosenOn(by="given"))


@pytest.fixture(scope="module")
def translator(tokenizer: Tokenizer) -> Translator:
    return Translator(random_model("rela-g", vocabulary=tokenizer.size), tokenizer)


@pytest.fixture(scope="module")
def aligner(translator: Translator) -> Aligner:
    return Aligner(translator.model, translator.tokenizers, CHOICE)


def texts(found: list[list[LinkedHypothesis]]) -> list[list[str]]:
    return [[one.text for one in several] for several in found]


def test_without_either_it_is_the_translator(translator: Translator) -> None:
    found = LinkedTranslator(translator).translate(LINES, **OPTIONS)
    expected = translator.translate_nbest(LINES, **OPTIONS)
    assert [[one.hypothesis for one in several] for several in found] == expected
    assert texts(found) == [[one.text for one in several] for several in expected]
    assert all(
        (one.alignment, one.lost, one.pieces) == (None, (), ())
        for several in found
        for one in several
    )


def test_links_are_those_of_the_hypotheses(translator: Translator, aligner: Aligner) -> None:
    found = LinkedTranslator(translator, links=aligner).translate(LINES, **OPTIONS)
    expected = align_hypotheses(aligner, LINES, translator.translate_nbest(LINES, **OPTIONS))
    assert [[one.alignment for one in several] for several in found] == expected
    assert any(links.scores for several in expected for links in several)


def test_markup_is_put_back_by_links(translator: Translator, aligner: Aligner) -> None:
    found = LinkedTranslator(translator, markup=aligner).translate(LINES, **OPTIONS)
    marked = [find_markup(line) for line in LINES]
    plain = [line.text for line in marked]
    hypotheses = translator.translate_nbest(plain, **OPTIONS)
    links = align_hypotheses(aligner, plain, hypotheses, words="punctuation")
    for number, line in enumerate(marked):
        assert [one.source for one in found[number]] == [line.text] * len(hypotheses[number])
        for one, hypothesis, alignment in zip(
            found[number], hypotheses[number], links[number], strict=True
        ):
            assert one.hypothesis == hypothesis
            expected = put_back(
                line, Sentence.split(line.text), Sentence.split(hypothesis.text), alignment.links
            )
            assert (one.text, one.lost, one.pieces) == (expected.text, expected.lost, line.pieces)
    assert texts(found)[2] == [one.text for one in translator.translate_nbest(LINES, **OPTIONS)[2]]
    assert texts(found)[3] == ["<br/>"]
    assert any("<b>" in one.text for one in found[0])


def test_both_together(translator: Translator, aligner: Aligner) -> None:
    tokens = Aligner(translator.model, translator.tokenizers, CHOICE, level="token")
    found = LinkedTranslator(translator, links=tokens, markup=aligner).translate(LINES, **OPTIONS)
    alone = LinkedTranslator(translator, markup=aligner).translate(LINES, **OPTIONS)
    assert texts(found) == texts(alone)
    best = found[0][0]
    assert best.alignment is not None
    assert best.alignment.target_count == len(best.hypothesis.tokens)


def test_markup_needs_words(translator: Translator) -> None:
    tokens = Aligner(translator.model, translator.tokenizers, CHOICE, level="token")
    with pytest.raises(ValueError, match="markup needs links between words"):
        LinkedTranslator(translator, markup=tokens)


def test_the_markup_of_a_line_that_is_cut_off_is_lost(
    translator: Translator, aligner: Aligner
) -> None:
    def fit(lines: Iterator[str]) -> Iterator[str]:
        return (line[:8] for line in lines)

    lines = source_lines(LINES, keep_markup=True, fit=fit)
    found = list(LinkedTranslator(translator, markup=aligner).stream(lines, **OPTIONS))
    assert found[0][0].source == "The old "
    assert found[0][0].text == found[0][0].hypothesis.text
    assert found[0][0].lost == ("<b>", "</b>", "{0}")
    assert found[3][0].lost == ()


def test_lines_are_read_as_they_are_needed(translator: Translator, aligner: Aligner) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "a <b>dog</b>"

    lines = source_lines(endless(), keep_markup=True)
    found = LinkedTranslator(translator, links=aligner, markup=aligner).stream(
        lines, window=2, nbest=1, max_length=3
    )
    for expected in (2, 2, 4):
        next(found)
        assert read == expected


def test_too_long_for_links(translator: Translator) -> None:
    short = Aligner(translator.model, translator.tokenizers, CHOICE, max_tokens=2)
    linked = LinkedTranslator(translator, links=short, markup=short)
    [[one]] = linked.translate(["The <b>old</b> man"], nbest=1, max_length=9)
    assert linked.max_tokens == 2
    assert one.has_no_alignment
    assert one.lost == ("<b>", "</b>")
    [[empty]] = linked.translate([""], nbest=1)
    assert not empty.has_no_alignment


def test_source_lines() -> None:
    plain = list(source_lines(["a <b>"], keep_markup=False))
    assert plain[0].text == "a <b>"
    assert plain[0].marked.pieces == ()
    [line] = source_lines(["a <b>c</b>"], keep_markup=True)
    assert (line.text, line.is_whole) == ("a c", True)
    assert not SourceLine(line.marked, "a").is_whole


def test_entities_within_words_are_translated_as_text(
    translator: Translator, aligner: Aligner
) -> None:
    linked = LinkedTranslator(translator, markup=aligner)
    lines = ["The old man doesn&#39;t see AT&amp;T.", "The old man doesn&#39;t see AT&T."]
    [[escaped], [plain]] = linked.translate(lines, prefixes=["A&B "] * 2, nbest=1)
    assert escaped.source == plain.source == "The old man doesn't see AT&T."
    assert escaped.hypothesis.text.startswith("A&B")
    assert escaped.text.startswith("A&amp;B")
    assert plain.text.startswith("A&B")


@pytest.mark.parametrize("window", [1, 2, 100])
def test_nothing_is_lost_before_an_error(
    translator: Translator, aligner: Aligner, window: int
) -> None:
    linked = LinkedTranslator(translator, links=aligner)
    lines = source_lines(LINES, keep_markup=False)
    stream = linked.stream(lines, window=window, prefixes=repeat("The "), **OPTIONS)
    found = [next(stream) for _ in LINES]
    assert found == linked.translate(LINES, prefixes=["The "] * len(LINES), **OPTIONS)
    with pytest.raises(ValueError, match="there are 5 lines, but more prefixes"):
        next(stream)


def test_texts_and_prefixes_are_lists_of_one_length(translator: Translator) -> None:
    linked = LinkedTranslator(translator)
    with pytest.raises(ValueError, match="must be a list of sentences, got a single string"):
        linked.translate("The old man")
    with pytest.raises(ValueError, match="there are 5 texts and 6 prefixes"):
        linked.translate(LINES, prefixes=["The"] * 6)
