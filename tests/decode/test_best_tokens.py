import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from relakit.decode.best_tokens import (
    CHUNK,
    OutputLayer,
    allow_only,
    best_candidates,
    forbid,
    log_normalisers,
)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    batch=st.integers(1, 4),
    beams=st.integers(1, 5),
    chunks=st.integers(1, 6),
    count=st.integers(1, 12),
)
def test_best_candidates_are_those_of_a_full_search(
    seed: int, batch: int, beams: int, chunks: int, count: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch * beams, chunks * CHUNK, generator=generator, dtype=torch.float64)
    # Some rows far above others, so that a beam may have all of the best, or none.
    offsets = torch.randn(batch, beams, generator=generator, dtype=torch.float64) * 3
    expected = (logits.view(batch, beams, -1) + offsets[:, :, None]).view(batch, -1).topk(count)
    found = best_candidates(logits, offsets, count)
    assert torch.equal(found.scores, expected.values)
    assert torch.equal(found.beams * chunks * CHUNK + found.tokens, expected.indices)


def test_equal_scores_give_the_same_scores_and_no_pair_twice() -> None:
    logits = torch.randint(3, (8, 4 * CHUNK), generator=torch.Generator().manual_seed(0)).float()
    offsets = torch.zeros(2, 4)
    found = best_candidates(logits, offsets, 20)
    expected = logits.view(2, -1).topk(20).values
    assert torch.equal(found.scores, expected)
    for beams, tokens in zip(found.beams.tolist(), found.tokens.tolist(), strict=True):
        assert len(set(zip(beams, tokens, strict=True))) == 20
    again = best_candidates(logits, offsets, 20)
    assert torch.equal(found.beams, again.beams)
    assert torch.equal(found.tokens, again.tokens)


def test_beams_that_are_out_of_the_race_are_not_chosen() -> None:
    logits = torch.randn(3, CHUNK)
    offsets = torch.tensor([[-math.inf, 0.0, -math.inf]])
    found = best_candidates(logits, offsets, 6)
    assert found.beams.tolist() == [[1] * 6]
    assert bool(found.scores.isfinite().all())


@pytest.mark.parametrize("vocabulary", [CHUNK, CHUNK + 1, 3 * CHUNK - 1])
def test_columns_without_a_token_have_no_probability(vocabulary: int) -> None:
    weight = torch.randn(vocabulary, 8)
    states = torch.randn(5, 8)
    logits = OutputLayer(weight)(states)
    assert logits.size(1) % CHUNK == 0
    torch.testing.assert_close(logits[:, :vocabulary], states @ weight.T)
    assert bool((logits[:, vocabulary:] == -math.inf).all())
    torch.testing.assert_close(log_normalisers(logits), (states @ weight.T).logsumexp(1))


def test_logits_of_a_half_precision_model_are_float32() -> None:
    output = OutputLayer(torch.randn(CHUNK, 8).bfloat16())
    assert output(torch.randn(2, 8).bfloat16()).dtype == torch.float32


def test_normalisers_in_blocks_and_of_huge_logits() -> None:
    logits = torch.randn(50, 50_000)  # several blocks
    logits[3] += 500
    logits[4] -= 500
    torch.testing.assert_close(log_normalisers(logits), logits.double().logsumexp(1).float())


def test_forbidden_tokens() -> None:
    logits = torch.zeros(2, CHUNK)
    forbid(logits, (0, 2))
    assert logits[0, :4].tolist() == [-math.inf, 0.0, -math.inf, 0.0]


def test_allow_only() -> None:
    logits = torch.arange(4.0 * CHUNK).view(4, CHUNK)
    allow_only(logits, torch.tensor([1, 2]), [3, 0])
    assert (logits[1, 3], logits[2, 0]) == (CHUNK + 3, 2 * CHUNK)
    assert int(logits.isfinite().sum()) == 2 * CHUNK + 4
