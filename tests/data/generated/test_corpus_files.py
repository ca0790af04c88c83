"""The generated corpus as a folder: whole, readable by everything that reads corpora."""

import json
from pathlib import Path

import pytest

from relakit.data.generated import (
    GeneratedCounts,
    NoiseKind,
    corpus_files,
    generate_pairs,
    plant_noise,
    write_corpus,
)
from relakit.data.text_folder import find_splits

NOISE: dict[NoiseKind, float] = {"shuffled": 0.1, "inserted": 0.1, "truncated": 0.1}


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_hold_what_was_generated(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "corpus"
    counts = write_corpus(folder, sizes={"train": 300, "valid": 20, "test": 10}, seed=4)
    assert len(list(folder.iterdir())) == 3 * 5 + 1
    pairs = list(generate_pairs(300, seed=4))
    assert lines(folder / "train.en") == [pair.source_text for pair in pairs]
    assert lines(folder / "train.de") == [pair.target_text for pair in pairs]
    assert [line.split() for line in lines(folder / "train.de.tags")] == [
        [*pair.target_tags] for pair in pairs
    ]
    for line, pair in zip(lines(folder / "train.links"), pairs, strict=True):
        assert tuple(tuple(map(int, link.split("-"))) for link in line.split()) == pair.links
    assert len(lines(folder / "valid.en")) == 20
    assert len(lines(folder / "test.en.tags")) == 10
    assert list(find_splits(folder, "en", "de")) == ["train", "valid", "test"]
    assert counts["train"] == GeneratedCounts(
        pairs=300,
        source_words=sum(len(pair.source) for pair in pairs),
        target_words=sum(len(pair.target) for pair in pairs),
        links=sum(len(pair.links) for pair in pairs),
        noise={},
    )
    document = json.loads((folder / "generated.json").read_bytes())
    assert (document["seed"], document["noise"]) == (4, {})
    assert document["splits"]["valid"]["pairs"] == 20


def test_noise_goes_into_the_training_split(tmp_path: Path) -> None:
    counts = write_corpus(tmp_path, sizes={"train": 200, "valid": 50}, seed=4, noise=NOISE)
    pairs = list(plant_noise(generate_pairs(200, seed=4), shares=NOISE, seed=4))
    labels = [line.split("\t") for line in lines(tmp_path / "train.noise")]
    assert [label[0] for label in labels] == [
        "clean" if pair.noise is None else pair.noise.kind for pair in pairs
    ]
    assert [label[1:] for label in labels] == [
        [] if pair.noise is None else [pair.noise.what] for pair in pairs
    ]
    assert sum(counts["train"].noise.values()) == sum(label != ["clean"] for label in labels) > 30
    assert counts["valid"].noise == {}
    assert lines(tmp_path / "train.de") == [pair.target_text for pair in pairs]
    valid = generate_pairs(50, seed=4, split="valid")
    assert lines(tmp_path / "valid.de") == [pair.target_text for pair in valid]
    assert not (tmp_path / "valid.noise").exists()

    write_corpus(tmp_path, sizes={"train": 10}, seed=4, replace=True)
    assert not (tmp_path / "train.noise").exists()
    assert not (tmp_path / "valid.de").exists()


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "corpus"
    write_corpus(folder, sizes={"train": 10}, seed=1)
    before = contents(folder)

    def broken(*args: object, **kwargs: object) -> object:
        yield next(generate_pairs(1))
        raise OSError("disk full")

    monkeypatch.setattr(corpus_files, "generate_pairs", broken)
    with pytest.raises(OSError, match="disk full"):
        write_corpus(folder, sizes={"train": 10}, seed=2, replace=True)
    assert contents(folder) == before
    assert list(tmp_path.iterdir()) == [folder]


class TestFolder:
    def test_is_not_replaced_unasked(self, tmp_path: Path) -> None:
        write_corpus(tmp_path, sizes={"train": 5}, seed=1)
        before = contents(tmp_path)
        with pytest.raises(FileExistsError, match="holds a generated corpus already; --force"):
            write_corpus(tmp_path, sizes={"train": 5}, seed=2)
        assert contents(tmp_path) == before
        write_corpus(tmp_path, sizes={"train": 5}, seed=2, replace=True)
        assert contents(tmp_path) != before

    @pytest.mark.parametrize("foreign", ["thesis.tex", "valid.en", "train.en.gz"])
    def test_with_other_things_is_never_replaced(self, foreign: str, tmp_path: Path) -> None:
        write_corpus(tmp_path, sizes={"train": 5}, seed=1)
        (tmp_path / foreign).touch()
        before = contents(tmp_path)
        with pytest.raises(FileExistsError, match=f"holds '{foreign}', which is not part of a"):
            write_corpus(tmp_path, sizes={"train": 5}, seed=2, replace=True)
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("document", [None, "{", "[]", '{"format": "another"}'])
    def test_with_a_corpus_of_the_user_is_never_replaced(
        self, document: str | None, tmp_path: Path
    ) -> None:
        for name in ("train.en", "train.de"):
            (tmp_path / name).write_text("mine\n")
        if document is not None:
            (tmp_path / "generated.json").write_text(document)
        before = contents(tmp_path)
        with pytest.raises(FileExistsError, match="which is not part of a generated corpus"):
            write_corpus(tmp_path, sizes={"train": 5}, replace=True)
        assert contents(tmp_path) == before

    def test_that_is_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.touch()
        with pytest.raises(FileExistsError, match="is a file; a generated corpus needs a folder"):
            write_corpus(path, sizes={"train": 5}, replace=True)


def test_tells_how_far_it_is(tmp_path: Path) -> None:
    stages: list[tuple[str, int, int | None]] = []
    write_corpus(
        tmp_path, sizes={"train": 1500, "test": 2}, on_stage=lambda *stage: stages.append(stage)
    )
    assert stages == [
        ("generating train", 0, 1500),
        ("generating train", 1000, 1500),
        ("generating train", 1500, 1500),
        ("generating test", 0, 2),
        ("generating test", 2, 2),
    ]


def test_unknown_split(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown split 'dev'; choose one of train, valid, test"):
        write_corpus(tmp_path, sizes={"dev": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="train must have at least 1 pair, got 0"):
        write_corpus(tmp_path, sizes={"train": 0})
    assert list(tmp_path.iterdir()) == []
