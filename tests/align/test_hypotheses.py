"""Links of translations, however they were found."""

from pathlib import Path

import numpy as np
import pytest
import torch
from model_folders import write_model
from random_models import random_model

from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.align.hypotheses import align_hypotheses, aligner_of
from relakit.align.layer import AlignmentLayer, save_layer
from relakit.align.layer_files import LayerScores, LayerTrained
from relakit.analysis.links import links_of_heads
from relakit.analysis.word_map import NO_WORD, split_words, words_of_tokens
from relakit.data.tokenizer import BEGIN, END, Tokenizer
from relakit.decode.native_engine import why_not_native
from relakit.decode.translator import Hypothesis, Translator
from relakit.model import Transformer
from relakit.nn.capture import capture

SOURCES = ["The old man sees a dog.", "", "Maria hurries in the morning, doesn't she?"]
LIMITS = {"max_length": 12}


def choose(heads: tuple[int, ...] = (2,), layer: int = 1) -> AlignmentChoice:
    return AlignmentChoice(layer=layer, heads=heads, reading="normal", chosen=ChosenOn(by="given"))


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Transformer:
    return random_model("rela-g", vocabulary=tokenizer.size)


def expected_links(
    model: Transformer, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis
) -> set[tuple[int, int]]:
    """Of head 2 of layer 1, from the hypothesis' own ids, one pair at a time."""
    encoded = tokenizer.encode(source)
    inputs = torch.tensor([[*encoded.ids, END]]), torch.tensor([[BEGIN, *hypothesis.tokens]])
    with torch.no_grad(), capture(model, "decoder.layers.*.cross_attention") as records:
        model(*inputs)
    weights = np.stack([one.weights[0].numpy() for (one,) in records.values()])
    words = split_words(source, tokenized=True), split_words(hypothesis.text, tokenized=True)
    spans = tokenizer.decoded(hypothesis.tokens).spans
    best = links_of_heads(
        weights,
        words_of_tokens(encoded.spans, words[0]),
        words_of_tokens(spans, words[1]),
        source_count=len(words[0]),
        target_count=len(words[1]),
        end="ignored",
    )[0, 1, 2]
    return {(int(s), t) for t, s in enumerate(best) if s != NO_WORD}


def expected_of_layer(
    layer: AlignmentLayer,
    model: Transformer,
    tokenizer: Tokenizer,
    source: str,
    hypothesis: Hypothesis,
) -> set[tuple[int, int]]:
    """The same of an alignment layer, which links words that fit each other best, or well."""
    encoded = tokenizer.encode(source)
    [(_, weights)] = layer.weights(model, [(encoded.ids, hypothesis.tokens)])
    of_source = words_of_tokens(encoded.spans, split_words(source, tokenized=True))
    spans = tokenizer.decoded(hypothesis.tokens).spans
    of_target = words_of_tokens(spans, split_words(hypothesis.text, tokenized=True))
    best: dict[tuple[int, int], float] = {}
    for t, s in np.argwhere(weights > 0):
        link = int(of_source[s]), int(of_target[t])
        if NO_WORD not in link:
            best[link] = max(best.get(link, 0.0), float(weights[t, s]))

    def rivals(link: tuple[int, int]) -> list[float]:
        return [best[other] for other in best if other[0] == link[0] or other[1] == link[1]]

    return {link for link in best if best[link] > 4 or best[link] == max(rivals(link))}


@pytest.mark.parametrize(
    "options", [{"beam": 1, "nbest": 1}, {"nbest": 4}, {"sample": True, "nbest": 3}, {"prefix": 1}]
)
@pytest.mark.parametrize("in_bytes", [False, True])
def test_links_are_those_of_the_tokens_that_were_found(
    model: Transformer, tokenizer: Tokenizer, options: dict[str, int], in_bytes: bool
) -> None:
    if in_bytes and (reasons := why_not_native(model)):
        pytest.skip("; ".join(reasons))
    settings = {name: value for name, value in options.items() if name != "prefix"}
    prefixes = ["Der alt", "", "Mari"] if "prefix" in options else None
    translator = Translator(model, tokenizer, in_bytes=in_bytes)
    found = translator.translate_nbest(SOURCES, prefixes=prefixes, **LIMITS, **settings)
    links = align_hypotheses(Aligner(model, tokenizer, choose()), SOURCES, found)
    assert [len(several) for several in links] == [len(several) for several in found]
    for source, hypotheses, several in zip(SOURCES, found, links, strict=True):
        for hypothesis, alignment in zip(hypotheses, several, strict=True):
            if source:
                expected = expected_links(model, tokenizer, source, hypothesis)
                assert alignment.links == expected
            assert alignment.source_count == len(source.split())
            assert alignment.target_count == len(hypothesis.text.split())
    assert any(alignment.links for several in links for alignment in several)


def test_tokens_count_that_the_tokenizer_would_not_give(
    model: Transformer, tokenizer: Tokenizer
) -> None:
    """A sample may spell a word letter by letter."""
    ids = [tokenizer.tokens.index(letter) for letter in "ĠdogĠdog"]
    assert tokenizer.encode("dog dog").ids != ids
    hypothesis = Hypothesis(tokenizer.decode(ids), ids, 0.0, 0.0)
    [[found]] = align_hypotheses(Aligner(model, tokenizer, choose()), SOURCES[:1], [[hypothesis]])
    assert found.links == expected_links(model, tokenizer, SOURCES[0], hypothesis)
    tokens = Aligner(model, tokenizer, choose(), level="token")
    [[found]] = align_hypotheses(tokens, SOURCES[:1], [[hypothesis]])
    assert found.target_count == len(ids)


def test_an_endless_hypothesis_has_no_links(model: Transformer, tokenizer: Tokenizer) -> None:
    aligner = Aligner(model, tokenizer, choose(), max_tokens=20)
    ids = tokenizer.encode("dog").ids * 21
    endless = Hypothesis(tokenizer.decode(ids), ids, 0.0, 0.0)
    [[found]] = align_hypotheses(aligner, ["dog"], [[endless]])
    assert (found.links, found.null_rate) == (frozenset(), None)


def test_the_model_is_shared_and_the_choice_is_its_directorys(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    translator = Translator.load(folder)
    with pytest.raises(
        ValueError, match=r"does not say which heads align.*relakit align .* --select"
    ):
        aligner_of(translator, folder)
    write_choice(folder, choose(heads=(1,), layer=0))
    aligner = aligner_of(translator, folder, level="token")
    assert aligner.model is translator.model
    assert (aligner.choice.heads, aligner.level) == ((1,), "token")
    assert aligner.max_tokens > 2 * translator.max_tokens


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_alignment_layer_is_used_where_there_is_one(tmp_path: Path, precision: str) -> None:
    """As `Aligner.load` does; no heads need be chosen."""
    folder = write_model(tmp_path / "model")
    layer = AlignmentLayer(dim=32)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    layer.raise_threshold(5.0)  # so that not all words are linked
    scores = LayerScores(pairs=1, loss=0.5, against="teacher")
    save_layer(folder, layer, LayerTrained(by="links", pairs=1, epochs=1, seed=1, scores=scores))
    translator = Translator.load(folder, precision=precision)
    found = translator.translate_nbest(SOURCES, nbest=2, max_length=9)
    # Letter by letter, as no tokenizer would do it.
    ids = [translator.tokenizer.tokens.index(letter) for letter in "ĠdogĠrunsĠacrossĠtheĠold"]
    for several in found:
        several.append(Hypothesis(translator.tokenizer.decode(ids), ids, 0.0, 0.0))
    links = align_hypotheses(aligner_of(translator, folder), SOURCES, found)
    assert any(one.links for several in links for one in several)
    if precision == "bf16":  # one pair alone may round otherwise than several
        return
    for source, hypotheses, several in zip(SOURCES, found, links, strict=True):
        for hypothesis, alignment in zip(hypotheses, several, strict=True):
            expected = (
                expected_of_layer(layer, translator.model, translator.tokenizer, source, hypothesis)
                if source
                else set()
            )
            assert alignment.links == expected
            assert bool(alignment.links) == bool(source), "the layer links some words of each"
