"""BPE-dropout: the same text in other tokens, with the probabilities of its definition."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from relakit.data.batches import collate, collate_anew
from relakit.data.bpe_dropout import BpeDropout, SplitAnew
from relakit.data.imported_tokenizer import import_tokenizer
from relakit.data.parallel_files import ParallelFiles
from relakit.data.prepared_reader import EncodedSplit, PreparedCorpus
from relakit.data.prepared_writer import PrepareSettings, prepare
from relakit.data.tokenizer import UNKNOWN, Tokenizer, learn_tokenizer, parse_tokenizer

LINES = [
    "The dogs run, and the cats sleep.", "Die Hunde laufen, und die Katzen schlafen!",
    "Привет, мир!", "こんにちは 世界。", "«Déjà vu», été…", "isn't it?! 3½ 😀",
]  # fmt: skip
FILES = Path(__file__).parent / "sentencepiece"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn_tokenizer(LINES * 20, 500)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> EncodedSplit:
    folder = tmp_path_factory.mktemp("dropout")
    pairs = zip(LINES * 5, LINES[::-1] * 5, strict=True)
    (folder / "train.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    files = {"train": ParallelFiles(folder / "train.tsv")}
    prepare(files, folder / "out", settings=PrepareSettings(), tokenizer=tokenizer)
    return PreparedCorpus.load(folder / "out").train


def tiny_bpe() -> Tokenizer:
    """A BPE that joins a and b, then ab and c."""
    document = json.loads(learn_tokenizer(["x"], 261).to_json())
    vocabulary = document["model"]["vocab"]
    for token in ("ab", "abc"):
        vocabulary[token] = len(vocabulary)
    document["model"]["merges"] = [["a", "b"], ["ab", "c"]]
    return Tokenizer(parse_tokenizer(json.dumps(document)))


def test_probabilities() -> None:
    """Without ab nothing can be joined; with it, abc is joined or not."""
    tokenizer, rate, count = tiny_bpe(), 0.3, 20_000
    ids = tokenizer.encode("abc").ids
    assert [tokenizer.tokens[id] for id in ids] == ["Ġ", "abc"]
    dropout, random = BpeDropout(tokenizer, rate), Random(1)
    found = Counter(
        " ".join(tokenizer.tokens[id] for id in dropout.split_anew(ids, random))
        for _ in range(count)
    )
    assert found.keys() == {"Ġ abc", "Ġ ab c", "Ġ a b c"}
    assert found["Ġ a b c"] / count == pytest.approx(rate, abs=0.015)
    assert found["Ġ ab c"] / count == pytest.approx((1 - rate) * rate, abs=0.015)
    assert found["Ġ abc"] / count == pytest.approx((1 - rate) ** 2, abs=0.015)


def test_the_text_stays(tokenizer: Tokenizer) -> None:
    dropout = BpeDropout(tokenizer, 0.3)
    differing = 0
    for number, line in enumerate(LINES * 10):
        ids = tokenizer.encode(line).ids
        found = dropout.split_anew(ids, Random(number))
        assert tokenizer.decode(found) == tokenizer.decode(ids)
        assert found == dropout.split_anew(ids, Random(number))
        differing += found != ids
    assert differing > 50


def test_no_dropout_and_nothing_but_dropout(tokenizer: Tokenizer) -> None:
    for line in LINES:
        ids = tokenizer.encode(line).ids
        assert BpeDropout(tokenizer, 0.0).split_anew(ids, Random(1)) == ids
        single = BpeDropout(tokenizer, 1.0).split_anew(ids, Random(1))
        assert len(single) == len(tokenizer.normalize(line).encode()) + 1  # and the first space


def test_words_and_marks_stay_apart(tokenizer: Tokenizer) -> None:
    dropout = BpeDropout(tokenizer, 0.2)
    ids = tokenizer.encode("The dogs run, run, run.").ids
    for seed in range(50):
        for id in dropout.split_anew(ids, Random(seed)):
            token = tokenizer.tokens[id].removeprefix("Ġ")
            assert token.isalpha() or not any(map(str.isalpha, token))


def test_words_cut_off_are_left_alone(tokenizer: Tokenizer) -> None:
    """The last character of a truncated sentence may lack bytes."""
    whole = tokenizer.encode("dogs 世").ids
    single = BpeDropout(tokenizer, 1.0).split_anew(whole, Random(1))
    cut = [*tokenizer.encode("dogs").ids, *single[-4:-1]]
    assert BpeDropout(tokenizer, 0.5).split_anew(cut, Random(1))[-3:] == single[-4:-1]


def test_a_bpe_of_sentencepiece() -> None:
    tokenizer = import_tokenizer(FILES / "bpe.model")
    dropout = BpeDropout(tokenizer, 0.3)
    for text in ("The old teacher sees the small dog.", "Привет,  мир!", "emoji 😀 mix"):
        ids = tokenizer.encode(text).ids
        found = [dropout.split_anew(ids, Random(seed)) for seed in range(20)]
        assert {tokenizer.decode(other) for other in found} == {tokenizer.decode(ids)}
        if text.startswith("The"):  # words of other scripts have no pairs to join
            assert len({tuple(other) for other in found}) > 10
        assert {other.count(UNKNOWN) for other in found} == {ids.count(UNKNOWN)}


def test_what_it_cannot_do(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="needs a BPE, but the tokenizer's model is Unigram"):
        BpeDropout(import_tokenizer(FILES / "unigram.model"), 0.1)
    with pytest.raises(ValueError, match=r"must be from 0 to 1, got 1\.5"):
        BpeDropout(tokenizer, 1.5)


def test_batches(split: EncodedSplit, tokenizer: Tokenizer) -> None:
    anew = SplitAnew(tokenizer, tokenizer, source_rate=0.0, target_rate=0.5)
    indices = np.arange(len(split))
    batches = collate_anew(split, indices, anew, seed="1 1 0", batch_tokens=200)
    assert len(batches) > 1
    assert np.array_equal(np.concatenate([batch.indices for batch in batches]), indices)
    plain = collate(split, indices)
    row = 0
    for batch in batches:
        assert max(batch.source.size, batch.target_out.size) <= 200 or len(batch.indices) == 1
        assert batch.target_tokens == np.count_nonzero(batch.target_out)
        for source, target in zip(batch.source, batch.target_out, strict=True):
            assert source[source > 0].tolist() == plain.source[row][plain.source[row] > 0].tolist()
            assert tokenizer.decode(target) == tokenizer.decode(plain.target_out[row])
            row += 1
    assert sum(batch.target_tokens for batch in batches) > plain.target_tokens
    again = collate_anew(split, indices, anew, seed="1 1 0", batch_tokens=200)
    other = collate_anew(split, indices, anew, seed="1 2 0", batch_tokens=200)
    assert all(
        np.array_equal(a.target_in, b.target_in) for a, b in zip(batches, again, strict=True)
    )
    assert sum(b.target_tokens for b in other) != sum(b.target_tokens for b in batches)
