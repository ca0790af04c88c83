"""Prepared corpora are read back pair by pair; files that contradict each other are refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from relakit.data import prepared_reader
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.data.tokenizer import learn_tokenizer

PAIRS = [("A dog.", "Ein Hund."), ("Two dogs run.", "Zwei Hunde laufen."), ("Go", "Geh")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    files = ParallelFiles(path)
    settings = PrepareSettings(vocab_size=320, source_language="en", target_language="de")
    splits = {"train": files, "valid": files, "test": files, "extra-1": files}
    prepare(splits, tmp_path / "out", settings=settings)
    return tmp_path / "out"


def test_pairs_come_back(folder: Path) -> None:
    corpus = PreparedCorpus.load(folder)
    assert corpus.splits == ("train", "valid", "test", "extra-1")
    assert (corpus.source_language, corpus.target_language) == ("en", "de")
    for name in corpus.splits:
        split = corpus.split(name)
        assert (split.name, len(split)) == (name, len(PAIRS))
        decode = corpus.tokenizer.decode
        read = [(decode(split.source(i)), decode(split.target(i))) for i in range(len(split))]
        assert read == PAIRS
        assert split.source(0).dtype == np.int64


def test_in_reverse_the_sides_change_places(folder: Path) -> None:
    corpus, usual = PreparedCorpus.load(folder, reverse=True), PreparedCorpus.load(folder)
    assert (corpus.source_language, corpus.target_language) == ("de", "en")
    split, decode = corpus.train, corpus.tokenizer.decode
    read = [(decode(split.source(i)), decode(split.target(i))) for i in range(len(split))]
    assert read == [(target, source) for source, target in PAIRS]
    assert (
        split.counts.source_tokens == usual.train.counts.target_tokens == split.source_lengths.sum()
    )
    assert (
        split.counts.target_tokens == usual.train.counts.source_tokens == split.target_lengths.sum()
    )
    assert corpus.fingerprint != usual.fingerprint


def test_the_usual_splits_have_names_of_their_own(folder: Path) -> None:
    corpus = PreparedCorpus.load(folder)
    assert [split.name for split in (corpus.train, corpus.valid, corpus.test)] == [
        "train",
        "valid",
        "test",
    ]


def test_lengths_are_those_of_the_sentences(folder: Path) -> None:
    split = PreparedCorpus.load(folder).train
    assert list(split.source_lengths) == [len(split.source(i)) for i in range(len(split))]
    assert list(split.target_lengths) == [len(split.target(i)) for i in range(len(split))]


def test_tokens_stay_in_their_file(folder: Path) -> None:
    tokens = PreparedCorpus.load(folder).train.source_side.tokens
    assert isinstance(tokens.base, np.memmap)


@pytest.mark.parametrize("index", [-1, 3])
def test_a_pair_that_is_not_there(folder: Path, index: int) -> None:
    split = PreparedCorpus.load(folder).train
    for read in (split.source, split.target):
        with pytest.raises(IndexError, match=f"train has 3 pairs, there is no pair {index}"):
            read(index)


def test_a_split_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ValueError, match="has no split 'dev', it has train, valid, test, extra-1"):
        PreparedCorpus.load(folder).split("dev")


def test_the_tokenizer_of_another_corpus(folder: Path) -> None:
    path = folder / "tokenizer.json"
    learn_tokenizer(["other words"], 300).save(path)
    document = json.loads((folder / "corpus.json").read_text())
    document["files"]["tokenizer.json"] = path.stat().st_size
    (folder / "corpus.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is not the tokenizer that this"):
        PreparedCorpus.load(folder)


@pytest.mark.parametrize("values", [[1, 3, 7, 9], [0, 3, 2, 9], [0, 0, 5, 9]])
def test_offsets_that_do_not_grow(folder: Path, values: list[int]) -> None:
    path = folder / "train.source.offsets"
    end = int(np.fromfile(path, dtype="<i8")[-1])
    np.array([*values[:-1], end], dtype="<i8").tofile(path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is damaged: its offsets"):
        PreparedCorpus.load(folder).split("train")


@pytest.mark.parametrize("wrong", [0, 3, 320, 65535])
def test_ids_that_no_token_has(folder: Path, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_reader, "CHECKED_AT_ONCE", 2)
    corpus = PreparedCorpus.load(folder)
    place = int(corpus.train.target_side.offsets[1]) + 1  # the second token of sentence 2
    path = folder / "train.target.tokens"
    tokens = np.fromfile(path, dtype="<u2")
    tokens[place] = wrong
    tokens.tofile(path)
    last = corpus.tokenizer.size - 1
    with pytest.raises(ValueError, match="damaged") as caught:
        PreparedCorpus.load(folder).split("train")
    assert str(caught.value) == (
        f"{path} is damaged: number {place + 1}, in sentence 2, is the token id {wrong:,}; ids of "
        f"the tokenizer's words are 4 to {last}; prepare the corpus again"
    )


def test_a_sentence_longer_than_the_corpus_allows(folder: Path) -> None:
    document = json.loads((folder / "corpus.json").read_text())
    document["settings"]["max_tokens"] = 2
    (folder / "corpus.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"sentence \d has \d+ tokens, corpus\.json allows 2; pre"):
        PreparedCorpus.load(folder).split("train")


def test_offsets_of_more_tokens_than_there_are(folder: Path) -> None:
    path = folder / "train.source.offsets"
    offsets = np.fromfile(path, dtype="<i8")
    offsets[-1] += 1
    offsets.tofile(path)
    expected = rf"train\.source\.tokens has {offsets[-1] - 1} numbers where {offsets[-1]} were exp"
    with pytest.raises(ValueError, match=expected):
        PreparedCorpus.load(folder).split("train")
