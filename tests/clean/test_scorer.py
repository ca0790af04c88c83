"""Scores of pairs: those of `score_pairs`, and the same bits whatever is beside them."""

import math
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from clean_models import ModelWriter

from relakit.align.choice import AlignmentChoice, ChosenOn, write_choice
from relakit.align.layer import AlignmentLayer, save_layer
from relakit.align.layer_files import LayerScores, LayerTrained
from relakit.analysis import score_pairs
from relakit.analysis.attention_pass import AttentionBatch, attention_batches
from relakit.broken_model import BrokenModelError
from relakit.clean import features as features_module
from relakit.clean import scorer as scorer_module
from relakit.clean.features import WordLinks
from relakit.clean.scorer import (
    Direction,
    PairScorer,
    is_independent_of_batches,
)
from relakit.data.parallel_files import NumberedPair
from relakit.model.description import read_description
from relakit.threads import limited_threads


@pytest.mark.parametrize("max_tokens", [None, 12])
def test_numbers_of_the_scoring_pass(
    write_model: ModelWriter, pairs: list[NumberedPair], max_tokens: int | None
) -> None:
    """Of whole pairs, and of pairs with a cropped side."""
    folder = write_model()
    member = Direction.load(folder)
    whole = [pair for pair in pairs if not pair.has_blank_side]
    expected = score_pairs(
        member.model, member.tokenizers, [pair.texts for pair in whole], max_tokens=max_tokens
    )
    found_pairs = PairScorer.load(folder, max_tokens=max_tokens).score(pairs)
    cropped = {pair.is_cropped for pair in found_pairs}
    assert cropped == ({False} if max_tokens is None else {True, False})
    scored = {pair.number: pair.features for pair in found_pairs}
    assert list(scored) == [pair.number for pair in pairs]
    assert expected.mass is not None
    for index, pair in enumerate(whole):
        found = scored[pair.number]
        assert found is not None
        assert found.null_rate == pytest.approx(expected.mean_null_rate[index], abs=1e-12)
        assert found.cross_entropy == pytest.approx(expected.cross_entropy[index], rel=1e-12)
        assert found.attention_mass == pytest.approx(expected.mass[index].mean(), rel=1e-6)
        assert found.worst.loss >= found.cross_entropy
    assert any(found and 0 < found.null_rate < 1 for found in scored.values())
    blank = [pair.number for pair in pairs if pair.has_blank_side]
    assert [number for number, found in scored.items() if found is None] == blank


def test_dual_cross_entropy(write_model: ModelWriter, pairs: list[NumberedPair]) -> None:
    folder = write_model(reverse=True, seed=1)
    back = Direction.load(folder)
    whole = [pair for pair in pairs if not pair.has_blank_side][:9]
    exchanged = [(pair.target, pair.source) for pair in whole]
    expected = score_pairs(back.model, back.tokenizers, exchanged).cross_entropy
    scored = PairScorer.load(write_model(), reverse=folder).score(whole)
    for pair, backward in zip(scored, expected, strict=True):
        assert pair.features is not None
        forward = pair.features.cross_entropy
        assert pair.features.reverse_cross_entropy == pytest.approx(backward, rel=1e-12)
        assert pair.features.dual_cross_entropy == pytest.approx(
            abs(forward - backward) + (forward + backward) / 2
        )


@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_to_the_bit(attention: str, write_model: ModelWriter, pairs: list[NumberedPair]) -> None:
    """Alone, in any order, in batches of any size, whatever the number of threads was before."""
    folder, back = write_model(attention), write_model(attention, reverse=True, seed=1)
    languages = read_description(folder).languages()

    def scores(chosen: list[NumberedPair], batch_tokens: int = 4096) -> dict[int, object]:
        scorer = PairScorer.load(
            folder, reverse=back, languages=languages, batch_tokens=batch_tokens
        )
        return {pair.number: pair.features for pair in scorer.score(chosen)}

    expected = scores(pairs)
    order = np.random.default_rng(1).permutation(len(pairs)).tolist()
    assert scores([pairs[place] for place in order]) == expected
    assert scores(pairs, batch_tokens=1) == expected
    assert scores(pairs, batch_tokens=150) == expected
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert scores(pairs) == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert scores(pairs[3:5]) == {number: expected[number] for number in (4, 5)}


@pytest.mark.parametrize("has_layers", [False, True])
@pytest.mark.parametrize("is_reverse", [False, True])
def test_the_broken_model_of_two_is_named(
    is_reverse: bool, has_layers: bool, write_model: ModelWriter, pairs: list[NumberedPair]
) -> None:
    forward, back = Direction.load(write_model()), Direction.load(write_model(reverse=True, seed=1))
    if has_layers:
        layer = some_layer(forward.model.config.dim)
        forward, back = replace(forward, layer=layer), replace(back, layer=layer)
    broken = back if is_reverse else forward
    broken.model.decoder.layers[0].cross_attention.query.weight.data.fill_(math.nan)
    with pytest.raises(BrokenModelError) as caught:
        PairScorer(forward, backward=back).score(pairs[3:4])
    assert str(caught.value).startswith(f"{broken.name} computes NaN or infinity in pair 4: its")


def test_softmax_has_no_null_queries(write_model: ModelWriter, pairs: list[NumberedPair]) -> None:
    for pair in PairScorer.load(write_model("softmax")).score(pairs[:5]):
        assert pair.features is not None
        assert (pair.features.null_rate, pair.features.attention_mass) == (0.0, 1.0)
        assert pair.features.uncovered == (), "every word has some weight"


def test_the_heads_that_align(write_model: ModelWriter, pairs: list[NumberedPair]) -> None:
    """Of all heads in turn: together they have the null rate of the model."""
    member = Direction.load(write_model())
    by_head = []
    for layer, head in product(range(2), range(3)):
        choice = AlignmentChoice(
            layer=layer, heads=(head,), reading="shifted", chosen=ChosenOn(by="given")
        )
        by_head.append(PairScorer(member, choice=choice).score(pairs[:10]))
    without = PairScorer(member).score(pairs[:10])
    unsupported = 0
    for pair, *heads in zip(without, *by_head, strict=True):
        assert pair.features is not None
        found = [head.features for head in heads if head.features is not None]
        rates = [features.alignment_null_rate for features in found]
        assert np.mean(rates) == pytest.approx(pair.features.null_rate)  # type: ignore[arg-type]
        assert pair.features.alignment_null_rate is None
        unsupported += sum(len(features.unsupported) for features in found)
    assert unsupported


def test_a_choice_in_the_directory_is_read(
    write_model: ModelWriter, pairs: list[NumberedPair]
) -> None:
    folder = write_model(seed=3)
    choice = AlignmentChoice(layer=1, heads=(2,), reading="normal", chosen=ChosenOn(by="given"))
    path = write_choice(folder, choice)
    try:
        scored = PairScorer.load(folder).score(pairs[:3])
    finally:
        path.unlink()
    assert all(pair.features and pair.features.alignment_null_rate is not None for pair in scored)


def some_layer(dim: int) -> AlignmentLayer:
    """An alignment layer that links some words."""
    torch.manual_seed(5)
    layer = AlignmentLayer(dim)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    layer.raise_threshold(4.0)
    return layer


def with_layer(model: Path, folder: Path) -> Path:
    """A copy of a model directory with `some_layer`."""
    shutil.copytree(model, folder)
    layer = some_layer(Direction.load(folder).model.config.dim)
    scores = LayerScores(pairs=1, loss=0.5, aer=0.25, against="teacher")
    save_layer(folder, layer, LayerTrained(by="links", pairs=1, epochs=1, seed=1, scores=scores))
    return folder


def test_a_layer_is_asked_instead_of_heads(
    write_model: ModelWriter, pairs: list[NumberedPair], tmp_path: Path
) -> None:
    without = PairScorer.load(write_model(seed=4)).score(pairs)
    folder = with_layer(write_model(seed=4), tmp_path / "model")
    scored = PairScorer.load(folder, batch_tokens=700).score(pairs)
    assert scored == PairScorer.load(folder, batch_tokens=1).score(pairs), "to the bit"
    rates = set()
    for before, after in zip(without, scored, strict=True):
        if before.features is None or after.features is None:
            continue
        assert after.features.null_rate == before.features.null_rate
        rate = after.features.alignment_null_rate
        assert rate is not None
        uncovered, words = after.features.uncovered, pairs[after.number - 1].source.split()
        assert (len(uncovered) < len(words)) == (rate < 1), "links have two ends"
        rates.add(rate)
    assert len(rates) > 1


def test_the_layer_of_the_reverse_model_says_what_has_support(
    write_model: ModelWriter, pairs: list[NumberedPair], tmp_path: Path
) -> None:
    """Its links of target words are those that it has as a model of its own."""
    folder = with_layer(write_model(), tmp_path / "model")
    plain = write_model(reverse=True, seed=1)
    back = with_layer(plain, tmp_path / "back")
    without = PairScorer.load(folder, reverse=plain).score(pairs)
    exchanged = [NumberedPair(pair.number, pair.target, pair.source) for pair in pairs]
    alone = PairScorer.load(back).score(exchanged)
    seen: list[WordLinks] = []
    original = features_module.unreached_words

    def watched(*arguments):  # type: ignore[no-untyped-def]
        seen.append(arguments[-1])
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(features_module, "unreached_words", watched)
        scored = PairScorer.load(folder, reverse=back, batch_tokens=1).score(pairs)
    assert scored == PairScorer.load(folder, reverse=back).score(pairs), "to the bit"
    assert scored != without
    for before, after in zip(without, scored, strict=True):
        if before.features is None or after.features is None:
            continue
        same = replace(
            after.features,
            unsupported=before.features.unsupported,
            unsupported_share=before.features.unsupported_share,
        )
        assert same == before.features, "nothing else changes"
    words = {pair.number: set(range(len(pair.target.split()))) for pair in pairs}
    expected = [
        sorted(words[one.number] - {word.index for word in one.features.uncovered})
        for one in alone
        if one.features is not None
    ]
    assert sorted(sorted(links.linked) for links in seen) == sorted(expected)


def test_the_layer_of_the_reverse_model_alone_has_no_say(
    write_model: ModelWriter, pairs: list[NumberedPair], tmp_path: Path
) -> None:
    plain = write_model(reverse=True, seed=1)
    back = with_layer(plain, tmp_path / "back")
    expected = PairScorer.load(write_model(), reverse=plain).score(pairs)
    assert PairScorer.load(write_model(), reverse=back).score(pairs) == expected


def test_long_sides_are_scored_by_their_beginning(
    write_model: ModelWriter, pairs: list[NumberedPair]
) -> None:
    long = NumberedPair(1, "A dog runs. " * 20_000, "Ein Hund " * 3)
    scorer = PairScorer.load(write_model(), max_tokens=12)
    scored = scorer.score([long])[0]
    assert scored.is_cropped
    assert scored.features is not None
    assert scored.features.source_words == 60_000, "of all of it"
    shorter = scorer.score([NumberedPair(1, "A dog runs. " * 30, "Ein Hund " * 3)])[0]
    assert shorter.features is not None
    assert shorter.features.cross_entropy == scored.features.cross_entropy


@pytest.mark.parametrize("is_reverse", [False, True])
def test_the_end_of_a_cropped_side_does_not_count(
    write_model: ModelWriter, is_reverse: bool
) -> None:
    """Its losses are those of the same tokens in a text that is not cropped."""
    long, short = "Ein Hund. " * 30, "A dog."
    limit = 12
    models = {"reverse": write_model(reverse=True, seed=1)} if is_reverse else {}
    texts = (long, short) if is_reverse else (short, long)
    cropped, whole = (
        PairScorer.load(write_model(), max_tokens=most, **models).score([NumberedPair(1, *texts)])
        for most in (limit, 1000)
    )
    assert (cropped[0].is_cropped, whole[0].is_cropped) == (True, False)
    found, all_of_it = cropped[0].features, whole[0].features
    assert found is not None
    assert all_of_it is not None
    folder = models.get("reverse", write_model())
    member = Direction.load(folder)
    ids = member.tokenizers.target.encode(long).ids
    sides = [(member.tokenizers.source.encode(short).ids, ids)]
    (batch,) = attention_batches(member.model, sides, kinds=("cross",), losses=True)
    assert batch.token_losses is not None
    expected = float(batch.token_losses[0].losses[:limit].mean())
    entropy = found.reverse_cross_entropy if is_reverse else found.cross_entropy
    assert entropy == pytest.approx(expected, rel=1e-5)
    assert (found.end_loss is None) == (not is_reverse)
    assert all_of_it.end_loss is not None


def test_progress(write_model: ModelWriter, pairs: list[NumberedPair]) -> None:
    told: list[int] = []
    PairScorer.load(write_model()).score(pairs, told.append)
    assert sum(told) == len(pairs)
    assert len(told) > 2


def test_a_processor_that_rounds_otherwise(
    write_model: ModelWriter, pairs: list[NumberedPair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then pairs are computed one by one, which is found out with made-up pairs."""
    model = Direction.load(write_model()).model
    with limited_threads(1):
        assert is_independent_of_batches(model)
    expected = [pair.features for pair in PairScorer.load(write_model()).score(pairs)]
    passed: list[int] = []
    original = scorer_module.attention_batches

    def strange(*arguments: object, **options: object):  # type: ignore[no-untyped-def]
        for batch in original(*arguments, **options):  # type: ignore[arg-type]
            passed.append(len(batch.indices))
            yield _rounded_otherwise(batch) if len(batch.indices) > 1 else batch

    monkeypatch.setattr(scorer_module, "attention_batches", strange)
    scorer = PairScorer.load(write_model())
    assert not scorer.is_batched
    passed.clear()
    assert [pair.features for pair in scorer.score(pairs)] == expected
    assert set(passed) == {1}


def _rounded_otherwise(batch: AttentionBatch) -> AttentionBatch:
    layers = batch.layers["cross"]
    layers[0][0, 0, 0, 0] += 1e-6
    return batch
