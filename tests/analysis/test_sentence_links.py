"""The links of a whole test set: every pair in its order, and as lines that are read back."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from relakit.analysis import (
    READINGS,
    analyze_models,
    capture_cross_attention,
    generated_gold_pair,
    links_of,
    read_pharaoh,
    word_weights,
)
from relakit.analysis.pair_batches import EncodedPairs
from relakit.analysis.sentence_links import LinkTotals
from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer
from relakit.decode.translator import Translator
from relakit.model import Transformer

PAIRS = [generated_gold_pair(pair) for pair in generate_pairs(7, split="test")]


def test_links_of_every_pair_as_pharaoh_lines(
    make_model: Callable[[str], Transformer], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """Against links found pair by pair, from weights that were captured separately."""
    translator = Translator(make_model("rela-g"), tokenizer)
    [analyzed] = analyze_models({"m": translator}, PAIRS, explored=1, translate=False)
    assert analyzed.links is not None
    expected: dict[tuple[int, int, int, int], frozenset[tuple[int, int]]] = {}
    encoded = EncodedPairs(tokenizer)
    for attention in capture_cross_attention(translator.model, encoded.read(PAIRS)):
        pair = encoded.take(attention.index)
        for layer, heads in enumerate(attention.weights):
            for head, weights in enumerate([*heads, heads.mean(0)]):
                for first, _ in enumerate(READINGS):
                    words = word_weights(
                        weights[first : first + len(pair.target_words), :-1],
                        pair.target_words,
                        pair.source_words,
                        target_count=len(pair.pair.target_words),
                        source_count=len(pair.pair.source_words),
                    )
                    expected[first, layer, head, attention.index] = links_of(words)
    path = tmp_path / "links.pharaoh"
    for first, reading in enumerate(READINGS):
        for layer, head in np.ndindex(2, 4):
            lines = analyzed.links.pharaoh(reading, layer, head)
            path.write_text("".join(f"{line}\n" for line in lines))
            found = [gold.sure for gold in read_pharaoh(path)]
            assert found == [expected[first, layer, head, n] for n in range(len(PAIRS))]


def test_pairs_come_in_any_order_and_without_words() -> None:
    totals = LinkTotals()
    links = {
        2: [[[[0, -1, 4]]], [[[1, 1, 1]]]],
        0: [[[[3]]], [[[-1]]]],
        1: np.zeros((2, 1, 1, 0)),
    }
    for index, of_pair in links.items():
        totals.add(index, np.array(of_pair, dtype=np.int64))
    result = totals.result()
    assert result is not None
    assert list(result.pharaoh("normal", 0, 0)) == ["3-0", "", "0-0 4-2"]
    assert list(result.pharaoh("shifted", 0, 0)) == ["", "", "1-0 1-1 1-2"]


def test_too_many_links_are_not_kept_in_part() -> None:
    totals = LinkTotals(most_bytes=24)
    links = np.zeros((2, 1, 1, 3), dtype=np.int64)  # 12 bytes
    totals.add(0, links)
    totals.add(1, links)
    assert totals.result() is not None
    totals.add(2, links)
    assert totals.result() is None
    totals.add(3, links[..., :0])
    assert LinkTotals().result() is None
