"""Splits are found by the names of their files."""

from pathlib import Path

import pytest

from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_writer import SPLIT_NAME
from relakit.data.text_folder import find_splits


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()


def test_compressed_files_with_a_long_test_name(tmp_path: Path) -> None:
    splits = ("train", "val", "test_2016_flickr")
    make(
        tmp_path, *(f"{split}.{language}.gz" for split in splits for language in ("en", "de", "fr"))
    )
    assert find_splits(tmp_path, "en", "de") == {
        name: ParallelFiles(tmp_path / f"{split}.en.gz", tmp_path / f"{split}.de.gz")
        for name, split in zip(("train", "valid", "test"), splits, strict=True)
    }


@pytest.mark.parametrize("valid", ["valid", "val", "validation", "dev"])
def test_names_of_the_validation_set(tmp_path: Path, valid: str) -> None:
    make(tmp_path, "train.en", "train.de.zst", f"{valid}.en", f"{valid}.de")
    assert find_splits(tmp_path, "de", "en") == {
        "train": ParallelFiles(tmp_path / "train.de.zst", tmp_path / "train.en"),
        "valid": ParallelFiles(tmp_path / f"{valid}.de", tmp_path / f"{valid}.en"),
    }


def test_several_test_sets_keep_their_names(tmp_path: Path) -> None:
    make(tmp_path, "train.en", "train.de", "test.en", "test.de", "test_2017.en", "test_2017.de.gz")
    assert list(find_splits(tmp_path, "en", "de")) == ["train", "test", "test_2017"]


def test_dots_in_the_names_of_test_sets(tmp_path: Path) -> None:
    tests = ["test.2016.en", "test.2016.de", "test.2017.v2.en.gz", "test.2017.v2.de"]
    make(tmp_path, "train.en", "train.de", *tests)
    found = find_splits(tmp_path, "en", "de")
    assert list(found) == ["train", "test_2016", "test_2017_v2"]
    assert all(SPLIT_NAME.fullmatch(name) for name in found)
    assert found["test_2016"] == ParallelFiles(tmp_path / tests[0], tmp_path / tests[1])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"has no train\.en \(plain, \.gz or \.zst\)"),
        (["train.en"], r"train\.en exists, but no train\.de \(plain"),
        (["train.de.gz"], r"train\.de\.gz exists, but no train\.en \(plain"),
        (["train.en", "train.en.gz", "train.de"], r"train\.en and train\.en\.gz both exist"),
        (["train.en", "train.de", "dev.en"], r"dev\.en exists, but no dev\.de"),
        (
            ["train.en", "train.de", "dev.en", "dev.de", "val.en", "val.de"],
            "has several validation sets: val, dev",
        ),
        (
            [f"{name}.{end}" for name in ("train", "test.a", "test_a") for end in ("en", "de")],
            r"test\.a\.en and test_a\.en would both be the split 'test_a'; rename one of them",
        ),
    ],
)
def test_what_is_missing_or_ambiguous_is_named(
    tmp_path: Path, names: list[str], message: str
) -> None:
    make(tmp_path, *names)
    with pytest.raises(ValueError, match=message):
        find_splits(tmp_path, "en", "de")


@pytest.mark.parametrize(("there", "missing"), [("en", "de"), ("de", "en")])
def test_a_test_set_without_one_language_is_left_out_with_a_note(
    tmp_path: Path, there: str, missing: str, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path, "train.en", "train.de", "test_a.en", "test_a.de", f"test_b.{there}.gz")
    assert list(find_splits(tmp_path, "en", "de")) == ["train", "test"]
    assert caplog.messages == [
        f"{tmp_path / f'test_b.{there}.gz'} exists, but no test_b.{missing} (plain, .gz or .zst): "
        "this test set is left out"
    ]


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere: there is no such folder"):
        find_splits(tmp_path / "nowhere", "en", "de")


def test_two_equal_languages(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both 'en'"):
        find_splits(tmp_path, "en", "en")
