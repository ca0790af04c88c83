"""Every pair is in one batch, no batch is too large, little is padding, and seeds decide."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relakit.data.batches import collate, make_batches, pad_batch
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import EncodedSplit, PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.data.tokenizer import BEGIN, END, PAD

Lengths = npt.NDArray[np.int32]
PAIRS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=300)


def lengths_of(pairs: list[tuple[int, int]]) -> tuple[Lengths, Lengths]:
    sources, targets = np.array(pairs, dtype=np.int32).T
    return sources, targets


def like_text(count: int) -> tuple[Lengths, Lengths]:
    """Lengths as in a corpus: the target's follows the source's, not closely."""
    random = np.random.default_rng(7)
    sources = 1 + random.gamma(4, 5, count).astype(np.int32)
    targets = np.maximum(1, sources * random.normal(1.1, 0.2, count)).astype(np.int32)
    return sources, targets


def as_sets(batches: list[npt.NDArray[np.int64]]) -> list[list[int]]:
    return [sorted(batch.tolist()) for batch in batches]


def padding_share(
    batches: list[npt.NDArray[np.int64]], source_lengths: Lengths, target_lengths: Lengths
) -> float:
    """The share of PAD among the entries of all source and target matrices."""
    entries = tokens = 0
    for batch in batches:
        for lengths in (source_lengths[batch], target_lengths[batch]):
            entries += len(batch) * (int(lengths.max()) + 1)
            tokens += len(batch) + int(lengths.sum())
    return 1 - tokens / entries


class TestMakeBatches:
    @given(PAIRS, st.integers(1, 500))
    def test_every_pair_once_and_no_batch_too_large(
        self, pairs: list[tuple[int, int]], batch_tokens: int
    ) -> None:
        sources, targets = lengths_of(pairs)
        batches = make_batches(sources, targets, batch_tokens=batch_tokens, seed=1, epoch=2)
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
        for batch in batches:
            width = max(sources[batch].max(), targets[batch].max()) + 1
            assert len(batch) == 1 or len(batch) * width <= batch_tokens

    @given(PAIRS, st.integers(1, 500))
    def test_batches_are_as_large_as_the_budget_allows(
        self, pairs: list[tuple[int, int]], batch_tokens: int
    ) -> None:
        """The same cuts as adding one pair after the other until it does not fit."""
        sources, targets = lengths_of(pairs)
        batches = make_batches(sources, targets, batch_tokens=batch_tokens, seed=1, epoch=0)
        found = [[(sources[i], targets[i]) for i in batch] for batch in batches]
        longest = max(source for source, _ in pairs)
        expected: list[list[tuple[int, int]]] = [[]]
        for pair in sorted(pairs, key=lambda p: (p[1], p[0] if p[1] % 2 == 0 else longest - p[0])):
            together = [*expected[-1], pair]
            if len(together) > 1 and len(together) * (max(map(max, together)) + 1) > batch_tokens:
                expected.append([pair])
            else:
                expected[-1] = together
        assert sorted(found) == sorted(expected)

    def test_seed_and_epoch_decide(self) -> None:
        sources, targets = like_text(2000)

        def batches(seed: int, epoch: int) -> list[list[int]]:
            return [
                batch.tolist()
                for batch in make_batches(
                    sources, targets, batch_tokens=1000, seed=seed, epoch=epoch
                )
            ]

        assert batches(3, 1) == batches(3, 1)
        for other in (batches(3, 2), batches(4, 1), batches(1, 3)):
            assert other != batches(3, 1)
            assert sorted(map(sorted, other)) != sorted(map(sorted, batches(3, 1)))

    def test_batches_are_not_in_order_of_length(self) -> None:
        sources, targets = like_text(5000)
        batches = make_batches(sources, targets, batch_tokens=1000, seed=1, epoch=0)
        means = np.array([targets[batch].mean() for batch in batches])
        assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 0.3

    def test_pairs_of_equal_length_are_shuffled(self) -> None:
        equal = np.full(1000, 9, dtype=np.int32)
        first, second = (
            make_batches(equal, equal, batch_tokens=100, seed=1, epoch=epoch) for epoch in (0, 1)
        )
        assert all(len(batch) == 10 for batch in first)
        assert not {tuple(batch) for batch in as_sets(first)} & {
            tuple(batch) for batch in as_sets(second)
        }

    def test_little_is_padding(self) -> None:
        sources, targets = like_text(30_000)
        batches = make_batches(sources, targets, batch_tokens=4096, seed=1, epoch=0)
        random = np.array_split(np.random.default_rng(0).permutation(30_000), len(batches))
        assert padding_share(batches, sources, targets) < 0.08
        assert padding_share(random, sources, targets) > 0.4

    def test_lengths_of_any_size(self) -> None:
        """Sums of lengths beyond 32 bits do not overflow."""
        sources = np.array([2_000_000, 5, 2_000_000, 5], dtype=np.int32)
        targets = np.array([2_000_000, 5, 3, 5], dtype=np.int32)
        batches = make_batches(sources, targets, batch_tokens=12, seed=0, epoch=0)
        assert sorted(as_sets(batches)) == [[0], [1, 3], [2]]

    def test_no_pairs_no_batches(self) -> None:
        empty = np.empty(0, dtype=np.int32)
        assert make_batches(empty, empty, batch_tokens=10, seed=0, epoch=0) == []

    def test_wrong_arguments(self) -> None:
        two, three = np.ones(2, dtype=np.int32), np.ones(3, dtype=np.int32)
        with pytest.raises(ValueError, match="batch_tokens must be at least 1, got 0"):
            make_batches(two, two, batch_tokens=0, seed=0, epoch=0)
        with pytest.raises(ValueError, match="2 source lengths and 3 target lengths"):
            make_batches(two, three, batch_tokens=9, seed=0, epoch=0)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> EncodedSplit:
    folder = tmp_path_factory.mktemp("corpus")
    path = folder / "train.tsv"
    words = [f"{'ab ' * (n * 7 % 11)}c\t{'de ' * (n * 5 % 13)}f\n" for n in range(50)]
    path.write_text("".join(words))
    settings = PrepareSettings(vocab_size=300)
    prepare({"train": ParallelFiles(path)}, folder / "out", settings=settings)
    return PreparedCorpus.load(folder / "out").train


class TestCollate:
    @given(st.lists(st.integers(0, 49), min_size=1, max_size=9))
    def test_is_what_padding_row_by_row_gives(
        self, split: EncodedSplit, indices: list[int]
    ) -> None:
        batch = collate(split, np.array(indices))
        sources = [split.source(index).tolist() for index in indices]
        targets = [split.target(index).tolist() for index in indices]
        assert batch.source.tolist() == padded([[*ids, END] for ids in sources])
        assert batch.target_in.tolist() == padded([[BEGIN, *ids] for ids in targets])
        assert batch.target_out.tolist() == padded([[*ids, END] for ids in targets])
        assert batch.target_tokens == sum(len(ids) + 1 for ids in targets)
        assert batch.target_tokens == (batch.target_out != PAD).sum()
        assert batch.indices.tolist() == indices
        assert {batch.source.dtype, batch.target_in.dtype, batch.target_out.dtype} == {
            np.dtype(np.int64)
        }

    def test_takes_any_sequence_of_indices(self, split: EncodedSplit) -> None:
        expected = collate(split, np.array([3, 1]))
        assert (collate(split, [3, 1]).source == expected.source).all()
        assert (collate(split, np.array([3, 1], dtype=np.int32)).source == expected.source).all()


class TestPadBatch:
    @pytest.mark.parametrize("begin", [None, BEGIN])
    @pytest.mark.parametrize("end", [None, END])
    @given(sentences=st.lists(st.lists(st.integers(4, 99), max_size=6), max_size=5))
    def test_is_what_padding_row_by_row_gives(
        self, begin: int | None, end: int | None, sentences: list[list[int]]
    ) -> None:
        before, after = [begin] * (begin is not None), [end] * (end is not None)
        matrix = pad_batch([np.array(s, dtype=np.uint16) for s in sentences], begin=begin, end=end)
        assert matrix.dtype == np.int64
        assert matrix.tolist() == padded([[*before, *ids, *after] for ids in sentences])


def padded(rows: list[list[int]]) -> list[list[int]]:
    width = max(map(len, rows), default=0)
    return [row + [PAD] * (width - len(row)) for row in rows]


def test_memory_mapped_tokens_are_not_changed(split: EncodedSplit) -> None:
    before = split.source(0).tolist()
    batch = collate(split, [0])
    batch.source[:] = PAD
    split.source(0)[:] = PAD
    assert split.source(0).tolist() == before
