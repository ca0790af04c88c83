"""What is translated: groups of lengths, batches, the length that translations get."""

import pytest

from toolkits.decoding_cases import Sentences, decoding_cases, length_groups, spread_evenly
from toolkits.settings import DecodingSettings

LENGTHS = [5, 1, 9, 3, 7, 2, 8, 4, 6, 10]
SENTENCES = Sentences([[7] * n for n in LENGTHS], [2 * n for n in LENGTHS])


def test_groups_are_disjoint_and_sorted() -> None:
    groups = length_groups(LENGTHS, 3)
    assert [[LENGTHS[i] for i in group] for group in groups] == [
        [1, 2, 3, 4],
        [5, 6, 7],
        [8, 9, 10],
    ]
    assert length_groups(LENGTHS, 0) == []
    with pytest.raises(ValueError, match="10 sentences cannot make 11 groups"):
        length_groups(LENGTHS, 11)


def test_evenly() -> None:
    assert spread_evenly(range(10), 3) == [0, 3, 6]
    assert spread_evenly([4, 5], 3) == [4, 5]


def test_batches_have_sentences_of_similar_length() -> None:
    settings = DecodingSettings(batch_sizes=(4,), sentences=10, groups=0)
    [case] = decoding_cases(SENTENCES, settings)
    assert case.name == "batch 4"
    assert case.sentences == 10
    sizes = [[len(sentence) for sentence in batch.sentences] for batch in case.batches]
    assert sizes == [[10, 9, 8, 7], [6, 5, 4, 3], [2, 1]]
    # Twice the source on average, as the references are.
    assert [batch.exact_length for batch in case.batches] == [17, 9, 3]
    assert [batch.max_length for batch in case.batches] == [17, 9, 3]


def test_groups_go_one_by_one() -> None:
    settings = DecodingSettings(batch_sizes=(), groups=2, group_sentences=2)
    short, long = decoding_cases(SENTENCES, settings)
    assert short.name == "group 1, source length 1 to 5"
    assert long.name == "group 2, source length 6 to 10"
    assert [len(batch.sentences) for batch in (*short.batches, *long.batches)] == [1, 1, 1, 1]
    assert (short.source_length, long.source_length) == (2.0, 7.0)
    assert short.is_group


def test_free_length() -> None:
    settings = DecodingSettings(
        batch_sizes=(10,), groups=0, exact_length=False, models=("m",), attentions=("softmax",)
    )
    [case] = decoding_cases(SENTENCES, settings)
    [batch] = case.batches
    assert batch.exact_length is None
    assert batch.max_length == 40
