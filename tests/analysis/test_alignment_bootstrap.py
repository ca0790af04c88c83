"""Intervals of error rates: against samples that are added up pair by pair, and known cases."""

import math
import statistics
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from relakit.analysis import (
    AlignmentEstimates,
    AlignmentResult,
    AlignmentScore,
    AlignmentSettings,
    AttentionScores,
    BootstrapSettings,
    Estimate,
    PairLinks,
    alignment_bootstrap,
    bootstrap_alignment,
    compare_alignments,
)
from relakit.analysis.aer import LinkCounts
from relakit.analysis.alignment_bootstrap import drawn_sums
from relakit.analysis.pair_links import PairCount

LAYERS, HEADS = 2, 3


def pair_links(links: np.ndarray, sure: np.ndarray) -> PairLinks:
    """From ``[pairs, 3, readings, layers, heads + 1]`` and ``[pairs]`` counts."""
    totals = LinkCounts(links.shape[3], links.shape[4] - 1)
    totals.links += links.sum(0)
    totals.sure, totals.pairs = int(sure.sum()), len(sure)
    result = AlignmentResult.from_counts(totals, settings=AlignmentSettings(), attention="rela-g")
    counts = [
        PairCount(pair, its_links, int(its_sure))
        for pair, (its_links, its_sure) in enumerate(zip(links, sure, strict=True))
    ]
    return PairLinks.from_counts(counts, result=result)


def random_links(pairs: int, seed: int, sure: np.ndarray | None = None) -> PairLinks:
    random = np.random.default_rng(seed)
    shape = pairs, 2, LAYERS, HEADS + 1
    found = random.integers(0, 12, shape)
    possible = random.binomial(found, 0.6)
    found_sure = random.binomial(possible, 0.8)
    if sure is None:
        sure = found_sure.max((1, 2, 3)) + random.integers(0, 4, pairs)
        sure[0] += 1
    return pair_links(np.stack([found, found_sure, possible], axis=1), sure)


def scores_of(links: PairLinks, pairs: Sequence[int], reading: int) -> AttentionScores:
    """Of the drawn pairs, each as often as it was drawn."""

    def score(layer: int, head: int) -> AlignmentScore:
        total = AlignmentScore(0, 0, 0, 0)
        for pair in pairs:
            found, found_sure, found_possible = links.links[pair, :, reading, layer, head].tolist()
            total += AlignmentScore(found, int(links.sure[pair]), found_sure, found_possible)
        return total

    return AttentionScores(
        heads=tuple(tuple(score(layer, h) for h in range(HEADS)) for layer in range(LAYERS)),
        layers=tuple(score(layer, HEADS) for layer in range(LAYERS)),
    )


def summary(scores: AttentionScores) -> list[float]:
    layer, head = scores.best_head
    return [scores.aol, scores.aoh, scores.heads[layer][head].aer]


def drawn_pairs(links: PairLinks, options: BootstrapSettings) -> list[list[int]]:
    """The pairs of each sample, from the same random numbers."""
    count = len(links.sure)
    random = np.random.default_rng(options.seed)
    found = []
    for times in random.multinomial(count, [1 / count] * count, size=options.samples):
        pairs = [pair for pair in range(count) for _ in range(times[pair])]
        if links.sure[pairs].sum():
            found.append(pairs)
    return found


def percentile(numbers: Sequence[float], share: float) -> float:
    """Between the two nearest, as far as it takes."""
    ordered = sorted(numbers)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def estimates_of(result: AlignmentEstimates) -> list[list[Estimate]]:
    return [[r.aol, r.aoh, r.best_head] for r in (result.normal, result.shifted)]


@settings(max_examples=25, deadline=None)
@given(
    pairs=st.integers(1, 7),
    seed=st.integers(0, 1000),
    confidence=st.sampled_from([0.5, 0.9, 0.95]),
)
def test_against_samples_added_up_pair_by_pair(pairs: int, seed: int, confidence: float) -> None:
    first = random_links(pairs, seed)
    second = random_links(pairs, seed + 1, sure=first.sure)
    options = BootstrapSettings(samples=15, seed=seed, confidence=confidence)
    found = estimates_of(bootstrap_alignment(first, options))
    differences = estimates_of(compare_alignments(first, second, options))
    samples = drawn_pairs(first, options)
    for reading in range(2):
        every = [range(pairs), *samples]
        one = [summary(scores_of(first, drawn, reading)) for drawn in every]
        other = [summary(scores_of(second, drawn, reading)) for drawn in every]
        less = [
            [x - y for x, y in zip(*both, strict=True)] for both in zip(one, other, strict=True)
        ]
        for estimates, rows in ((found, one), (differences, less)):
            for number, estimate in enumerate(estimates[reading]):
                value, *draws = [row[number] for row in rows]
                assert estimate.value == pytest.approx(value)
                assert estimate.low == pytest.approx(percentile(draws, (1 - confidence) / 2))
                assert estimate.high == pytest.approx(percentile(draws, (1 + confidence) / 2))


def test_the_value_is_that_of_the_result() -> None:
    links = random_links(40, seed=5)
    estimates = bootstrap_alignment(links)
    for reading, scores in (
        (estimates.normal, links.result.normal),
        (estimates.shifted, links.result.shifted),
    ):
        assert [reading.aol.value, reading.aoh.value, reading.best_head.value] == pytest.approx(
            summary(scores)
        )
    assert (estimates.pairs, estimates.end) == (40, "ignored")


def test_the_width_for_one_link_per_pair() -> None:
    """The error rate is a share of pairs then, whose spread is known."""
    pairs, right = 400, 120
    is_right = (np.arange(pairs) < right).astype(np.int64)
    links = np.ones((pairs, 3, 2, 1, 2), dtype=np.int64)
    links[:, 1:] = is_right[:, None, None, None, None]
    estimates = bootstrap_alignment(pair_links(links, np.ones(pairs, dtype=np.int64)))
    rate = 1 - right / pairs
    half = statistics.NormalDist().inv_cdf(0.975) * math.sqrt(rate * (1 - rate) / pairs)
    for estimate in (estimates.normal.aol, estimates.shifted.best_head):
        assert estimate.value == pytest.approx(rate)
        assert estimate.low == pytest.approx(rate - half, abs=0.1 * half)
        assert estimate.high == pytest.approx(rate + half, abs=0.1 * half)


def test_each_sample_chooses_its_best_head() -> None:
    """Two heads that are right in one half of the pairs each: a sample takes the luckier one."""
    pairs = 100
    links = np.ones((pairs, 3, 2, 1, 3), dtype=np.int64)
    links[::2, 1:, :, :, 0] = 0
    links[1::2, 1:, :, :, 1] = 0
    estimates = bootstrap_alignment(pair_links(links, np.ones(pairs, dtype=np.int64)))
    assert estimates.normal.aoh.value == 0.5
    assert estimates.normal.aoh.high == 0.5, "one of the two is right in half of the pairs at least"
    assert estimates.normal.aoh.low < 0.45


def test_a_small_but_steady_difference_is_found() -> None:
    """Both models vary between pairs, but the first has one link more right in each."""
    random = np.random.default_rng(1)
    right = np.broadcast_to(random.integers(0, 9, (60, 1, 1, 1, 1)), (60, 2, 2, LAYERS, HEADS + 1))
    found = np.full((60, 1, 2, LAYERS, HEADS + 1), 10)
    sure = np.full(60, 10)
    worse = pair_links(np.concatenate([found, right], axis=1), sure)
    better = pair_links(np.concatenate([found, right + 1], axis=1), sure)
    apart = [bootstrap_alignment(links).normal.aol for links in (better, worse)]
    assert apart[0].high > apart[1].low, "the intervals of the models overlap"
    difference = compare_alignments(better, worse).normal.aol
    assert (difference.value, difference.low, difference.high) == pytest.approx((-0.1,) * 3)


def test_deterministic_by_seed() -> None:
    links = random_links(30, seed=2)
    assert bootstrap_alignment(links) == bootstrap_alignment(links, BootstrapSettings())
    other = bootstrap_alignment(links, BootstrapSettings(seed=2))
    assert other.normal.aol.value == bootstrap_alignment(links).normal.aol.value
    assert other.normal.aol.low != bootstrap_alignment(links).normal.aol.low


@pytest.mark.parametrize("block", [1, 100, 1 << 22])
def test_samples_do_not_depend_on_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of one draw of all, which takes memory for samples times pairs."""
    monkeypatch.setattr(alignment_bootstrap, "_BLOCK", block)
    counts = np.random.default_rng(7).integers(0, 50, (30, 2, 3))
    options = BootstrapSettings(samples=25, seed=3)
    drawn = np.random.default_rng(3).multinomial(30, np.full(30, 1 / 30), size=25)
    expected = np.einsum("sp,pab->sab", drawn, counts)
    assert np.array_equal(drawn_sums(counts, options), expected)


def test_memory_does_not_grow_with_samples_times_pairs() -> None:
    counts = np.ones((200_000, 1), dtype=np.int64)
    tracemalloc.start()
    drawn_sums(counts, BootstrapSettings(samples=60))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 8 * (1 << 22), "all draws take 96 MB, and again as many as floats"


def test_json() -> None:
    estimates = bootstrap_alignment(random_links(10, seed=3))
    adapter = TypeAdapter(AlignmentEstimates)
    assert adapter.validate_json(adapter.dump_json(estimates)) == estimates


def test_models_that_cannot_be_compared() -> None:
    links = random_links(5, seed=1)
    fewer = random_links(4, seed=1)
    with pytest.raises(ValueError, match=r"the same pairs: the first has 5 .* the second 4 with"):
        compare_alignments(links, fewer)
    with pytest.raises(ValueError, match="not aligned on the same pairs"):
        compare_alignments(links, replace(links, indices=links.indices + 1))
    with pytest.raises(ValueError, match="not aligned on the same pairs"):
        compare_alignments(links, random_links(5, seed=1, sure=links.sure + 1))
    competing = replace(links.result, settings=AlignmentSettings(end="competes"))
    with pytest.raises(ValueError, match="weight is 'ignored', the second's 'competes'"):
        compare_alignments(links, replace(links, result=competing))


def test_samples_without_a_sure_link() -> None:
    """One pair of three has all sure links; samples without it are left out."""
    links = random_links(3, seed=4, sure=np.array([0, 5, 0]))
    estimates = bootstrap_alignment(links, BootstrapSettings(samples=50))
    assert all(math.isfinite(e.low) for reading in estimates_of(estimates) for e in reading)
    seed = next(
        seed
        for seed in range(100)
        if not drawn_pairs(links, BootstrapSettings(samples=1, seed=seed))
    )
    with pytest.raises(ValueError, match="none of the 1 samples has a sure link"):
        bootstrap_alignment(links, BootstrapSettings(samples=1, seed=seed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"confidence": 1.0}, r"confidence must be above 0 and below 1, got 1\.0"),
    ],
)
def test_bad_settings(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BootstrapSettings(**options)
