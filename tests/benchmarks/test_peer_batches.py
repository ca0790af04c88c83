"""The ids that the peers are given and give back."""

from pathlib import Path

import numpy as np
import pytest
from batches import BEGIN, END, PAD, Batch, Decoding, decoded, padded, read_batches, write_batches
from safetensors.numpy import save_file


def test_batches_survive_the_file(tmp_path: Path) -> None:
    batches = [
        Batch(padded([[5, 6, END], [7, END]]), padded([[8, END], [9, 10, END]])),
        Batch(padded([[4, END]]), padded([[4, 5, 6, END]])),
    ]
    write_batches(tmp_path / "batches", batches)
    found = read_batches(tmp_path / "batches")
    assert [batch.source.tolist() for batch in found] == [[[5, 6, END], [7, END, PAD]], [[4, END]]]
    assert [batch.target_tokens for batch in found] == [5, 4]
    assert found[0].decoder_input.tolist() == [[BEGIN, 8, PAD], [BEGIN, 9, 10]]


@pytest.mark.parametrize("names", [[], ["source.0"], ["source.0", "target.1"], ["a", "b"]])
def test_other_files_are_no_batches(tmp_path: Path, names: list[str]) -> None:
    save_file({name: np.ones((1, 2), dtype=np.int64) for name in names}, tmp_path / "batches")
    with pytest.raises(ValueError, match=r"expected arrays source\.0, target\.0"):
        read_batches(tmp_path / "batches")


def test_sides_must_have_as_many_sentences(tmp_path: Path) -> None:
    write_batches(tmp_path / "batches", [Batch(padded([[4, END]] * 2), padded([[4, END]] * 3))])
    with pytest.raises(ValueError, match=r"batch 0 has sources of shape \(2, 2\) and .* \(3, 2\)"):
        read_batches(tmp_path / "batches")


def test_sentences_are_grouped_by_length() -> None:
    sentences = [[4], [4, 5, 6], [4, 5], [4, 5, 6, 7], [4]]
    decoding = Decoding.of_request({"sentences": sentences, "batch_size": 2})
    assert decoding.groups() == [[3, 1], [2, 0], [4]]
    assert decoding.source([2, 0]).tolist() == [[4, 5, END], [4, END, PAD]]


def test_exact_length_takes_the_place_of_the_longest() -> None:
    request = {"sentences": [[4]], "max_length": 50}
    assert Decoding.of_request(request).max_length == 50
    assert Decoding.of_request({**request, "exact_length": 9}).max_length == 9


@pytest.mark.parametrize("fields", [{}, {"sentences": [[4], []]}, {"sentences": [[4]], "beam": 0}])
def test_impossible_requests(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"sentences|at least 1"):
        Decoding.of_request(fields)


def test_end_counts_as_a_generated_token() -> None:
    answer = decoded(1.5, [[7, 8, END, PAD], [END], [9, 10]])
    assert answer == {"seconds": 1.5, "target_tokens": 6, "outputs": [[7, 8], [], [9, 10]]}
