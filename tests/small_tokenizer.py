"""A tokenizer of few pieces, learned from the generated corpus."""

from functools import cache

from relakit.data.generated import generate_pairs
from relakit.data.tokenizer import Tokenizer, learn_tokenizer


@cache
def small_tokenizer() -> Tokenizer:
    """So small that most words have several tokens."""
    pairs = generate_pairs(300)
    return learn_tokenizer([t for p in pairs for t in (p.source_text, p.target_text)], 400)
