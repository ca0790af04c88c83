"""Which sentences meet in which update."""

from itertools import islice

import numpy as np
import pytest

from relakit.data.prepared_reader import PreparedCorpus
from relakit.train.plan import (
    Update,
    enough_batches,
    first_epoch,
    group_batches,
    plan_updates,
    total_updates,
)
from relakit.train.recipe import TrainingSection


def updates(corpus: PreparedCorpus, count: int, **changed: int) -> list[Update]:
    settings = {"batch_tokens": 60, "update_tokens": 100, "seed": 3, **changed}
    return list(islice(plan_updates(corpus.split("train"), **settings), count))


def as_lists(plan: list[Update]) -> list[list[list[int]]]:
    return [[batch.tolist() for batch in update.batches] for update in plan]


def test_an_epoch_has_every_sentence_once(corpus: PreparedCorpus) -> None:
    plan = updates(corpus, 200)
    end = next(i for i, update in enumerate(plan) if update.is_last_of_epoch)
    epoch = np.concatenate([batch for update in plan[: end + 1] for batch in update.batches])
    assert sorted(epoch.tolist()) == list(range(len(corpus.split("train"))))
    assert [update.number for update in plan] == list(range(1, 201))
    assert {update.epoch for update in plan[: end + 1]} == {0}
    assert plan[end + 1].epoch == 1


def test_epochs_differ_and_seeds_differ(corpus: PreparedCorpus) -> None:
    plan = updates(corpus, 200)
    end = next(i for i, update in enumerate(plan) if update.is_last_of_epoch)
    assert as_lists(plan[: end + 1]) != as_lists(plan[end + 1 : 2 * end + 2])
    assert as_lists(plan) == as_lists(updates(corpus, 200))
    assert as_lists(plan) != as_lists(updates(corpus, 200, seed=4))


@pytest.mark.parametrize("done", [1, 10, 47, 100])
def test_going_on_gives_the_same_updates(corpus: PreparedCorpus, done: int) -> None:
    plan = updates(corpus, 150)
    last = plan[done - 1]
    before = sum(update.epoch < last.epoch for update in plan)
    rest = updates(corpus, 150 - done, after=done, epoch=last.epoch, before_epoch=before)
    assert as_lists(rest) == as_lists(plan[done:])
    assert [u.number for u in rest] == [u.number for u in plan[done:]]


def test_tokens_are_counted_with_the_end_of_sentence(corpus: PreparedCorpus) -> None:
    lengths = corpus.split("train").target_lengths
    for update in updates(corpus, 20):
        assert update.target_tokens == sum(int((lengths[b] + 1).sum()) for b in update.batches)


def test_groups_come_near_their_size() -> None:
    lengths = np.full(100, 9)  # ten tokens each
    batches = [np.arange(i, i + 4) for i in range(0, 100, 4)]  # 40 tokens each
    sizes = [tokens for _, tokens in group_batches(batches, lengths, 100)]
    assert sizes == [*[120] * 8, 40]  # 80 and 120 are as near: the later end wins
    assert [tokens for _, tokens in group_batches(batches, lengths, 1)] == [40] * 25


@pytest.mark.parametrize(
    ("sizes", "processes", "expected"),
    [
        ([7], 1, [7]),
        ([7], 2, [4, 3]),
        ([8], 4, [2, 2, 2, 2]),
        ([2, 6], 3, [2, 3, 3]),
        ([2, 6], 2, [2, 6]),
        ([5, 5, 5], 2, [5, 5, 5]),
        ([1, 2], 8, [1, 1, 1]),
    ],
)
def test_batches_are_cut_until_every_process_has_one(
    sizes: list[int], processes: int, expected: list[int]
) -> None:
    sentences = np.arange(sum(sizes))
    parts = enough_batches(np.split(sentences, np.cumsum(sizes)[:-1]), processes)
    assert sorted(len(part) for part in parts) == sorted(expected)
    assert sorted(np.concatenate(parts).tolist()) == sentences.tolist()


def test_halves_of_a_batch_have_sentences_of_all_its_lengths() -> None:
    first, second = enough_batches([np.arange(100)], 2)  # in the order of their lengths
    assert abs(int(first.sum()) - int(second.sum())) <= 50


def test_what_ends_a_run_first(corpus: PreparedCorpus) -> None:
    def limited(**limits: float | None) -> TrainingSection:
        return TrainingSection(batch_tokens=60, update_tokens=100, seed=3, **limits)

    epoch = first_epoch(corpus.split("train"), limited(epochs=1))
    assert as_lists(epoch) == as_lists(updates(corpus, len(epoch)))
    assert [update.is_last_of_epoch for update in epoch] == [False] * (len(epoch) - 1) + [True]
    assert total_updates(limited(epochs=3), 10) == 30
    assert total_updates(limited(epochs=3, updates=20), 10) == 20
    assert total_updates(limited(epochs=3, updates=40), 10) == 30
    assert total_updates(limited(updates=40), 10) == 40
    assert total_updates(limited(minutes=5), 10) is None
