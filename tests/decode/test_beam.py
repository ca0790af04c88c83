import itertools
import math

import pytest
import torch
from random_models import padded, random_model, random_sources

from relakit.data.tokenizer import BEGIN, END, PAD, UNKNOWN
from relakit.decode.beam import (
    Continuations,
    Ended,
    EndedHypotheses,
    beam_search,
    go_on,
    length_penalty,
)
from relakit.decode.best_tokens import Candidates
from relakit.decode.engine import Engine
from relakit.decode.native_engine import NativeEngine, why_not_native
from relakit.decode.settings import SearchSettings
from relakit.decode.torch_engine import TorchEngine
from relakit.model import Transformer

make_engine: type[Engine] = TorchEngine


@pytest.fixture(autouse=True, params=[TorchEngine, NativeEngine])
def both_engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here is run with both."""
    if request.param is NativeEngine and (reasons := why_not_native(random_model())):
        pytest.skip("; ".join(reasons))
    monkeypatch.setitem(globals(), "make_engine", request.param)


def search(
    model: Transformer, sources: list[list[int]], settings: SearchSettings
) -> list[list[Ended]]:
    if make_engine is NativeEngine and (reasons := why_not_native(model)):
        pytest.skip("; ".join(reasons))
    limits = [settings.limit(len(source)) for source in sources]
    ended = [[*source, END] for source in sources]
    return beam_search(make_engine(model), ended, limits, settings)


def model_that_ends_at_once() -> Transformer:
    model = random_model(vocabulary=20)
    with torch.no_grad():
        model.embedding.weight[END] = 9 * model.decoder.layers[-1].feed_forward_residual.norm.bias
    return model


@torch.no_grad()
def next_log_probabilities(model: Transformer, source: list[int], prefix: list[int]) -> list[float]:
    """By the whole decoder, without any cache."""
    states = model(padded([source]), torch.tensor([[BEGIN, *prefix]]))
    result: list[float] = model.logits(states)[0, -1].log_softmax(0).tolist()
    return result


def log_probability(model: Transformer, source: list[int], tokens: list[int]) -> float:
    steps = [*tokens, END]
    return sum(
        next_log_probabilities(model, source, steps[:place])[token]
        for place, token in enumerate(steps)
    )


def plain_beam_search(
    model: Transformer,
    source: list[int],
    beam: int,
    alpha: float,
    limit: int,
    *,
    wide_ends: bool = False,
) -> list[tuple[list[int], float]]:
    """The search as the module's docstring tells it, one sentence, lists only."""
    running: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[tuple[list[int], float]] = []

    def score(hypothesis: tuple[list[int], float]) -> float:
        return hypothesis[1] / ((5 + len(hypothesis[0]) + 1) / 6) ** alpha

    while running:
        at_limit = len(running[0][0]) == limit
        options = [
            ([*tokens, token], log_prob + following)
            for tokens, log_prob in running
            for token, following in enumerate(next_log_probabilities(model, source, tokens))
            if token not in (PAD, BEGIN) and (token == END or not at_limit)
        ]
        options.sort(key=lambda option: -option[1])
        may_end = options[: 2 * beam if wide_ends else beam]
        ended += [(o[0][:-1], o[1]) for o in may_end if o[0][-1] == END]
        ended = sorted(ended, key=score, reverse=True)[:beam]
        running = [o for o in options[: 2 * beam] if o[0][-1] != END][:beam]
        if len(ended) == beam and running:
            best = running[0][1] / ((5 + limit + 1) / 6) ** alpha
            if (beam == 1 and not wide_ends) or best <= score(ended[-1]):
                break
    return [(tokens, score((tokens, log_prob))) for tokens, log_prob in ended]


def test_length_penalty() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
    assert length_penalty(30, 0.0) == 1.0


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_a_large_beam_finds_what_an_exhaustive_search_finds(attention: str, alpha: float) -> None:
    model = random_model(attention, vocabulary=6)
    limit, allowed = 3, (UNKNOWN, 4, 5)
    settings = SearchSettings(beam=64, length_penalty=alpha, max_length=limit)
    sources = random_sources([4, 2], vocabulary=6)
    for source, found in zip(sources, search(model, sources, settings), strict=True):
        everything = [
            (log_probability(model, source, list(tokens)), list(tokens))
            for length in range(limit + 1)
            for tokens in itertools.product(allowed, repeat=length)
        ]
        everything.sort(key=lambda x: -x[0] / ((6 + len(x[1])) / 6) ** alpha)
        assert [ended.tokens for ended in found] == [tokens for _, tokens in everything]
        for ended, (expected, tokens) in zip(found, everything, strict=True):
            assert ended.log_probability == pytest.approx(expected, abs=1e-4)
            penalty = ((6 + len(tokens)) / 6) ** alpha
            assert ended.score == pytest.approx(expected / penalty, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_a_small_beam_finds_what_a_plain_search_finds(beam: int, seed: int) -> None:
    model = random_model(vocabulary=12, seed=seed)
    sources = random_sources([5, 3, 6], vocabulary=12, seed=seed)
    settings = SearchSettings(beam=beam, max_length=9)
    for source, found in zip(sources, search(model, sources, settings), strict=True):
        expected = plain_beam_search(model, source, beam, alpha=0.6, limit=9)
        assert [ended.tokens for ended in found] == [tokens for tokens, _ in expected]
        assert [ended.score for ended in found] == pytest.approx(
            [score for _, score in expected], abs=1e-4
        )


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_ends_among_twice_the_beam(beam: int) -> None:
    """What a plain search finds; and more than without, for some sentences."""
    differ = 0
    for seed in range(4):
        model = random_model(vocabulary=8, seed=seed)
        sources = random_sources([5, 3, 6], vocabulary=8, seed=seed)
        narrow = search(model, sources, SearchSettings(beam=beam, max_length=9))
        wide = search(model, sources, SearchSettings(beam=beam, max_length=9, wide_ends=True))
        for source, found, usual in zip(sources, wide, narrow, strict=True):
            expected = plain_beam_search(model, source, beam, 0.6, 9, wide_ends=True)
            assert [ended.tokens for ended in found] == [tokens for tokens, _ in expected]
            assert [ended.score for ended in found] == pytest.approx(
                [score for _, score in expected], abs=1e-4
            )
            differ += [e.tokens for e in found] != [e.tokens for e in usual]
    assert differ > 0


@pytest.mark.parametrize("nbest", [1, 2])
def test_fewer_hypotheses_are_the_first_of_all(nbest: int) -> None:
    """Though the search may end earlier for them."""
    model = random_model(vocabulary=12)
    sources = random_sources([5, 3, 6, 8, 2], vocabulary=12)
    whole = search(model, sources, SearchSettings(beam=4, max_length=20))
    fewer = search(model, sources, SearchSettings(beam=4, max_length=20, nbest=nbest))
    for all_found, found in zip(whole, fewer, strict=True):
        assert [e.tokens for e in found] == [e.tokens for e in all_found[:nbest]]


def test_a_beam_of_one_is_greedy_search() -> None:
    lengths = set()
    for seed in range(6):
        model = random_model(vocabulary=8, seed=seed)
        source = random_sources([5], vocabulary=8, seed=seed)[0]
        tokens: list[int] = []
        while len(tokens) < 12:
            following = next_log_probabilities(model, source, tokens)
            best = max(set(range(8)) - {PAD, BEGIN}, key=lambda token: following[token])
            if best == END:
                break
            tokens.append(best)
        [[found]] = search(model, [source], SearchSettings(beam=1, max_length=12))
        assert found.tokens == tokens
        lengths.add(len(tokens))
    assert len(lengths) > 1  # ended by the model, not only by the limit


@pytest.mark.parametrize("attention", ["rela-g", "softmax", "sparsemax"])
def test_a_sentence_does_not_depend_on_its_batch(attention: str) -> None:
    model = random_model(attention, vocabulary=20)
    sources = random_sources([9, 1, 4, 4, 7, 2, 9, 5, 3, 6], vocabulary=20)
    settings = SearchSettings(beam=4)
    together = search(model, sources, settings)
    lengths = {len(found[0].tokens) for found in together}
    assert len(lengths) > 3  # sentences leave the batch at different times
    for source, found in zip(sources, together, strict=True):
        [alone] = search(model, [source], settings)
        assert [ended.tokens for ended in found] == [ended.tokens for ended in alone]
        assert [e.score for e in found] == pytest.approx([e.score for e in alone], rel=1e-5)


def test_padding_and_begin_are_never_generated() -> None:
    model = random_model(vocabulary=8)
    with torch.no_grad():  # without the rule they would win
        model.embedding.weight[[PAD, BEGIN]] = (
            3 * model.decoder.layers[-1].feed_forward_residual.norm.bias
        )
    sources = random_sources([4, 5], vocabulary=8)
    first = next_log_probabilities(model, sources[0], [])
    assert max(first) in (first[PAD], first[BEGIN])
    for found in search(model, sources, SearchSettings(beam=4)):
        assert not {PAD, BEGIN, END} & {token for ended in found for token in ended.tokens}


def test_no_hypothesis_is_longer_than_the_maximum() -> None:
    model = random_model(vocabulary=20)
    with torch.no_grad():
        model.embedding.weight[END] = -3 * model.decoder.layers[-1].feed_forward_residual.norm.bias
    sources = random_sources([3, 6], vocabulary=20)
    short, by_length = (
        search(model, sources, SearchSettings(beam=3, max_length=n)) for n in (5, None)
    )
    assert [[len(ended.tokens) for ended in found] for found in short] == [[5] * 3] * 2
    assert [max(len(ended.tokens) for ended in found) for found in by_length] == [26, 32]


@pytest.mark.parametrize("beam", [1, 4])
def test_no_hypothesis_is_shorter_than_the_minimum(beam: int) -> None:
    model, sources = model_that_ends_at_once(), random_sources([3, 6, 2], vocabulary=20)
    free = search(model, sources, SearchSettings(beam=beam, max_length=12))
    assert all(len(found[0].tokens) < 9 for found in free), "the minimum would not matter"
    found = search(model, sources, SearchSettings(beam=beam, max_length=12, min_length=9))
    for source, hypotheses in zip(sources, found, strict=True):
        assert hypotheses
        for ended in hypotheses:
            assert 9 <= len(ended.tokens) <= 12
            expected = log_probability(model, source, ended.tokens)
            assert ended.log_probability == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_length_can_be_fixed(beam: int) -> None:
    settings = SearchSettings(beam=beam, max_length=40, min_length=40)
    sources = random_sources([3, 6, 2], vocabulary=20)
    found = search(model_that_ends_at_once(), sources, settings)
    assert [[len(e.tokens) for e in hypotheses] for hypotheses in found] == [[40] * beam] * 3


def test_the_minimum_moves_a_maximum_that_is_not_given() -> None:
    assert SearchSettings(min_length=50).limit(3) == 50
    assert SearchSettings(min_length=5).limit(3) == 26


def test_the_greatest_length_follows_the_source() -> None:
    assert SearchSettings(length_factor=1, length_margin=50).limit(7) == 57
    assert SearchSettings(length_factor=1.5, length_margin=1).limit(7) == 11
    assert SearchSettings(length_factor=0, length_margin=3, min_length=5).limit(7) == 5
    assert SearchSettings(length_factor=1, length_margin=50, max_length=9).limit(7) == 9


def test_a_model_that_ends_at_once() -> None:
    model = model_that_ends_at_once()
    [found] = search(model, random_sources([3], vocabulary=20), SearchSettings(beam=3))
    assert found[0].tokens == []
    assert len(found) == 3


def test_a_beam_wider_than_all_there_is() -> None:
    model = random_model(vocabulary=6)
    [found] = search(model, random_sources([3], 6), SearchSettings(beam=10, max_length=1))
    assert sorted(ended.tokens for ended in found) == [[], [UNKNOWN], [4], [5]]


def test_running_candidates_leave_out_those_that_end() -> None:
    found = Candidates(
        torch.tensor([[-1.0, -2.0, -3.0, -4.0]]),
        torch.tensor([[0, 1, 0, 1]]),
        torch.tensor([[7, END, END, 9]]),
    )
    running = go_on(Continuations.of(found), 2)
    assert running.scores.tolist() == [[-1.0, -4.0]]
    assert running.beams.tolist() == [[0, 1]]
    assert running.tokens.tolist() == [[7, 9]]


def test_the_stopping_rule() -> None:
    settings = SearchSettings(beam=2, length_penalty=1.0)
    ended = EndedHypotheses(settings, limit=6)  # at best divided by (5 + 7) / 6 = 2
    ended.add([5], -7 / 6)  # score -1
    assert not ended.are_final(-100.0)  # only one so far
    ended.add([6], -14 / 6)  # score -2
    assert not ended.are_final(-3.9)
    assert ended.are_final(-4.0)
    ended.add([7], -10.5 / 6)  # score -1.5 takes the place of -2
    assert ended.are_final(-3.0)
    assert [hypothesis.tokens for hypothesis in ended.best()] == [[5], [7]]


def test_a_sentence_without_running_hypotheses_is_done() -> None:
    assert EndedHypotheses(SearchSettings(beam=4), limit=6).are_final(-math.inf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nbest": 5}, "nbest must be from 1 to the beam, 4, got 5"),
        ({"beam": 0}, "the beam must be at least 1, got 0"),
        ({"length_penalty": -0.1}, "the length penalty must be a number from 0 on, got -0.1"),
        ({"length_penalty": math.nan}, "the length penalty must be a number from 0 on, got nan"),
        ({"max_length": 0}, "the maximum length must be at least 1, got 0"),
        ({"length_factor": -1}, "the length factor must be a number from 0 on, got -1"),
        ({"length_factor": math.inf}, "the length factor must be a number from 0 on, got inf"),
        ({"length_margin": 0}, "the length margin must be at least 1, got 0"),
        ({"min_length": -1}, "the minimum length must be at least 0, got -1"),
        ({"min_length": 8, "max_length": 7}, "the minimum length 8 is above the maximum 7"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchSettings(**options)  # type: ignore[arg-type]


def test_scores_that_are_not_numbers_are_an_error() -> None:
    model = random_model(vocabulary=20)
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.outer.bias[0] = math.nan
    with pytest.raises(
        ValueError, match="the model computes NaN or infinity: its weights are broken"
    ):
        search(model, [[5, 6]], SearchSettings())
