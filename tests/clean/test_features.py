"""The numbers of one pair, from weights and losses that are made up."""

import math
from dataclasses import replace

import numpy as np
import pytest

from relakit.align.choice import AlignmentChoice, ChosenOn
from relakit.broken_model import BrokenModelError
from relakit.clean.columns import COLUMNS, header_line, row_line
from relakit.clean.features import (
    LinkedWords,
    PairFeatures,
    PairSide,
    ReverseView,
    Word,
    WordLinks,
    WorstToken,
    attention_mass,
    pair_features,
    same_words,
    unreached_words,
    worst_span_loss,
    worst_token,
)
from relakit.clean.unsupported import USUAL_MARGIN
from relakit.data.languages import LanguagePair
from relakit.data.parallel_files import NumberedPair
from relakit.data.tokenizer import Tokenizer, learn_tokenizer

PAIR = NumberedPair(7, "old dogs bark", "alte Hunde  bellen !")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """So small that each token is a letter or two."""
    return learn_tokenizer(["x"], 260)


@pytest.fixture(scope="module")
def sides(tokenizer: Tokenizer) -> tuple[PairSide, PairSide]:
    source, target = (PairSide.of(tokenizer, text, 100) for text in PAIR.texts)
    return source, target


def blank_weights(sides: tuple[PairSide, PairSide], heads: int = 1) -> np.ndarray:
    source, target = sides
    return np.zeros((heads, len(target.ids) + 1, len(source.ids) + 1), dtype=np.float32)


UNLINKED, LINKED = USUAL_MARGIN[1]


def surprise(sides: tuple[PairSide, PairSide]) -> np.ndarray:
    """Margins of a model that expected something else throughout."""
    return np.full(len(sides[1].ids) + 1, LINKED + 2)


def tokens_of(side: PairSide, word: int) -> list[int]:
    return [token for token, of in enumerate(side.words) if of == word]


def unreached(
    weights: np.ndarray, margins: np.ndarray, sides: tuple[PairSide, PairSide], shift: int = 0
) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    linked = LinkedWords.of_heads(weights, *sides, shift=shift)
    found = unreached_words(linked, margins, *sides)
    is_any = bool(found.unsupported)
    assert is_any == (found.unsupported_share > 0.1)
    return found.unsupported, found.uncovered


class TestWords:
    def test_nothing_is_reached_by_zeros(self, sides: tuple[PairSide, PairSide]) -> None:
        unsupported, uncovered = unreached(blank_weights(sides), surprise(sides), sides)
        assert list(map(str, unsupported)) == ["0:alte", "1:Hunde", "2:bellen", "3:!"]
        assert list(map(str, uncovered)) == ["0:old", "1:dogs", "2:bark"]

    @pytest.mark.parametrize("shift", [0, 1])
    def test_one_token_of_a_word_is_enough(
        self, sides: tuple[PairSide, PairSide], shift: int
    ) -> None:
        source, target = sides
        weights = blank_weights(sides, heads=2)
        weights[1, tokens_of(target, 1)[-1] + shift, tokens_of(source, 2)[0]] = 1e-30
        linked = LinkedWords.of_heads(weights, *sides, shift=shift)
        assert linked == LinkedWords(source={2}, target={1})
        _, uncovered = unreached(weights, surprise(sides), sides, shift)
        assert [word.index for word in uncovered] == [0, 1]

    def test_an_expected_word_needs_no_support(self, sides: tuple[PairSide, PairSide]) -> None:
        _, target = sides
        margins = np.zeros(len(target.ids) + 1)
        margins[-1] = margins[tokens_of(target, 1)[-1]] = UNLINKED + 20
        unsupported, uncovered = unreached(blank_weights(sides), margins, sides)
        assert [word.index for word in unsupported] == [1], "one token of a word is enough"
        assert len(uncovered) == 3

    def test_words_without_a_token_are_neither(self, sides: tuple[PairSide, PairSide]) -> None:
        """As where a piece reaches over two words."""
        source, target = sides
        words = np.where(target.words == 1, 2, target.words)
        both = source, replace(target, words=words)
        unsupported, _ = unreached(blank_weights(both), 2 * surprise(both), both)
        assert [word.index for word in unsupported] == [0, 2, 3]

    def test_a_link_is_support(self, sides: tuple[PairSide, PairSide]) -> None:
        weights = blank_weights(sides)
        weights[:, :, 0] = 1.0
        assert unreached(weights, surprise(sides), sides)[0] == ()

    def test_a_link_of_the_reverse_model_is_support(self, sides: tuple[PairSide, PairSide]) -> None:
        _, target = sides
        linked = LinkedWords(source=set(), target=set())
        margins = surprise(sides)
        all_words = set(range(4))

        def unsupported(reverse: WordLinks) -> list[int]:
            found, _, uncovered = unreached_words(linked, margins, *sides, reverse)
            assert len(uncovered) == 3, "as the forward model sees it"
            return [word.index for word in found]

        assert unsupported(WordLinks(all_words, set())) == [0, 1, 2, 3]
        assert unsupported(WordLinks(all_words, all_words)) == []
        margins[[*tokens_of(target, 0), *tokens_of(target, 1)]] = 0
        margins[[*tokens_of(target, 2), *tokens_of(target, 3)]] *= 2
        assert unsupported(WordLinks(all_words, {0, 1})) == [2, 3]

    def test_words_that_the_reverse_model_did_not_see(
        self, sides: tuple[PairSide, PairSide]
    ) -> None:
        """As its tokens are others, and too many: it has no say about them."""
        linked = LinkedWords(source=set(), target=set())
        margins = np.full(len(sides[1].ids) + 1, 6.5)
        for asked, expected in ((set(range(4)), 4), (set(), 0)):
            found = unreached_words(linked, margins, *sides, WordLinks(asked, set()))
            assert len(found.unsupported) == expected
        assert unreached_words(linked, margins, *sides).unsupported == ()

    def test_the_end_of_the_source_supports_nothing(self, sides: tuple[PairSide, PairSide]) -> None:
        weights = blank_weights(sides)
        weights[:, :, -1] = 1.0
        unsupported, _ = unreached(weights, surprise(sides), sides)
        assert len(unsupported) == 4

    def test_the_end_of_the_target_covers_nothing(self, sides: tuple[PairSide, PairSide]) -> None:
        weights = blank_weights(sides)
        weights[:, -1] = 1.0
        _, uncovered = unreached(weights, surprise(sides), sides)
        assert len(uncovered) == 3

    def test_words_after_a_crop_are_neither(self, tokenizer: Tokenizer) -> None:
        source, target = (PairSide.of(tokenizer, text, 4) for text in PAIR.texts)
        assert source.is_cropped
        both = source, target
        unsupported, uncovered = unreached(blank_weights(both), 5 * surprise(both), both)
        assert [word.index for word in unsupported] == [0]
        assert [word.text for word in uncovered] in (["old"], ["old", "dogs"])

    def test_endless_text_keeps_its_words(self, tokenizer: Tokenizer) -> None:
        side = PairSide.of(tokenizer, " old \t dogs " * 50_000, 9)
        assert len(side.ids) == 9
        assert side.is_cropped
        assert side.word(0) == Word(0, "old")
        assert side.word(1) == Word(1, "dogs")


def test_mass() -> None:
    weights = np.zeros((2, 2, 3, 4), dtype=np.float32)
    weights[0, 0, 0] = [1, 0, 0, 2]
    weights[1, 1, 2] = [-0.5, 0, 0, 0]
    assert attention_mass(weights) == pytest.approx(3.5 / 12)


def test_mass_does_not_depend_on_memory() -> None:
    draw = np.random.default_rng(1)
    large = draw.random((2, 3, 40, 50), dtype=np.float32)
    view = large[:, :, :17, :23]
    assert attention_mass(view) == attention_mass(view.copy())


class TestWorstToken:
    def test_a_token_and_its_word(self, sides: tuple[PairSide, PairSide]) -> None:
        _, target = sides
        losses = np.linspace(0, 1, len(target.ids) + 1)
        losses[tokens_of(target, 1)[0]] = losses[tokens_of(target, 2)[0]] = 9.5
        worst = worst_token(losses, target)
        assert (worst.loss, worst.word) == (9.5, Word(1, "Hunde"))
        assert "Hunde".startswith(worst.token)

    def test_the_end(self, sides: tuple[PairSide, PairSide]) -> None:
        _, target = sides
        worst = worst_token(np.linspace(0, 1, len(target.ids) + 1), target)
        assert (worst.loss, worst.token, worst.word) == (1.0, "</s>", None)


def features(
    sides: tuple[PairSide, PairSide], *, choice: AlignmentChoice | None = None,
    reverse: ReverseView | None = None, sums_to_one: bool = False, weight: float = 0.25,
    links: np.ndarray | None = None,
) -> PairFeatures:  # fmt: skip
    """Two layers of two heads; only head 1 of layer 1 attends, to the first source token."""
    weights = np.stack([blank_weights(sides, heads=2)] * 2)
    weights[1, 1, 1:, 0] = weight
    losses = np.full(weights.shape[2], 6.5)
    languages = LanguagePair.learn(["old dogs"], ["alte Hunde"]).log_odds(*PAIR.texts)
    return pair_features(
        PAIR, *sides, weights, losses, surprise(sides),
        choice=choice, links=links, sums_to_one=sums_to_one, languages=languages, reverse=reverse,
    )  # fmt: skip


def test_all_of_a_pair(sides: tuple[PairSide, PairSide]) -> None:
    found = features(sides, reverse=ReverseView(np.array([9.0, 3.0, 1.0, 2.0, 2.5, 0.5])))
    queries = len(sides[1].ids) + 1
    assert found.null_rate == (3 * queries + 1) / (4 * queries)
    assert found.alignment_null_rate is None
    assert found.attention_mass == pytest.approx(0.25 * (queries - 1) / (4 * queries))
    assert found.unsupported == ()
    assert [word.text for word in found.uncovered] == ["dogs", "bark"]
    assert (found.cross_entropy, found.reverse_cross_entropy) == (6.5, 3.0)
    assert found.dual_cross_entropy == 3.5 + 4.75
    assert (found.worst_span_loss, found.end_loss) == (6.5, 6.5)
    assert found.reverse_worst_span_loss == (9.0 + 3.0 + 1.0 + 2.0 + 2.5) / 5
    assert (found.source_words, found.target_words, found.same_words) == (3, 4, 0)
    assert found.word_ratio == pytest.approx(4 / 3)
    assert found.character_ratio == pytest.approx(16 / 11)
    assert found.source_language is not None


def test_words_that_an_alignment_layer_links(sides: tuple[PairSide, PairSide]) -> None:
    """A word with some weight has no link if it fits nothing best."""
    source, target = sides
    links = blank_weights(sides)[0]
    links[tokens_of(target, 0)[0], tokens_of(source, 0)[0]] = 3.0
    links[tokens_of(target, 1)[0], tokens_of(source, 0)[0]] = 2.0
    links[tokens_of(target, 2)[-1], tokens_of(source, 2)[-1]] = 0.1
    assert LinkedWords.of_layer(links, source, target) == LinkedWords({0, 2}, {0, 2})
    found = features(sides, links=links)
    assert list(map(str, found.uncovered)) == ["1:dogs"]
    assert found.alignment_null_rate == 2 / 4


def test_a_cropped_target_has_no_end(tokenizer: Tokenizer) -> None:
    """The text goes on there, so that no model expects its end."""
    source, target = (
        PairSide.of(tokenizer, PAIR.source, 100),
        PairSide.of(tokenizer, PAIR.target, 6),
    )
    losses = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 50.0])
    weights = np.ones((1, 1, len(losses), len(source.ids) + 1), dtype=np.float32)
    found = pair_features(
        PAIR, source, target, weights, losses, np.zeros_like(losses),
        choice=None, sums_to_one=False, languages=None, reverse=None,
    )  # fmt: skip
    assert found.cross_entropy == 9 / 6
    assert (found.worst.loss, found.worst.word) == (3.0, Word(0, "alte"))
    assert found.worst_span_loss == 8 / 5
    assert found.end_loss is None


@pytest.mark.parametrize(
    ("losses", "expected"),
    [([4.0], 4.0), ([1.0, 3.0], 2.0), ([0, 0, 1, 1, 1, 1, 1, 0], 1.0), ([9, 0, 0, 0, 0, 5], 1.8)],
)
def test_the_worst_span(losses: list[float], expected: float) -> None:
    assert worst_span_loss(np.array(losses, dtype=float)) == pytest.approx(expected)


def test_same_words() -> None:
    assert (
        same_words(["in", "Berlin", ",", "in", "1999"], ["in", "in", "in", "Berlin", "1999"]) == 4
    )
    assert same_words(["a"], ["b"]) == 0


@pytest.mark.parametrize(("layer", "head", "rate"), [(1, 1, None), (0, 0, 1.0), (1, 0, 1.0)])
def test_the_heads_that_align(
    sides: tuple[PairSide, PairSide], layer: int, head: int, rate: float | None
) -> None:
    choice = AlignmentChoice(
        layer=layer, heads=(head,), reading="shifted", chosen=ChosenOn(by="given")
    )
    found = features(sides, choice=choice)
    expected = 1 / (len(sides[1].ids) + 1) if rate is None else rate
    assert found.alignment_null_rate == expected
    assert len(found.unsupported) == (0 if rate is None else 4)


def test_weights_that_sum_to_one(sides: tuple[PairSide, PairSide]) -> None:
    assert features(sides, sums_to_one=True).attention_mass == 1.0


def test_a_broken_model(sides: tuple[PairSide, PairSide]) -> None:
    with pytest.raises(BrokenModelError, match="the model computes NaN or infinity in pair 7: its"):
        features(sides, weight=math.nan)


def test_rows(sides: tuple[PairSide, PairSide]) -> None:
    names = header_line().rstrip("\n").split("\t")
    cells = row_line(7, features(sides)).rstrip("\n").split("\t")
    row = dict(zip(names, cells, strict=True))
    assert names[0] == "line"
    assert (row["line"], row["uncovered"]) == ("7", "1:dogs 2:bark")
    assert (row["word_ratio"], row["dual_cross_entropy"]) == ("1.333333", "")
    assert row_line(8, None) == "8" + "\t" * len(COLUMNS) + "\n"


@pytest.mark.parametrize("separator", ["\t", "\n", "\r", "\r\n"])
def test_a_token_with_a_separator_stays_one_cell(
    sides: tuple[PairSide, PairSide], separator: str
) -> None:
    worst = WorstToken(2.0, f"of{separator}the", Word(0, "of"))
    line = row_line(7, replace(features(sides), worst=worst))
    assert line.splitlines(keepends=True) == [line]
    row = dict(zip(header_line().split("\t"), line.split("\t"), strict=True))
    assert row["worst_token"] == f"of{' ' * len(separator)}the"
