import json
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest
import torch
from model_folders import write_model
from random_models import random_model, random_sources

import relakit
from relakit.data.tokenizer import BEGIN, END, learn_tokenizer
from relakit.decode.native_engine import why_not_native
from relakit.decode.prefixes import make_prefix
from relakit.decode.translator import Translator, choose_dtype, plan_batches
from relakit.model import save_model
from relakit.nn.variants import AttentionSpec
from relakit.ops.native.extension import why_unavailable

LINES = ["A small dog runs.", "", "the old bridge", "  \t", "A dog", "über die alte Brücke!"]
PRECISIONS = [
    "fp32",
    pytest.param("int8", marks=pytest.mark.skipif(bool(why_unavailable()), reason="no C++")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("decode") / "model")


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return relakit.load(folder)


def test_loading_keeps_what_the_directory_tells(translator: Translator) -> None:
    assert (translator.about.source_language, translator.about.target_language) == ("en", "de")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_random_numbers_of_the_user_are_left_alone(folder: Path, precision: str) -> None:
    before = torch.get_rng_state()
    relakit.load(folder, precision=precision).translate(LINES, max_length=8)
    assert torch.equal(torch.get_rng_state(), before)


def test_every_line_has_its_translation(translator: Translator) -> None:
    together = translator.translate(LINES, max_length=8)
    assert together == [translator.translate([line], max_length=8)[0] for line in LINES]
    assert [bool(text) for text in together] == [True, False, True, False, True, True]


def test_size_of_batches_makes_no_difference(translator: Translator) -> None:
    together = translator.translate(LINES * 3, max_length=8)
    assert together == translator.translate(LINES * 3, max_length=8, batch_tokens=1)


def test_nbest(translator: Translator) -> None:
    found = translator.translate_nbest(LINES, nbest=3, max_length=8)
    assert [len(hypotheses) for hypotheses in found] == [3, 1, 3, 1, 3, 3]
    for hypotheses in found:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            assert hypothesis.text == translator.tokenizer.decode(hypothesis.tokens)
            penalty = ((5 + len(hypothesis.tokens) + 1) / 6) ** 0.6
            assert hypothesis.score == pytest.approx(hypothesis.log_probability / penalty)
    best = [hypotheses[0].text for hypotheses in found]
    assert best == translator.translate(LINES, max_length=8)


PREFIXES = ["Ein klei", "", "die alte ", "x", "Br\u00fc", "\u00fcber"]


@pytest.mark.parametrize("options", [{}, {"sample": True, "top_k": 20}], ids=["beam", "sample"])
@pytest.mark.parametrize("reference", [False, True], ids=["usual", "PyTorch"])
def test_translations_begin_with_their_prefixes(
    options: dict[str, object],
    reference: bool,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if reference:
        monkeypatch.setenv("RELAKIT_BACKEND", "reference")
    translator = relakit.load(folder)
    found = translator.translate_nbest(LINES, prefixes=PREFIXES, max_length=8, nbest=2, **options)
    free = translator.translate_nbest(LINES, max_length=8, nbest=2, **options)
    assert found != free
    assert found[1] == free[1], "an empty line stays empty"
    assert [h.text for h in found[3]] == [""], "whatever its prefix"
    for line, hypotheses, prefix in zip(LINES, found, PREFIXES, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.text.startswith(prefix.strip()) or not line.strip()
            assert not hypothesis.tokens or len(hypothesis.tokens) <= 8
    stream = translator.translate_stream(
        LINES, prefixes=iter(PREFIXES), window=2, max_length=8, nbest=2, **options
    )
    assert [[h.text for h in hypotheses] for hypotheses in stream] == [
        [h.text for h in hypotheses] for hypotheses in found
    ]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_prefixes_change_no_other_line(folder: Path, precision: str) -> None:
    """To the bit, though with a prefix the last layer is in float32."""
    translator = relakit.load(folder, precision=precision)
    lines = ["A small dog runs.", "the old bridge", "A dog runs."]
    found = translator.translate_nbest(lines, prefixes=["", "die alte ", ""], max_length=8)
    free = translator.translate_nbest(lines, max_length=8)
    assert (found[0], found[2]) == (free[0], free[2])
    assert found[1] != free[1]


@torch.no_grad()
def test_scores_with_a_prefix_are_those_of_all_tokens(translator: Translator) -> None:
    sources = translator.tokenizer.encode_batch(LINES)
    found = translator.translate_nbest(LINES, prefixes=PREFIXES, max_length=8)
    for source, hypotheses in zip(sources, found, strict=True):
        for hypothesis in hypotheses:
            if source:
                tokens = torch.tensor([[BEGIN, *hypothesis.tokens]])
                states = translator.model(torch.tensor([[*source, END]]), tokens)
                each = translator.model.logits(states)[0].log_softmax(1)
                steps = [*hypothesis.tokens, END]
                expected = sum(float(each[i, token]) for i, token in enumerate(steps))
                assert hypothesis.log_probability == pytest.approx(expected, abs=1e-3)


def test_a_long_prefix_makes_room_for_itself(translator: Translator) -> None:
    prefix = "Ein kleiner Hund! " * 20
    [text] = translator.translate(["dog"], prefixes=[prefix], length_factor=1, length_margin=2)
    assert text.startswith(prefix.strip())
    with pytest.raises(ValueError, match=r"the prefix of sentence 2 has .* maximum length, 9"):
        translator.translate(["a", "dog"], prefixes=["", prefix], max_length=9)
    assert translator.translate([" "], prefixes=[prefix], max_length=9) == [""]


@pytest.mark.parametrize("text", ["Ein klei", "Ein klei ", "Der alte Man", "x"])
@pytest.mark.parametrize("sample", [False, True])
def test_a_prefix_with_no_room_to_spare(translator: Translator, text: str, sample: bool) -> None:
    prefix = make_prefix(text, translator.tokenizer)
    assert prefix is not None
    least = prefix.shortest
    found = translator.translate(["dog"] * 3, prefixes=[text] * 3, max_length=least, sample=sample)
    assert all(one.startswith(text.strip()) for one in found)
    if least > 1:
        with pytest.raises(ValueError, match=f"has {least} tokens?, more than the maximum length"):
            translator.translate(["dog"], prefixes=[text], max_length=least - 1)


def test_a_prefix_for_each(translator: Translator) -> None:
    with pytest.raises(ValueError, match="there are 6 texts and 1 prefixes"):
        translator.translate(LINES, prefixes=["x"])
    with pytest.raises(ValueError, match="there are 3 prefixes, but more lines"):
        list(translator.translate_stream(LINES, prefixes=["x"] * 3, window=2, max_length=9))


@pytest.mark.parametrize("window", [1, 4, 100])
def test_more_prefixes_than_lines(translator: Translator, window: int) -> None:
    """An error, but only when everything is translated."""
    options = {"window": window, "max_length": 5}
    stream = translator.translate_stream(LINES, prefixes=repeat("Die"), **options)
    found = [next(stream) for _ in LINES]
    assert found == list(translator.translate_stream(LINES, prefixes=["Die"] * 6, **options))
    with pytest.raises(ValueError, match="there are 6 lines, but more prefixes"):
        next(stream)


def test_samples_do_not_depend_on_windows(translator: Translator) -> None:
    def samples(window: int, batch_tokens: int = 2048) -> list[str]:
        found = translator.translate_stream(
            LINES, window=window, batch_tokens=batch_tokens, sample=True, max_length=9
        )
        return [hypotheses[0].text for hypotheses in found]

    assert samples(1) == samples(4) == samples(100, batch_tokens=1)
    assert samples(1) == translator.translate(LINES, sample=True, max_length=9)
    assert samples(1) != translator.translate(LINES, sample=True, max_length=9, seed=2)


def test_one_translation_or_several(translator: Translator) -> None:
    with pytest.raises(ValueError, match="use translate_nbest"):
        translator.translate(LINES, nbest=2)


@pytest.mark.parametrize("window", [1, 4, 100])
def test_a_stream_keeps_the_order(translator: Translator, window: int) -> None:
    stream = translator.translate_stream(iter(LINES), window=window, nbest=1, max_length=8)
    assert [found[0].text for found in stream] == translator.translate(LINES, max_length=8)


def test_a_window_of_one_answers_before_it_reads_on(translator: Translator) -> None:
    read = []

    def lines() -> Iterator[str]:
        for line in LINES:
            read.append(line)
            yield line

    stream = translator.translate_stream(lines(), window=1, max_length=2)
    next(stream)
    assert read == LINES[:1]


def test_a_line_longer_than_all_positions_so_far(translator: Translator) -> None:
    line = "dog " * 400
    assert translator.translate([line], max_length=3)[0]
    assert translator.translate([line[:900]], max_length=3)  # and shorter ones after it


def test_ids_in_and_out(translator: Translator) -> None:
    sources = translator.tokenizer.encode_batch(LINES)
    found = translator.translate_ids(sources, nbest=2, beam=2, max_length=8)
    expected = translator.translate_nbest(LINES, beam=2, max_length=8)
    assert [[e.tokens for e in ended] for ended in found] == [
        [hypothesis.tokens for hypothesis in hypotheses] for hypotheses in expected
    ]


@pytest.mark.parametrize("activation", ["relu", "gelu"], ids=["C++", "PyTorch"])
def test_specs_translate_after_loading_as_before(activation: str, tmp_path: Path) -> None:
    spec = AttentionSpec(activation=activation, threshold="learned", length_exponent=0.5)
    tokenizer = learn_tokenizer(["a b c"] * 9, vocab_size=290)
    model = random_model(spec, vocabulary=tokenizer.size)
    tokenizer.save(tmp_path / "tokenizer.json")
    save_model(tmp_path / "model", model, tmp_path / "tokenizer.json")
    sources = random_sources([5, 9], vocabulary=tokenizer.size)
    before = Translator(model, tokenizer).translate_ids(sources, max_length=9)
    loaded = relakit.load(tmp_path / "model")
    assert loaded.model.config.attention_spec("cross") == spec
    assert loaded.translate_ids(sources, max_length=9) == before


@pytest.mark.parametrize("reference", [False, True], ids=["usual", "PyTorch"])
def test_translating_does_not_disturb_training(
    reference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does training disturb it: there is no dropout in translation. C++ knows none at all."""
    if reference:
        monkeypatch.setenv("RELAKIT_BACKEND", "reference")
    tokenizer = learn_tokenizer(["a b c"] * 9, vocab_size=290)
    model = random_model(vocabulary=tokenizer.size, options={"dropout": 0.5}).train()
    translator = Translator(model, tokenizer)
    sources = random_sources([5, 300], vocabulary=tokenizer.size)
    first, second = (translator.translate_ids(sources, beam=2, max_length=4) for _ in range(2))
    assert first == second
    assert model.training
    states = model(torch.tensor([sources[1]]), torch.tensor([sources[1]]))
    states.sum().backward()  # the positions that grew in translation take part


def test_bf16_is_close(folder: Path) -> None:
    half = relakit.load(folder, precision="bf16")
    assert half.model.embedding.weight.dtype == torch.bfloat16
    [[found]] = half.translate_nbest(["the old bridge"], nbest=1, max_length=4)
    [[exact]] = relakit.load(folder).translate_nbest(["the old bridge"], nbest=1, max_length=4)
    assert found.score == pytest.approx(exact.score, rel=0.05)


def test_weights_of_one_byte(folder: Path) -> None:
    exact_translator = relakit.load(folder)
    if reasons := why_not_native(exact_translator.model):
        pytest.skip("; ".join(reasons))
    [[exact]] = exact_translator.translate_nbest(["the old bridge"], nbest=1, max_length=4)
    [[found]] = relakit.load(folder, precision="int8").translate_nbest(
        ["the old bridge"], nbest=1, max_length=4
    )
    assert found.score != exact.score
    assert found.score == pytest.approx(exact.score, rel=0.05)


def test_precisions() -> None:
    cpu = torch.device("cpu")
    assert choose_dtype("fp32", cpu) == torch.float32
    assert choose_dtype("bf16", cpu) == torch.bfloat16
    assert choose_dtype("int8", cpu) == torch.float32
    assert choose_dtype("auto", cpu) in (torch.float32, torch.bfloat16)
    with pytest.raises(ValueError, match="unknown precision 'fp8'; choose one of fp32, bf16, int8"):
        choose_dtype("fp8", cpu)  # type: ignore[arg-type]


def test_batches_by_length() -> None:
    lengths = [3, 0, 9, 4, 4, 50]
    batches = plan_batches(lengths, 20)
    assert batches == [[5], [2, 3], [4, 0]]  # 51 tokens are too many, but alone; 2 * 10; 2 * 5
    assert sorted(i for batch in batches for i in batch) == [0, 2, 3, 4, 5]
    assert plan_batches([0, 0], 20) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nbest": 5}, "nbest must be from 1 to the beam, 4, got 5"),
        ({"nbest": 0}, "nbest must be from 1 to the beam, 4, got 0"),
        ({"beam": 0}, "the beam must be at least 1, got 0"),
        ({"batch_tokens": 0}, "a batch must have at least 1 token, got 0"),
    ],
)
def test_options_that_cannot_be(
    translator: Translator, options: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        translator.translate_nbest(LINES, **options)


def test_a_string_is_no_list_of_lines(translator: Translator) -> None:
    with pytest.raises(ValueError, match="got a single string"):
        translator.translate("A dog")


def test_a_tokenizer_of_another_model() -> None:
    tokenizer = learn_tokenizer(["a b c"] * 9, vocab_size=290)
    with pytest.raises(ValueError, match="they do not belong together"):
        Translator(random_model(vocabulary=20), tokenizer)


def test_a_directory_with_another_tokenizer(tmp_path: Path) -> None:
    """Of an older directory, which has no digest: the size tells."""
    folder = write_model(tmp_path / "model")
    size = relakit.load(folder).tokenizer.size
    config = json.loads((folder / "config.json").read_text())
    assert config.pop("tokenizer_sha256")
    (folder / "config.json").write_text(json.dumps(config))
    other = learn_tokenizer(["a b c"], vocab_size=270)
    other.save(folder / "tokenizer.json")
    expected = (
        rf"tokenizer\.json has {other.size} entries, the model {size}: they do not belong together"
    )
    with pytest.raises(ValueError, match=expected):
        relakit.load(folder)


def test_a_directory_without_a_tokenizer(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        relakit.load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json"):
        relakit.load(folder)
