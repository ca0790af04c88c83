"""Pairs that wait for their attention."""

import pytest

from relakit.analysis.analysis_pairs import AnalysisPair
from relakit.analysis.encoded_pairs import EncodedPairs
from relakit.data.tokenizer import Tokenizer


def test_pairs_are_read_one_by_one_and_taken_once(tokenizer: Tokenizer) -> None:
    pairs = [AnalysisPair.from_texts(*texts) for texts in [("a b.", "c"), ("", "d e")]]
    encoded: EncodedPairs[AnalysisPair] = EncodedPairs(tokenizer)
    tokens = encoded.read(iter(pairs))
    assert next(tokens) == (tokenizer.encode("a b.").ids, tokenizer.encode("c").ids)
    with pytest.raises(KeyError):
        encoded.take(1)  # not read yet
    assert next(tokens)[1] == tokenizer.encode("d e").ids
    second, first = encoded.take(1), encoded.take(0)
    assert (first.pair, second.pair) == tuple(pairs)
    assert list(first.source_spans) == list(tokenizer.encode("a b.").spans)
    assert set(first.source_words.tolist()) == {0, 1, 2}
    assert second.source_words.size == 0
    with pytest.raises(KeyError):
        encoded.take(0)
