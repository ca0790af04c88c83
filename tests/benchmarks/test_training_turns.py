"""Training speed: the batches, the real update, peers on the same work."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from speed_corpus import VOCABULARY, fake_place

from relakit.bench.machine import describe_machine
from relakit.data.batches import collate
from relakit.data.prepared_reader import PreparedCorpus
from toolkits.measure import measure_training
from toolkits.models import model_configs
from toolkits.peers import PeerPlace
from toolkits.report import SpeedReport
from toolkits.settings import TrainingSettings
from toolkits.training_turns import (
    TrainingWork,
    bucketed_updates,
    shuffled_updates,
    training_field,
)


def settings_for(corpus: Path, **changed: Any) -> TrainingSettings:
    fields = {
        "attentions": ("softmax", "rela-g"), "precisions": ("fp32",), "size": "tiny",
        "vocabulary": VOCABULARY, "rounds": 2, "steps": 2, "batch_tokens": 200,
        "corpus": str(corpus), **changed,
    }  # fmt: skip
    return TrainingSettings(**fields)


def bucketed_work(corpus: Path, **changed: Any) -> TrainingWork:
    settings, split = settings_for(corpus, **changed), PreparedCorpus.load(corpus).train
    return TrainingWork(split, settings.steps, bucketed_updates(split, settings))


def test_batches_of_a_peers_own_are_as_large_and_not_sorted(corpus: Path) -> None:
    split = PreparedCorpus.load(corpus).train
    updates = shuffled_updates(split, settings_for(corpus, rounds=1000))
    sentences = [int(i) for update in updates for i in update.batches[0]]
    assert sorted(sentences) == list(range(len(split)))
    lengths = np.maximum(split.source_lengths, split.target_lengths) + 1
    sizes = [int(lengths[u.batches[0]].max()) * len(u.batches[0]) for u in updates]
    assert max(sizes) <= 200
    bucketed = bucketed_work(corpus, rounds=1000).updates
    assert len(updates) > len(bucketed), "padding takes room"


def measured(settings: TrainingSettings, place: PeerPlace) -> SpeedReport:
    report = SpeedReport(benchmark="train", settings=settings, machine=describe_machine())
    measure_training(report, settings, place)
    return report


def test_the_work_of_a_round(corpus: Path) -> None:
    work = bucketed_work(corpus)
    assert len(work.updates) == 4
    assert [len(update.batches) for update in work.updates] == [1] * 4
    assert work.of_round(1) == work.updates[2:]
    assert work.of_round(2) == work.updates[:2], "it starts over"


def test_a_small_corpus_comes_again(corpus: Path) -> None:
    split = PreparedCorpus.load(corpus).train
    work = bucketed_work(corpus, rounds=100)
    assert sum(len(update.batches[0]) for update in work.updates) == len(split)
    assert work.updates[-1].is_last_of_epoch


def test_peers_get_the_same_batches(corpus: Path, tmp_path: Path) -> None:
    split = PreparedCorpus.load(corpus).train
    work = bucketed_work(corpus)
    work.write(tmp_path / "batches.safetensors")
    arrays = load_file(tmp_path / "batches.safetensors")
    assert len(arrays) == 8
    batch = collate(split, work.updates[3].batches[0])
    assert (arrays["source.3"] == batch.source).all()
    assert (arrays["target.3"] == batch.target_out).all()


def test_everyone_is_measured(corpus: Path, tmp_path: Path) -> None:
    peers = ("joeynmt", "joeynmt-own-batches", "marian")
    settings = settings_for(corpus, peers=peers, precisions=("fp32", "bf16"))
    report = measured(settings, fake_place(tmp_path, joeynmt="works", marian="works"))
    assert report.notes == {}
    [case] = report.cases
    labels = {system.label for system in settings.systems()}
    assert len(labels) == 10
    assert [set(turns) for turns in case.rounds] == [labels] * 2
    for turns in case.rounds:
        on_ours = [turn for label, turn in turns.items() if "own-batches" not in label]
        assert all(turn.work == on_ours[0].work for turn in on_ours)
        assert turns["marian bf16"].seconds == 0.5
    assert report.about["marian fp32"] == "marian 1.0"
    assert "parameters" in report.about["rela-g bf16"]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("fails at setup", "RuntimeError: out of luck"),
        ("dies", "ended at train-steps with code 3: its last words"),
        ("skips tokens", "trained on"),
    ],
)
def test_a_peer_that_fails_is_listed(
    corpus: Path, tmp_path: Path, behaviour: str, reason: str
) -> None:
    settings = settings_for(corpus, attentions=("softmax",), peers=("joeynmt", "marian"), rounds=1)
    report = measured(settings, fake_place(tmp_path, joeynmt=behaviour, marian="works"))
    assert report.notes["joeynmt fp32"].startswith(reason)
    assert set(report.cases[0].rounds[0]) == {"softmax fp32", "marian fp32"}


def test_weights_change_as_in_training(corpus: Path, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    with training_field(settings_for(corpus), PeerPlace(), tmp_path) as field:
        training: Any = field.contenders["rela-g fp32"]
        before = training._model.embedding.weight.detach().clone()
        turn = training.run("training", 0)
        assert turn.work["target_tokens"] == sum(
            u.target_tokens for u in training._work.of_round(0)
        )
        assert not torch.equal(before, training._model.embedding.weight)
        assert training._model.training
    assert torch.get_num_threads() == threads


def test_mistakes(corpus: Path, tmp_path: Path) -> None:
    place = PeerPlace()
    with pytest.raises(ValueError, match="unknown attention 'softmx'; choose one of"):
        model_configs(settings_for(corpus, attentions=("softmx",)))
    with pytest.raises(ValueError, match="unknown size 'huge'; choose one of tiny"):
        measured(settings_for(corpus, size="huge"), place)
    with pytest.raises(ValueError, match=r"a vocabulary of \d+, above --vocab 300; set --vocab"):
        measured(settings_for(corpus, vocabulary=300), place)
