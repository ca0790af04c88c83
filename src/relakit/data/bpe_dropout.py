"""BPE-dropout (Provilkov et al., 2020): splits words at random into other tokens in training.

A BPE splits a word into characters or bytes and joins pairs of them, the most frequent first. With
dropout, each pair that could be joined is skipped with some probability at every step, so that a
model sees a word split in many ways. The text is not needed: it follows from the token ids.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from relakit.data.prepared_format import Side
from relakit.data.token_spans import SPACE_MARK
from relakit.data.tokenizer import Tokenizer

Sentences: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""The concatenated tokens of some sentences, and the length of each."""

_SPACE_MARKS: Final = ("\u0120", SPACE_MARK)
_MOST_WORDS: Final = 1 << 19
"""Most words remembered with their pieces: the vocabulary of a language, and some tens of MB."""


class BpeDropout:
    """Splits sentences into new tokens; the same random numbers give the same tokens.

    Args:
        tokenizer: the tokenizer that encoded the sentences, a BPE.
        rate: how often a pair that could be joined is skipped, from 0 to 1.
    """

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        model = json.loads(tokenizer.to_json())["model"]
        if model["type"] != "BPE":
            raise ValueError(
                f"BPE-dropout needs a BPE, but the tokenizer's model is {model['type']}; set "
                "data.bpe_dropout to 0, or use another tokenizer"
            )
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"the rate of BPE-dropout must be from 0 to 1, got {rate}")
        self._tokenizer = tokenizer
        self._rate = rate
        self._ids: dict[str, int] = model["vocab"]
        self._joined = {
            (self._ids[left], self._ids[right]): (rank, self._ids[left + right])
            for rank, (left, right) in enumerate(model["merges"])
        }
        self._begins_word = {
            id for token, id in self._ids.items() if token.startswith(_SPACE_MARKS)
        }
        self._pieces: dict[tuple[int, ...], list[list[int]] | None] = {}

    def split_anew(self, ids: Sequence[int], random: Random) -> list[int]:
        """New tokens for the same text."""
        found: list[int] = []
        start = 0
        for place in range(1, len(ids) + 1):
            if place < len(ids) and ids[place] not in self._begins_word:
                continue
            word = tuple(ids[start:place])
            start = place
            pieces = self._pieces_of(word)
            if pieces is None:
                found += word
            else:
                for piece in pieces:
                    found += self._join(piece, self._rate, random)
        return found

    def __call__(self, sentences: Sentences, random: Random) -> Sentences:
        """Split many sentences into new tokens, one after the other."""
        tokens, lengths = sentences
        found = [
            self.split_anew(ids.tolist(), random)
            for ids in np.split(tokens, np.cumsum(lengths)[:-1])
        ]
        new_lengths = np.array([len(ids) for ids in found], dtype=np.int64)
        new_tokens = np.fromiter((id for ids in found for id in ids), dtype=np.int64)
        return new_tokens, new_lengths

    def _pieces_of(self, word: tuple[int, ...]) -> list[list[int]] | None:
        """The single characters or bytes of a word, for each part that is joined separately.

        None for a word that cannot be split: it has unknown characters, or was cut off.
        """
        if word not in self._pieces:
            if len(self._pieces) >= _MOST_WORDS:
                self._pieces.clear()
            self._pieces[word] = self._find_pieces(word)
        return self._pieces[word]

    def _find_pieces(self, word: tuple[int, ...]) -> list[list[int]] | None:
        pieces = []
        for spelling in self._tokenizer.spelled_parts(word):
            ids = [self._ids.get(character, -1) for character in spelling]
            if -1 in ids:
                return None
            pieces.append(ids)
        whole = [id for piece in pieces for id in self._join(piece, 0.0, Random(0))]
        return pieces if tuple(whole) == word else None

    def _join(self, piece: Sequence[int], rate: float, random: Random) -> list[int]:
        """Join pairs in order of rank, skipping each at random with ``rate`` at every step."""
        ids, joined, draw = list(piece), self._joined, random.random
        while len(ids) > 1:
            best, place = None, 0
            for left in range(len(ids) - 1):
                pair = joined.get((ids[left], ids[left + 1]))
                # A number is drawn only where it matters, which changes no probability.
                if pair is None or (best is not None and pair >= best):
                    continue
                if not rate or draw() >= rate:
                    best, place = pair, left
            if best is None:
                break
            ids[place : place + 2] = [best[1]]
        return ids


class SplitAnew:
    """BPE-dropout for the two sides of a training corpus."""

    def __init__(
        self, source: Tokenizer, target: Tokenizer, *, source_rate: float, target_rate: float
    ) -> None:
        self._dropouts: dict[Side, BpeDropout] = {}
        if source_rate:
            self._dropouts["source"] = BpeDropout(source, source_rate)
        if target_rate:
            self._dropouts["target"] = BpeDropout(target, target_rate)

    def __call__(self, side: Side, sentences: Sentences, seed: str) -> Sentences:
        """Split sentences of one side; the seed decides everything."""
        if side not in self._dropouts:
            return sentences
        # Random hashes a string seed with SHA-512: the same on every machine.
        return self._dropouts[side](sentences, Random(f"{seed} {side}"))
