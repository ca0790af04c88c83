"""Sentences in which every source word has a known counterpart, or none, for layers to learn.

The target is the source backwards, with words that come from nowhere in between.
"""

from random import Random

from relakit.analysis.gold import GoldAlignment
from relakit.analysis.pairs import AnalysisPair
from relakit.data.tokenizer import Tokenizer, learn_tokenizer

WORDS = ("dog", "bird", "tree", "house", "river", "stone", "cloud", "night", "song", "bread")
FILLERS = ("um", "ah")
"""Target words without a source"""


def planted_tokenizer() -> Tokenizer:
    return learn_tokenizer([" ".join((*WORDS, *FILLERS))] * 3, vocab_size=300)


def planted_pairs(count: int, seed: int = 0) -> list[AnalysisPair]:
    random = Random(seed)
    pairs = []
    for _ in range(count):
        source = random.sample(WORDS, random.randint(2, 6))
        target: list[str] = []
        links = set()
        for place in reversed(range(len(source))):
            if random.random() < 0.3:
                target.append(random.choice(FILLERS))
            links.add((place, len(target)))
            target.append(source[place])
        pairs.append(linked(" ".join(source), " ".join(target), links))
    return pairs


def linked(source: str, target: str, links: set[tuple[int, int]]) -> AnalysisPair:
    plain = AnalysisPair.from_texts(source, target)
    gold = GoldAlignment(frozenset(links))
    return AnalysisPair(source, target, plain.source_words, plain.target_words, gold)


def null_words(pair: AnalysisPair) -> set[int]:
    """The target's words without a source."""
    return {number for number, word in enumerate(pair.target.split()) if word in FILLERS}
