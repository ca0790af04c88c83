"""Aligning as work: what is computed with how many threads, and at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from model_folders import TEXTS, write_model

from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice, ChosenOn
from relakit.align.settings import ALONE
from relakit.align.work import AlignSettings, AlignWork
from relakit.data.parallel_files import NumberedPair
from relakit.model.description import model_digests

PAIRS = [NumberedPair(1, *TEXTS), NumberedPair(2, "A dog.", "Ein Hund."), NumberedPair(3, "", "")]


@pytest.fixture
def settings(tmp_path: Path) -> AlignSettings:
    choice = AlignmentChoice(layer=0, heads=(0,), reading="normal", chosen=ChosenOn(by="given"))
    return AlignSettings(model=write_model(tmp_path / "model"), choice=choice, format="json")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Threads, and tokens at once, of whatever is computed."""
    told: list[tuple[int, int]] = []
    original = Aligner._weights

    def noted(self: Aligner, tokens: object, batch_tokens: int) -> Iterator[object]:
        told.append((torch.get_num_threads(), batch_tokens))
        return original(self, tokens, batch_tokens)  # type: ignore[arg-type]

    monkeypatch.setattr(Aligner, "_weights", noted)
    return told


def test_one_thread_computes(settings: AlignSettings, computed: list[tuple[int, int]]) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        AlignWork(settings).run(PAIRS, lambda count: None)
        after = torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
    assert {threads for threads, _ in computed} == {1}
    assert after == 2


def test_a_processor_that_rounds_otherwise(
    settings: AlignSettings, computed: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then pairs are computed one by one."""
    together = AlignWork(settings).run(PAIRS, lambda count: None)
    assert ALONE not in together.counts
    monkeypatch.setattr("relakit.align.aligner.is_same_alone", lambda config, compute: False)
    computed.clear()
    alone = AlignWork(settings).run(PAIRS, lambda count: None)
    assert {tokens for _, tokens in computed} == {1}
    assert alone.counts == {ALONE: 3}
    assert alone.content == together.content


def test_rounding_is_found_out_with_made_up_pairs(
    settings: AlignSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    aligner = Aligner.load(settings.model, choice=settings.choice)
    assert aligner.is_same_alone()
    original = Aligner._weights

    def strange(self: Aligner, tokens: object, batch_tokens: int) -> Iterator[object]:
        for index, weights in original(self, tokens, batch_tokens):  # type: ignore[arg-type]
            yield index, weights if batch_tokens == 1 else weights + 1e-6

    monkeypatch.setattr(Aligner, "_weights", strange)
    assert not aligner.is_same_alone()


def test_a_model_that_was_replaced_meanwhile(settings: AlignSettings, tmp_path: Path) -> None:
    back = write_model(tmp_path / "back", seed=1, source="de", target="en")
    settings = settings.model_copy(update={"reverse": back, "reverse_choice": settings.choice})
    digests = {name: model_digests(folder) for name, folder in settings.models.items()}
    work = settings.description(digests)
    assert work.build().run(PAIRS, lambda count: None).content
    (back / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"back on .* has another model.safetensors\. "):
        work.build()  # says more than that it is broken
    write_model(settings.model, seed=2)
    with pytest.raises(ValueError, match=r"model on .* has another model.safetensors\. "):
        work.build()
