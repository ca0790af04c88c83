"""Encoder and decoder in C++ against the model in PyTorch, for every instruction set here."""

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from byte_layers import ByteLinear, in_bytes
from native_extension import NATIVE
from random_models import padded, random_model, random_sources
from torch import Tensor

from relakit.data.tokenizer import BEGIN, END, PAD
from relakit.decode.beam import Ended, beam_search
from relakit.decode.best_tokens import Candidates
from relakit.decode.engine import Engine, RunningHypotheses
from relakit.decode.native_engine import NativeEngine, NativeHypotheses, why_not_native
from relakit.decode.settings import SearchSettings
from relakit.decode.torch_engine import TorchEngine
from relakit.model import Transformer
from relakit.nn.variants import ATTENTIONS, AttentionSpec

SERVED = ["softmax", "relu", "relu-rms", "rela-i", "rela-g"]
SERVED_SPECS = [
    AttentionSpec(threshold="learned", power=2.0),
    AttentionSpec(threshold=0.2, power=1.5, gate=False),
    AttentionSpec(length_exponent=0.5, norm="none"),
]


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def odd_model(attention: str = "rela-g", *, dim: int = 38, heads: int = 2) -> Transformer:
    """Sizes that are no multiple of any vector, and more outputs than one panel has."""
    return random_model(
        attention,
        vocabulary=150,
        seed=3,
        dim=dim,
        heads=heads,
        decoder_layers=1,
        feed_forward=75,
    )


def ended(sources: list[list[int]]) -> list[list[int]]:
    return [[*source, END] for source in sources]


@torch.inference_mode()
def read_all(engine: NativeEngine, sources: list[list[int]], targets: Tensor) -> Tensor:
    """The states of `[batch, target]` tokens, read one at a time with one beam."""
    running = engine.start(ended(sources), beams=1)
    states = torch.full((targets.size(0), engine._model.config.dim), math.nan)
    found = []
    for column in targets.unbind(1):
        running.step(column, states)
        found.append(states.clone())
    return torch.stack(found, dim=1)


@pytest.mark.parametrize(
    ("attention", "norm_first"),
    [*itertools.product(SERVED, (False, True)), *itertools.product(SERVED_SPECS, (False,))],
)
def test_states_equal_the_model(isa: str, attention: str | AttentionSpec, norm_first: bool) -> None:
    model = random_model(attention, norm_first=norm_first)
    sources, targets = random_sources([7, 3, 1]), torch.randint(4, 40, (3, 37))
    with torch.inference_mode():
        expected = model(padded(sources), targets)
    found = read_all(NativeEngine(model), sources, targets)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


EMBEDDINGS = {
    "source_embedding": "separate",
    "embedding_bias": True,
    "first_input": "zeros",
    "timescales": "tensor2tensor",
    "norm_eps": 0.3,  # large, so that the states depend on it
}


@pytest.mark.parametrize("name", [*EMBEDDINGS, "all"])
def test_states_equal_the_model_with_other_options(isa: str, name: str) -> None:
    options = EMBEDDINGS if name == "all" else {name: EMBEDDINGS[name]}
    model = random_model(options=options)
    assert why_not_native(model) == []
    # More positions than the table has at first.
    sources, targets = random_sources([7, 300]), torch.randint(4, 40, (2, 270))
    targets[:, 0] = BEGIN
    with torch.inference_mode():
        expected = model(padded(sources), targets)
        usual = random_model()(padded(sources), targets)
    assert (expected - usual).abs().max() > 0.05, "the option should matter"
    found = read_all(NativeEngine(model), sources, targets)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dim", "heads"), [(38, 2), (6, 3), (130, 1)])
def test_sizes_that_are_no_multiple_of_a_vector(isa: str, dim: int, heads: int) -> None:
    model = odd_model(dim=dim, heads=heads)
    sources, targets = random_sources([5, 2], 150), torch.randint(4, 150, (2, 5))
    with torch.inference_mode():
        expected = model(padded(sources), targets)
    found = read_all(NativeEngine(model), sources, targets)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def candidates(
    running: NativeHypotheses | object, tokens: Tensor, scores: Tensor, **options: object
) -> Candidates:
    settings = {"forbidden": (PAD, BEGIN), "must_end": None, **options}
    found = running.candidates(tokens, scores, 6, **settings)  # type: ignore[attr-defined]
    assert isinstance(found, Candidates)
    return found


def after_one_token(engine: Engine, sources: list[list[int]], beams: int) -> RunningHypotheses:
    """The beams of a sentence are alike until they have read it; afterwards they may differ."""
    running = engine.start(sources, beams)
    running.log_probabilities(torch.full((len(sources) * beams,), BEGIN))
    running.reorder(torch.zeros(len(sources), beams, dtype=torch.int64))
    return running


@pytest.mark.parametrize(
    "options",
    [{}, {"forbidden": (PAD, BEGIN, END)}, {"must_end": [True, False, True]}],
    ids=["free", "no end", "must end"],
)
@pytest.mark.parametrize("count", [1, 2])
def test_candidates_equal_those_of_pytorch(
    isa: str, options: dict[str, object], count: int
) -> None:
    model = odd_model()
    sources, beams = ended(random_sources([4, 9, 2], 150)), 3
    tokens, scores = torch.randint(4, 150, (9,)), -torch.rand(3, beams)
    with torch.inference_mode():
        with threads(count):
            running = after_one_token(NativeEngine(model), sources, beams)
            found = candidates(running, tokens, scores, **options)
        running = after_one_token(TorchEngine(model), sources, beams)
        expected = candidates(running, tokens, scores, **options)
    torch.testing.assert_close(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
    has_chance = expected.scores > -math.inf
    assert torch.equal(found.tokens[has_chance], expected.tokens[has_chance])
    assert torch.equal(found.beams[has_chance], expected.beams[has_chance])


@pytest.mark.parametrize(
    "options", [{}, {"must_end": [True, False, True]}], ids=["free", "must end"]
)
def test_the_first_step(isa: str, options: dict[str, object]) -> None:
    """All beams are alike then: one is computed for all of them."""
    model, sources, beams = odd_model(), ended(random_sources([4, 9, 2], 150)), 3
    tokens, scores = torch.full((9,), BEGIN), torch.zeros(3, beams)
    scores[:, 1:] = -math.inf
    with torch.inference_mode():
        native, reference = NativeEngine(model), TorchEngine(model)
        found = candidates(native.start(sources, beams), tokens, scores, **options)
        expected = candidates(reference.start(sources, beams), tokens, scores, **options)
        every = native.start(sources, beams).log_probabilities(tokens)
        expected_every = reference.start(sources, beams).log_probabilities(tokens)
    torch.testing.assert_close(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
    has_chance = expected.scores > -math.inf
    assert torch.equal(found.tokens[has_chance], expected.tokens[has_chance])
    assert not found.beams.any()
    torch.testing.assert_close(every[:, :150], expected_every[:, :150], rtol=1e-4, atol=1e-4)


def test_beams_that_differ_in_the_first_step() -> None:
    with torch.inference_mode():
        running = NativeEngine(odd_model()).start([[5, END], [7, END]], 2)
        with pytest.raises(ValueError, match=f"sentence 2 begin with tokens {BEGIN} and 6"):
            candidates(running, torch.tensor([BEGIN, BEGIN, BEGIN, 6]), torch.zeros(2, 2))


@pytest.mark.parametrize("in_bytes", [False, True])
def test_threads_change_nothing(isa: str, in_bytes: bool) -> None:
    model = random_model(vocabulary=3000)
    sources = ended(random_sources([9] * 40, 3000))
    tokens, scores = torch.randint(4, 3000, (160,)), -torch.rand(40, 4)
    found = []
    for count in (1, 2, 3):
        with threads(count), torch.inference_mode():
            running = after_one_token(NativeEngine(model, in_bytes=in_bytes), sources, 4)
            candidates(running, tokens, scores)
            found.append(candidates(running, tokens, scores))
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))


@pytest.mark.parametrize("in_bytes", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize("attention", ["rela-g", "softmax"])
def test_a_translation_depends_on_its_sentence_alone(
    isa: str, attention: str, in_bytes: bool
) -> None:
    """To the bit: not on the number of sentences in its batch, on which ones, or on threads."""
    engine = NativeEngine(odd_model(attention), in_bytes=in_bytes)
    sources = ended(random_sources([7, 1, 23, 12, 12, 30, 3, 18, 9, 5, 41], 150, seed=2))
    settings = SearchSettings(beam=3, nbest=3)

    def translate(batches: list[list[int]]) -> dict[int, list[Ended]]:
        found = {}
        for batch in batches:
            limits = [2 * len(sources[number]) + 5 for number in batch]
            best = beam_search(engine, [sources[n] for n in batch], limits, settings)
            found.update(zip(batch, best, strict=True))
        return found

    everything = list(range(len(sources)))
    alone = translate([[number] for number in everything])
    assert len({tuple(best[0].tokens) for best in alone.values()}) > len(sources) // 2
    for count in (1, 2, 3):
        with threads(count):
            assert translate([everything]) == alone
            assert translate([[10, 0], [3, 9, 1, 5], [8], [2, 7, 4, 6]]) == alone


@pytest.mark.parametrize("attention", ["softmax", "rela-g"])
def test_weights_in_bytes(isa: str, attention: str) -> None:
    model = odd_model(attention)
    sources, targets = random_sources([6, 3], 150), torch.randint(4, 150, (2, 4))
    with torch.inference_mode():
        expected = in_bytes(model, isa)(padded(sources), targets)
        exact = model(padded(sources), targets)
    found = read_all(NativeEngine(model, in_bytes=True), sources, targets)
    # A number between two bytes may be rounded to the other one, so a few may be off by one byte.
    assert float((found - expected).abs().median()) < 1e-5
    error = float((exact - expected).abs().mean())
    assert 1e-3 < error < 0.1
    assert float((found - expected).abs().mean()) < 0.3 * error


def test_scores_of_all_tokens_in_bytes(isa: str) -> None:
    model = odd_model()
    output = ByteLinear(model.embedding.weight.detach(), None, isa)
    with torch.inference_mode():
        engine = NativeEngine(model, in_bytes=True)
        running = engine.start([[5, END]], 1)
        found = running.candidates(
            torch.tensor([BEGIN]), torch.zeros(1, 1), 150, forbidden=(), must_end=None
        )
        states = read_all(engine, [[5]], torch.tensor([[BEGIN]]))
        expected = output(states[0]).log_softmax(-1)
    assert sorted(found.tokens[0].tolist()) == list(range(150))
    torch.testing.assert_close(found.scores, expected.gather(1, found.tokens))


def test_more_rows_than_one_block(isa: str) -> None:
    """Of 256: the rest must not be lost, nor computed with the first rows' scales."""
    model, beams = odd_model(), 3
    sources = ended(random_sources([2 + i % 7 for i in range(130)], 150))
    tokens, scores = torch.randint(4, 150, (390,)), -torch.rand(130, beams)
    with torch.inference_mode():
        found, expected, rough = (
            candidates(after_one_token(engine, sources, beams), tokens, scores)
            for engine in (
                NativeEngine(model),
                TorchEngine(model),
                NativeEngine(model, in_bytes=True),
            )
        )
    torch.testing.assert_close(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
    assert torch.equal(found.tokens, expected.tokens)
    assert float((rough.scores - expected.scores).abs().max()) < 0.5


@pytest.mark.parametrize("in_bytes", [False, True])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize(
    "name",
    [
        "decoder.layers.0.feed_forward_residual.norm.bias",
        "decoder.layers.0.feed_forward.inner.weight",
        "decoder.layers.0.cross_attention.query.weight",
        "encoder.layers.0.attention.key_value.weight",
        "embedding.weight",
    ],
)
def test_scores_that_are_not_finite(isa: str, name: str, in_bytes: bool, broken: float) -> None:
    model = odd_model("softmax")
    with torch.no_grad():
        model.get_parameter(name)[3] = broken
    with torch.inference_mode():
        running = NativeEngine(model, in_bytes=in_bytes).start([[3, END]], 2)
        with pytest.raises(ValueError, match="computes NaN or infinity"):
            candidates(running, torch.tensor([BEGIN, BEGIN]), torch.zeros(1, 2))


@pytest.mark.parametrize("bad", [-1, 150, 10**9])
def test_tokens_that_the_model_has_not(bad: int) -> None:
    engine = NativeEngine(odd_model())
    with torch.inference_mode():
        with pytest.raises(ValueError, match=f"token {bad} is not among the model's 150"):
            engine.start([[5, END], [bad, END]], 2)
        running = engine.start([[5, END]], 2)
        with pytest.raises(ValueError, match=f"token {bad} is not among"):
            candidates(running, torch.tensor([bad, bad]), torch.zeros(1, 2))


def test_a_sentence_without_tokens() -> None:
    with pytest.raises(ValueError, match="sentence 2 has no tokens"):
        NativeEngine(odd_model()).start([[5, END], []], 2)


@pytest.mark.parametrize("in_bytes", [False, True])
def test_no_sentences(isa: str, in_bytes: bool) -> None:
    assert beam_search(NativeEngine(odd_model(), in_bytes=in_bytes), [], [], SearchSettings()) == []


def test_more_inputs_than_bytes_can_add(isa: str) -> None:
    weight = torch.zeros(1, 65_537)
    with pytest.raises(ValueError, match="a layer has 65537 inputs: in int8 65536 is the most"):
        NATIVE.PackedLinear(isa, weight.data_ptr(), 0, 1, 65_537, True, 0.0)


def test_nothing_left(isa: str) -> None:
    with torch.inference_mode():
        running = NativeEngine(odd_model()).start([[5, END]], 2)
        candidates(running, torch.tensor([5, 5]), torch.zeros(1, 2))
        running.keep([])
        found = candidates(running, torch.empty(0, dtype=torch.int64), torch.zeros(0, 2))
    assert found.scores.shape == (0, 6)


def test_scores_need_not_be_contiguous() -> None:
    tokens, scores = torch.randint(4, 150, (6,)), -torch.rand(3, 2)
    sources = ended(random_sources([4, 9], 150))
    with torch.inference_mode():
        engine = NativeEngine(odd_model())
        found = candidates(after_one_token(engine, sources, 3), tokens, scores.t())
        running = after_one_token(engine, sources, 3)
        expected = candidates(running, tokens, scores.t().contiguous())
    assert all(map(torch.equal, found, expected))


def test_weights_are_those_of_when_it_was_made() -> None:
    model, sources = odd_model(), random_sources([6, 3], 150)
    targets = torch.randint(4, 150, (2, 4))
    engine = NativeEngine(model)
    before = read_all(engine, sources, targets)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    model.to(torch.bfloat16)
    assert torch.equal(read_all(engine, sources, targets), before)


def test_beams_and_sentences_that_come_and_go(isa: str) -> None:
    """Random branching, against the model reading whole prefixes."""
    model, beams = random_model(), 3
    generator = torch.Generator().manual_seed(1)
    sources = random_sources([6, 2, 4, 5])
    kept, prefixes = [0, 1, 2, 3], torch.empty(4, beams, 0, dtype=torch.int64)
    with torch.inference_mode():
        running = NativeEngine(model).start(ended(sources), beams)
        for step in range(36):  # so that memory has to grow
            tokens = torch.randint(4, 40, (len(kept), beams, 1), generator=generator)
            if step == 0:
                tokens[:] = tokens[:, :1]
            prefixes = torch.cat([prefixes, tokens], dim=2)
            states = torch.empty(len(kept) * beams, 32)
            running.step(tokens.view(-1), states)
            for place, sentence in enumerate(kept):
                source = padded([sources[sentence]]).expand(beams, -1)
                expected = model(source, prefixes[place])[:, -1]
                found = states.view(-1, beams, 32)[place]
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            parents = torch.randint(0, beams, (len(kept), beams), generator=generator)
            running.reorder(parents)
            prefixes = prefixes.gather(1, parents[:, :, None].expand_as(prefixes))
            if step in (3, 20):
                running.keep([0, 2] if step == 3 else [1])
                prefixes = prefixes[[0, 2]] if step == 3 else prefixes[[1]]
                kept = [kept[0], kept[2]] if step == 3 else [kept[1]]


@contextmanager
def other_defaults() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("attention", ["rela-g", AttentionSpec(threshold=0.2)], ids=str)
def test_the_defaults_of_torch_change_nothing(attention: str | AttentionSpec) -> None:
    model = random_model(attention)
    sources = ended(random_sources([5, 300]))  # longer than the table of positions
    limits, settings = [3, 12], SearchSettings()
    expected = beam_search(NativeEngine(model), sources, limits, settings)
    with other_defaults():
        found = beam_search(NativeEngine(model), sources, limits, settings)
    assert found == expected


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_which_attention_is_served(attention: str) -> None:
    reasons = why_not_native(random_model(attention))
    if attention in SERVED:
        assert reasons == []
    else:
        expected = [
            f"{kind} attention is {attention!r}" for kind in ("encoder", "decoder", "cross")
        ]
        assert reasons == expected


@pytest.mark.parametrize("spec", SERVED_SPECS, ids=str)
def test_which_specs_are_served(spec: AttentionSpec) -> None:
    assert why_not_native(random_model(spec)) == []
    reasons = why_not_native(random_model(replace(spec, norm="layer")))
    assert len(reasons) == 3
    assert reasons[0].startswith('encoder attention is \'{ activation = "relu", norm = "layer"')


def test_parts_of_other_precision_are_not_served() -> None:
    model = random_model()
    model.decoder.to(torch.bfloat16)
    [reason] = why_not_native(model)
    assert "computes in torch.bfloat16 and torch.float32, not in torch.float32" in reason
