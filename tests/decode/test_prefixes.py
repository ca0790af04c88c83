"""What may begin a translation, checked against what the tokenizer makes of whole texts."""

import pytest

from relakit.data.tokenizer import END, Tokenizer, learn_tokenizer
from relakit.decode.prefixes import Prefix, make_prefix

TEXTS = (
    "Der kleine Hund läuft über die Brücke.",
    "Die kleinen Hunde laufen; der Kleinste nicht.",
    "Kleider, Kleidung und Kleinigkeiten: über kleine Brücken!",
    "小さな犬が古い橋を渡る。",
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn_tokenizer(TEXTS * 4, vocab_size=420)


def prefix_of(text: str, tokenizer: Tokenizer) -> Prefix:
    prefix = make_prefix(text, tokenizer)
    assert prefix is not None
    return prefix


def follows(prefix: Prefix, tokens: list[int]) -> bool:
    """Whether a search could write these tokens."""
    for place, token in enumerate([*tokens, END]):
        allowed = prefix.allowed(tokens[:place])
        if allowed is not None and token not in allowed:
            return False
    return True


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_can_follow_each_of_its_beginnings(text: str, tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(text).ids
    for end in range(1, len(text) + 1):
        prefix = prefix_of(text[:end], tokenizer)
        assert follows(prefix, tokens), text[:end]
        assert prefix.longest <= end + 1


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_is_shorter_than_its_beginnings(text: str, tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(text).ids
    for end in range(1, len(text) + 1):
        prefix = prefix_of(text[:end], tokenizer)
        assert prefix.shortest <= len(tokens), text[:end]
        assert follows(prefix.within(len(tokens)), tokens), text[:end]


def test_other_texts_cannot(tokenizer: Tokenizer) -> None:
    for written in TEXTS:
        for text in TEXTS:
            for end in range(4, len(text)):
                if not written.startswith(text[:end]):
                    prefix = prefix_of(text[:end], tokenizer)
                    assert not follows(prefix, tokenizer.encode(written).ids)


def test_a_prefix_within_a_word_can_be_completed_by_one_token(tokenizer: Tokenizer) -> None:
    word = tokenizer.encode("Der kleine").ids
    assert len(word) == 2, "the test needs a token for the whole word"
    assert tokenizer.encode("Der klei").ids[:2] != word
    prefix = prefix_of("Der klei", tokenizer)
    assert prefix.allowed([]) == word[:1]
    assert word[1] in (prefix.allowed(word[:1]) or ())
    assert prefix.allowed(word) is None


def test_a_space_at_the_end_completes_the_word(tokenizer: Tokenizer) -> None:
    whole = tokenizer.encode("Der kleine").ids
    prefix = prefix_of("Der kleine ", tokenizer)
    following = prefix.allowed(whole)
    assert following is not None
    assert END in following
    assert {tokenizer.tokens[id][0] for id in following if id != END} == {"\u0120"}
    assert not follows(prefix, tokenizer.encode("Der kleinen Hunde").ids)
    assert not follows(prefix, tokenizer.encode("Der kleine, der").ids)
    assert follows(prefix, tokenizer.encode("Der kleine Hund").ids)
    assert follows(prefix, whole)


def test_before_the_prefix_is_written_nothing_may_end(tokenizer: Tokenizer) -> None:
    prefix = prefix_of("Der kleine", tokenizer)
    assert END not in (prefix.allowed([]) or [END])
    assert not follows(prefix, tokenizer.encode("Der").ids)
    assert follows(prefix, tokenizer.encode("Der kleine").ids)


def test_spaces_and_compositions_do_not_matter(tokenizer: Tokenizer) -> None:
    assert make_prefix("  die   Bru\u0308", tokenizer) == make_prefix("die Br\u00fc", tokenizer)


@pytest.mark.parametrize("text", ["", " ", "\t \u3000"])
def test_nothing_to_begin_with(text: str, tokenizer: Tokenizer) -> None:
    assert make_prefix(text, tokenizer) is None


def test_what_has_left_the_prefix_is_not_held_back(tokenizer: Tokenizer) -> None:
    assert prefix_of("Der", tokenizer).allowed([END + 1, END + 2]) is None
