import math
import random
from collections import Counter

import pytest
import torch
from random_models import random_model, random_sources

from relakit.data.tokenizer import BEGIN, END, PAD
from relakit.decode.beam import Ended, beam_search
from relakit.decode.native_engine import NativeEngine, why_not_native
from relakit.decode.sampling import draw, random_numbers
from relakit.decode.settings import SearchSettings
from relakit.decode.torch_engine import TorchEngine

SHARES = torch.tensor([0.4, 0.3, 0.2, 0.1, 0.0])


def drawn(count: int, **options: object) -> Counter[int]:
    """How often each token is drawn from SHARES."""
    settings = SearchSettings(sample=True, **options)  # type: ignore[arg-type]
    numbers = [n for sentence in range(count) for n in random_numbers(7, sentence, 1)]
    log_probabilities = SHARES.log().expand(count, -1)
    tokens = draw(log_probabilities, torch.zeros(count, 1), settings, numbers).tokens
    return Counter(tokens.view(-1).tolist())


@pytest.mark.parametrize("temperature", [1e-3, 1e-308, 5e-324])
def test_a_low_temperature_takes_the_likeliest(temperature: float) -> None:
    assert drawn(20, temperature=temperature) == {0: 20}
    assert drawn(20, temperature=temperature, top_p=0.9) == {0: 20}


def test_half_precision_is_that_of_the_model_alone() -> None:
    """Between bfloat16 numbers are differences that are none."""
    log_probabilities = torch.tensor([[-(2.0**-9), -1.0]], dtype=torch.bfloat16)
    settings = SearchSettings(sample=True, temperature=0.2)
    share = 1 / (1 + math.exp((2.0**-9 - 1) / 0.2))
    for above, expected in ((-1e-9, 0), (1e-9, 1)):
        number = Fixed(share + above)
        found = draw(log_probabilities, torch.zeros(1, 1), settings, [number])
        assert found.tokens.item() == expected


class Fixed(random.Random):
    """Draws what it was made with."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def random(self) -> float:
        return self._number


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.4, 0.3, 0.2, 0.1, 0.0]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30, 0.0]),
        ({"top_k": 2}, [4 / 7, 3 / 7, 0.0, 0.0, 0.0]),
        ({"top_k": 99}, [0.4, 0.3, 0.2, 0.1, 0.0]),
        ({"top_p": 0.65}, [4 / 7, 3 / 7, 0.0, 0.0, 0.0]),
        ({"top_p": 0.75}, [4 / 9, 3 / 9, 2 / 9, 0.0, 0.0]),
        ({"top_p": 0.01}, [1.0, 0.0, 0.0, 0.0, 0.0]),
        # top_p of what top_k has left: 0.5 of 0.57 and 0.43
        ({"top_k": 2, "top_p": 0.5}, [1.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_tokens_are_drawn_by_their_shares(options: dict[str, float], expected: list[float]) -> None:
    count = 4000
    found = drawn(count, **options)
    for token, share in enumerate(expected):
        if share in (0.0, 1.0):
            assert found[token] == share * count
        else:
            deviation = math.sqrt(share * (1 - share) / count)
            assert abs(found[token] / count - share) < 4 * deviation


class _AlmostOne:
    def random(self) -> float:
        return 1 - 2**-53


def test_no_draw_is_past_the_last_token_with_a_share() -> None:
    settings = SearchSettings(sample=True)
    numbers = [_AlmostOne()]
    candidates = draw(SHARES.log()[None], torch.zeros(1, 1), settings, numbers)  # type: ignore[arg-type]
    assert candidates.tokens.item() == 3


def test_scores_are_those_of_the_model() -> None:
    settings = SearchSettings(sample=True, temperature=0.1, top_k=1)
    scores = torch.tensor([[-1.0, -2.0]])
    numbers = random_numbers(1, 0, 2)
    candidates = draw(SHARES.log().expand(2, -1), scores, settings, numbers)
    assert candidates.scores[0].tolist() == pytest.approx(
        [-1 + math.log(0.4), -2 + math.log(0.4)], abs=1e-6
    )
    assert candidates.beams.tolist() == [[0, 1]]


@pytest.fixture(params=[TorchEngine, NativeEngine])
def engine(request: pytest.FixtureRequest) -> TorchEngine | NativeEngine:
    model = random_model(vocabulary=30)
    if request.param is NativeEngine and (reasons := why_not_native(model)):
        pytest.skip("; ".join(reasons))
    made: TorchEngine | NativeEngine = request.param(model)
    return made


def search(
    engine: TorchEngine | NativeEngine,
    sources: list[list[int]],
    settings: SearchSettings,
    numbers: list[int] | None = None,
) -> list[list[Ended]]:
    limits = [settings.limit(len(source)) for source in sources]
    ended = [[*source, END] for source in sources]
    return beam_search(engine, ended, limits, settings, numbers=numbers)


def tokens_of(found: list[list[Ended]]) -> list[list[list[int]]]:
    return [[ended.tokens for ended in several] for several in found]


def test_a_sentence_gets_the_same_samples_in_any_batch(engine: TorchEngine | NativeEngine) -> None:
    sources = random_sources([5, 3, 6, 3], vocabulary=30)
    settings = SearchSettings(sample=True, nbest=3, max_length=9, top_k=10)
    together = search(engine, sources, settings)
    assert tokens_of(together) == tokens_of(search(engine, sources, settings))
    for number, source in enumerate(sources):
        [alone] = search(engine, [source], settings, numbers=[number])
        assert [e.tokens for e in alone] == [e.tokens for e in together[number]]
    other = SearchSettings(sample=True, nbest=3, max_length=9, top_k=10, seed=2)
    assert tokens_of(search(engine, sources, other)) != tokens_of(together)
    [same, different] = search(engine, [sources[0]] * 2, settings)
    assert [e.tokens for e in same] != [e.tokens for e in different]


def test_samples_of_one_token_at_most_are_greedy(engine: TorchEngine | NativeEngine) -> None:
    sources = random_sources([5, 3, 6], vocabulary=30)
    greedy = search(engine, sources, SearchSettings(beam=1, max_length=9))
    sampled = search(engine, sources, SearchSettings(sample=True, top_k=1, max_length=9))
    assert tokens_of(sampled) == tokens_of(greedy)
    for one, other in zip(sampled, greedy, strict=True):
        assert one[0].log_probability == pytest.approx(other[0].log_probability, rel=1e-5)
        assert one[0].score == pytest.approx(other[0].score, rel=1e-5)


def test_lengths_are_kept_and_special_tokens_left_out(engine: TorchEngine | NativeEngine) -> None:
    sources = random_sources([5, 3, 6], vocabulary=30)
    settings = SearchSettings(sample=True, nbest=40, min_length=3, max_length=5, temperature=5.0)
    for found in search(engine, sources, settings):
        assert len(found) == 40
        lengths = [len(ended.tokens) for ended in found]
        assert (min(lengths), max(lengths)) == (3, 5)
        assert not {PAD, BEGIN, END} & {token for ended in found for token in ended.tokens}
        scores = [ended.score for ended in found]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": True, "temperature": 0.0}, "above 0, got 0.0; for the likeliest token"),
        ({"sample": True, "temperature": math.nan}, "above 0, got nan"),
        ({"sample": True, "top_k": 0}, "top_k must be at least 1, got 0"),
        ({"sample": True, "top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        ({"sample": True, "top_p": 1.1}, "top_p must be above 0 and at most 1, got 1.1"),
        ({"sample": True, "nbest": 0}, "nbest must be at least 1, got 0"),
        ({"temperature": 0.5}, "temperature is 0.5, but only draws depend on it"),
        ({"seed": 5}, "seed is 5, but only draws depend on it"),
    ],
)
def test_settings_that_cannot_be(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchSettings(**options)  # type: ignore[arg-type]


def test_more_samples_than_the_beam_has() -> None:
    assert SearchSettings(sample=True, nbest=9).followed == 9
    assert SearchSettings(sample=True).wanted == 1
