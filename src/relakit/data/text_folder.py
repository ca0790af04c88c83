"""A corpus as a folder of text files: train.en, train.de, valid.en, test.de and so on."""

import logging
from pathlib import Path
from typing import Final

from relakit.data.parallel_files import ParallelFiles

logger = logging.getLogger(__name__)

COMPRESSIONS: Final = ("", ".gz", ".zst")
VALID_NAMES: Final = ("valid", "val", "validation", "dev")


def find_splits(
    folder: Path, source_language: str, target_language: str, *, quiet: bool = False
) -> dict[str, ParallelFiles]:
    """The splits in a folder: train, valid and test, each in a file per language.

    File names end in the language and, if compressed, .gz or .zst. The validation set may also be
    called val, validation or dev. Whatever starts with "test" is a test set; if there are several
    (test_2016.en, test_2017.en), each split is named after its files, with _ for dots. A test set
    that lacks a language is left out with a warning (unless ``quiet``): collections of test sets
    often do not have all of them in every language.

    Raises:
        ValueError: there is no train, train or valid lacks a language, a file exists twice, or two
            test sets would have the same name.
    """
    splits = {"train": find_train(folder, source_language, target_language)}
    valid = {
        name: files
        for name in VALID_NAMES
        if (files := _pair(folder, name, source_language, target_language)) is not None
    }
    if len(valid) > 1:
        raise ValueError(
            f"{folder} has several validation sets: {', '.join(valid)}; name the files one by one"
        )
    splits.update(("valid", files) for files in valid.values())
    tests = _tests(folder, source_language, target_language, quiet)
    splits.update({"test": next(iter(tests.values()))} if len(tests) == 1 else tests)
    return splits


def find_train(folder: Path, source_language: str, target_language: str) -> ParallelFiles:
    """The files to train on; ValueError as in `find_splits`."""
    if folder.is_file():
        raise ValueError(f"{folder} is a file; name the folder that train.{source_language} is in")
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder")
    if source_language == target_language:
        raise ValueError(
            f"source and target language are both {source_language!r}; name two of them"
        )
    train = _pair(folder, "train", source_language, target_language)
    if train is None:
        raise ValueError(
            f"{folder} has no train.{source_language} (plain, .gz or .zst); name the files one by "
            "one if they are called differently"
        )
    return train


class _OneSided(ValueError):
    """A split has a file in only one of the languages."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; add it, or name the files one by one")
        self.problem = problem


def _tests(folder: Path, source: str, target: str, quiet: bool) -> dict[str, ParallelFiles]:
    tests: dict[str, ParallelFiles] = {}
    for name in _test_names(folder, (source, target)):
        try:
            files = _pair(folder, name, source, target)
        except _OneSided as error:
            if not quiet:
                logger.warning("%s: this test set is left out", error.problem)
            continue
        if files is None:
            continue
        split = name.replace(".", "_")  # a dot ends a split's name in a prepared corpus
        if split in tests:
            raise ValueError(
                f"{tests[split].source} and {files.source.name} would both be the split "
                f"{split!r}; rename one of them, or name the files one by one"
            )
        tests[split] = files
    return tests


def _test_names(folder: Path, languages: tuple[str, str]) -> list[str]:
    endings = [f".{language}{ending}" for language in languages for ending in COMPRESSIONS]
    names = {
        path.name.removesuffix(ending)
        for path in folder.glob("test*")
        for ending in endings
        if path.name.endswith(ending)
    }
    return sorted(names)


def _pair(folder: Path, name: str, source: str, target: str) -> ParallelFiles | None:
    source_path, target_path = _file(folder, f"{name}.{source}"), _file(folder, f"{name}.{target}")
    if source_path is None and target_path is None:
        return None
    if source_path is None or target_path is None:
        there, missing = source_path or target_path, target if target_path is None else source
        raise _OneSided(f"{there} exists, but no {name}.{missing} (plain, .gz or .zst)")
    return ParallelFiles(source_path, target_path)


def _file(folder: Path, name: str) -> Path | None:
    candidates = [folder / f"{name}{compression}" for compression in COMPRESSIONS]
    found = [path for path in candidates if path.is_file()]
    if len(found) > 1:
        raise ValueError(f"{found[0]} and {found[1].name} both exist; remove one of them")
    return found[0] if found else None
