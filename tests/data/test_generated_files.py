from pathlib import Path

import pytest

from relakit.data.generated import corpus_files, generate_pairs, plant_noise, write_corpus


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_files_hold_what_was_generated(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "corpus"
    written = write_corpus(folder, sizes={"train": 300, "valid": 20, "test": 10}, seed=4)
    assert sorted(written) == sorted(folder.iterdir())
    assert len(written) == 15
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


def test_noise_goes_into_the_training_split(tmp_path: Path) -> None:
    write_corpus(tmp_path, sizes={"train": 200, "valid": 50}, seed=4, noise_share=0.3)
    pairs = list(plant_noise(generate_pairs(200, seed=4), share=0.3, seed=4))
    assert lines(tmp_path / "train.noise") == [pair.noise or "clean" for pair in pairs]
    assert lines(tmp_path / "train.de") == [pair.target_text for pair in pairs]
    valid = generate_pairs(50, seed=4, split="valid")
    assert lines(tmp_path / "valid.de") == [pair.target_text for pair in valid]
    assert not (tmp_path / "valid.noise").exists()

    write_corpus(tmp_path, sizes={"train": 10}, seed=4)
    assert not (tmp_path / "train.noise").exists()


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpus(tmp_path, sizes={"train": 10}, seed=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def broken(*args: object, **kwargs: object) -> object:
        yield next(generate_pairs(1))
        raise OSError("disk full")

    monkeypatch.setattr(corpus_files, "generate_pairs", broken)
    with pytest.raises(OSError, match="disk full"):
        write_corpus(tmp_path, sizes={"train": 10}, seed=2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_unknown_split(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got 'dev'"):
        write_corpus(tmp_path, sizes={"dev": 3})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
