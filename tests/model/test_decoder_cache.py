"""The decoder read one token at a time, with a cache, against whole sentences."""

import pytest
import torch
from random_models import padded, random_model, random_sources
from torch import Tensor

from relakit.model import Memory, Transformer
from relakit.model.decoder_cache import FIRST_CAPACITY, DecoderCache
from relakit.nn.variants import ATTENTIONS, AttentionSpec

SPECS = [
    AttentionSpec(threshold="learned", power=2.0),
    AttentionSpec(threshold=0.1, length_exponent=0.5, norm="none"),
    AttentionSpec(activation="softpick", norm="layer"),
]
VARIANTS = [
    *[(name, norm_first) for name in ATTENTIONS for norm_first in (False, True)],
    *[(spec, False) for spec in SPECS],
]


def read_all(model: Transformer, targets: Tensor, memory: Memory) -> Tensor:
    """The states of `[batch, target]` tokens, read one at a time with one beam."""
    cache = model.decoder.start(memory, beams=1)
    return torch.cat([step(model, column[:, None], cache) for column in targets.unbind(1)], dim=1)


def step(model: Transformer, tokens: Tensor, cache: DecoderCache) -> Tensor:
    """The states after another token ``[batch, beams]``."""
    states = model.decoder.step(model.embedding.at(cache.steps, tokens.flatten()), cache)
    return states.view(*tokens.shape, -1)


@pytest.mark.parametrize(("name", "norm_first"), VARIANTS)
def test_steps_equal_the_decoder(name: str | AttentionSpec, norm_first: bool) -> None:
    model = random_model(name, norm_first=norm_first)
    targets = torch.randint(4, 40, (3, FIRST_CAPACITY + 5))  # so that the cache has to grow
    with torch.inference_mode():
        memory = model.encode(padded(random_sources([7, 3, 1])))
        expected = model.decode(targets, memory)
        torch.testing.assert_close(read_all(model, targets, memory), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["rela-g", "softmax", "entmax15"])
def test_in_bfloat16(name: str) -> None:
    model = random_model(name).bfloat16()
    targets = torch.randint(4, 40, (2, 6))
    with torch.inference_mode():
        memory = model.encode(padded(random_sources([5, 5])))
        expected = model.decode(targets, memory).float()
        found = read_all(model, targets, memory)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", ["rela-g", "softmax"])
def test_a_beam_sees_its_own_ancestors(name: str) -> None:
    """Beams that branch at random, in sentences that come and go, against whole prefixes."""
    model = random_model(name)
    generator = torch.Generator().manual_seed(1)
    beams = 3
    sources = random_sources([6, 2, 4, 5])
    with torch.inference_mode():
        memory = model.encode(padded(sources))
        cache = model.decoder.start(memory, beams)
        kept = [0, 1, 2, 3]
        prefixes = torch.empty(4, beams, 0, dtype=torch.int64)
        for position in range(FIRST_CAPACITY + 4):
            tokens = torch.randint(4, 40, (len(kept), beams, 1), generator=generator)
            prefixes = torch.cat([prefixes, tokens], dim=2)
            states = step(model, tokens.squeeze(2), cache)
            for place, sentence in enumerate(kept):
                alone = model.encode(padded([sources[sentence]])).states
                expected = model.decode(prefixes[place], Memory(alone.expand(beams, -1, -1), None))[
                    :, -1
                ]
                torch.testing.assert_close(states[place], expected, rtol=1e-4, atol=1e-4)
            parents = torch.randint(beams, (len(kept), beams), generator=generator)
            cache.reorder(parents)
            prefixes = prefixes.gather(1, parents[:, :, None].expand_as(prefixes))
            if position in (3, 10):
                places = [0, 2, 3] if position == 3 else [2, 0]
                cache.keep(torch.tensor(places))
                kept = [kept[place] for place in places]
                prefixes = prefixes[places]


def test_the_cache_is_not_copied_while_it_has_room() -> None:
    model = random_model()
    with torch.inference_mode():
        cache = model.decoder.start(model.encode(padded(random_sources([3, 3]))), beams=2)
        addresses = set()
        for _ in range(FIRST_CAPACITY):
            step(model, torch.full((2, 2), 5), cache)
            cache.reorder(torch.tensor([[1, 1], [0, 0]]))
            addresses.add(tuple(rows.data_ptr() for rows in cache._target))
    assert len(addresses) == 1
