"""Settings of the speed benchmarks: who takes part, and what cannot be."""

from typing import Any

import pytest

from toolkits.settings import DecodingSettings, System, TrainingSettings, baseline_of


def test_systems_of_training() -> None:
    settings = TrainingSettings(attentions=("softmax", "rela-g"), peers=("marian",))
    labels = [system.label for system in settings.systems()]
    assert labels == [
        "softmax fp32", "rela-g fp32", "softmax bf16", "rela-g bf16", "marian fp32", "marian bf16",
    ]  # fmt: skip


def test_ctranslate2_has_its_own_precisions() -> None:
    settings = DecodingSettings(attentions=("softmax",), peers=("joeynmt", "ctranslate2"))
    labels = [system.label for system in settings.systems()]
    assert labels == [
        "softmax fp32", "softmax int8", "joeynmt fp32", "ctranslate2 fp32", "ctranslate2 int8",
    ]  # fmt: skip


def test_sentences_by_batch_size() -> None:
    assert DecodingSettings().sentences_for(64) == 256
    assert DecodingSettings().sentences_for(1) == 32
    assert DecodingSettings(sentences=7).sentences_for(64) == 7


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1"),
        ({"precisions": ("fp16",)}, "unknown precision 'fp16'; choose one of fp32, bf16"),
        ({"attentions": ()}, "attentions must name at least one"),
        ({"attentions": ("softmax", "softmax")}, "attentions must differ, got softmax, softmax"),
        (
            {"peers": ("ctranslate2",)},
            "unknown peer 'ctranslate2'; choose from joeynmt, joeynmt-own-batches, marian",
        ),
    ],
)
def test_training_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batch_sizes": (0,)}, "batch sizes must be at least 1, got 0"),
        ({"groups": -1}, "groups must be at least 0"),
        ({"sentences": 0}, "sentences must be at least 1"),
        ({"batch_sizes": (), "groups": 0}, "nothing to measure"),
        ({"exact_length": False}, "random weights translate into sentences of random length"),
    ],
)
def test_decoding_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecodingSettings(**fields)


@pytest.mark.parametrize(
    ("precision", "expected"), [("bf16", "softmax bf16"), ("int8", "softmax fp32")]
)
def test_baseline(precision: str, expected: str) -> None:
    ours = [
        System(system="relakit", attention=attention, precision=own)
        for own in ("fp32", "bf16")
        for attention in ("rela-g", "softmax")
    ]
    peer = System(system="ctranslate2", attention="softmax", precision=precision)
    assert peer.label == f"ctranslate2 {precision}"
    found = baseline_of(peer, [*ours, peer])
    assert found is not None
    assert found.label == expected
    assert baseline_of(peer, [peer]) is None
