"""Translation speed: random and trained models, fixed and free lengths, peers on the same work."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from speed_corpus import VOCABULARY, fake_place

from relakit.bench.machine import describe_machine
from relakit.data.tokenizer import learn_tokenizer
from relakit.model import ModelConfig, Transformer, save_model
from toolkits.decoding_turns import attention_name, decoding_field, with_models
from toolkits.measure import measure_decoding
from toolkits.peers import PeerPlace
from toolkits.report import SpeedReport
from toolkits.settings import DecodingSettings


def settings_for(corpus: Path, **changed: Any) -> DecodingSettings:
    fields = {
        "attentions": ("softmax", "rela-g"), "size": "tiny", "vocabulary": VOCABULARY,
        "rounds": 1, "sentences": 4, "groups": 2, "group_sentences": 2, "batch_sizes": (3,),
        "beam": 2, "corpus": str(corpus), "precisions": ("fp32",), **changed,
    }  # fmt: skip
    return DecodingSettings(**fields)


def config_of(attention: str, **changed: Any) -> ModelConfig:
    kinds = {f"{kind}_attention": attention for kind in ("encoder", "decoder", "cross")}
    fields = {
        "vocabulary": VOCABULARY, "dim": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1,
        "feed_forward": 16, **kinds, **changed,
    }  # fmt: skip
    return ModelConfig(**fields)


@pytest.fixture
def models(corpus: Path, tmp_path: Path) -> list[str]:
    folders = []
    for attention in ("softmax", "rela-g"):
        folder = tmp_path / f"model-{attention}"
        save_model(folder, Transformer(config_of(attention)), corpus / "tokenizer.json")
        folders.append(str(folder))
    return folders


def measured(settings: DecodingSettings, place: PeerPlace) -> SpeedReport:
    report = SpeedReport(benchmark="decode", settings=settings, machine=describe_machine())
    measure_decoding(report, settings, place)
    return report


def test_own_weights_in_bytes_where_the_attention_allows(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("relakit._native")
    settings = settings_for(
        corpus, attentions=("softmax", "sparsemax"), precisions=("fp32", "int8"), groups=0
    )
    report = measured(settings, fake_place(tmp_path))
    assert set(report.cases[0].rounds[0]) == {"softmax fp32", "sparsemax fp32", "softmax int8"}
    assert "encoder attention is 'sparsemax'" in report.notes["sparsemax int8"]


def test_random_models_of_fixed_length(corpus: Path, tmp_path: Path) -> None:
    settings = settings_for(corpus, peers=("marian", "ctranslate2"))
    report = measured(settings, fake_place(tmp_path, marian="works", ctranslate2="works"))
    assert report.notes == {}
    assert [case.case.split(",")[0] for case in report.cases] == ["batch 3", "group 1", "group 2"]
    batch, *groups = report.cases
    own = {"softmax fp32", "rela-g fp32"}
    peers = {"marian fp32", "ctranslate2 fp32", "ctranslate2 int8"}
    [turns] = batch.rounds
    assert set(turns) == own | peers
    assert all(turn.work == turns["softmax fp32"].work for turn in turns.values())
    assert turns["marian fp32"].seconds == 0.5, "two batches"
    for group in groups:
        assert [set(turns) for turns in group.rounds] == [own]
        assert group.case in report.source_lengths
    assert report.about["ctranslate2 int8"] == "ctranslate2 1.0 int8"


def test_given_models_translate_freely(corpus: Path, tmp_path: Path, models: list[str]) -> None:
    settings = with_models(
        settings_for(corpus, models=tuple(models), exact_length=False, peers=("marian",), groups=0)
    )
    assert settings.attentions == ("softmax", "rela-g")
    report = measured(settings, fake_place(tmp_path, marian="works"))
    [turns] = report.cases[0].rounds
    assert turns["marian fp32"].work["target_tokens"] == 4 * (3 + 1), "each with its end"
    assert turns["rela-g fp32"].work["sentences"] == 4


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("stops early", "translated into "),
        ("dies", "ended at decode with code 3: its last words"),
        ("fails at setup", "RuntimeError: out of luck"),
    ],
)
def test_a_peer_that_fails_is_listed(
    corpus: Path, tmp_path: Path, behaviour: str, reason: str
) -> None:
    settings = settings_for(corpus, attentions=("softmax",), peers=("marian",), groups=0)
    report = measured(settings, fake_place(tmp_path, marian=behaviour))
    assert report.notes["marian fp32"].startswith(reason)
    assert set(report.cases[0].rounds[0]) == {"softmax fp32"}


def test_peers_need_a_softmax_model(corpus: Path, tmp_path: Path) -> None:
    settings = settings_for(corpus, attentions=("rela-g",), peers=("marian",), groups=0)
    report = measured(settings, fake_place(tmp_path, marian="works"))
    reason = "the peers need a model with softmax attention, and there is none"
    assert report.notes == {"marian fp32": reason}


def test_bf16_models(corpus: Path, tmp_path: Path) -> None:
    settings = settings_for(corpus, precisions=("fp32", "bf16"), groups=0)
    with decoding_field(settings, PeerPlace(), tmp_path) as (field, _):
        kinds = {
            label: str(contender._translator.model.embedding.weight.dtype)  # type: ignore[attr-defined]
            for label, contender in field.contenders.items()
        }
    assert kinds["rela-g bf16"] == "torch.bfloat16"
    assert kinds["rela-g fp32"] == "torch.float32"


def test_models_that_cannot_be_compared(corpus: Path, tmp_path: Path, models: list[str]) -> None:
    twice = settings_for(corpus, models=(models[0], models[0]))
    with pytest.raises(ValueError, match="both have softmax attention; give one"):
        with_models(twice)
    other = tmp_path / "other"
    tokenizer = learn_tokenizer(["some other words"], 300)
    tokenizer.save(tmp_path / "tokenizer.json")
    config = config_of("rela-g", vocabulary=tokenizer.size)
    save_model(other, Transformer(config), tmp_path / "tokenizer.json")
    settings = with_models(settings_for(corpus, models=(models[0], str(other))))
    with pytest.raises(ValueError, match="have different tokenizers"):
        measured(settings, PeerPlace())


def test_names_of_mixed_attention() -> None:
    assert attention_name(config_of("rela-g")) == "rela-g"
    mixed = config_of("rela-g", cross_attention="softmax")
    assert attention_name(mixed) == "rela-g/rela-g/softmax"


def test_a_split_that_is_not_there(corpus: Path) -> None:
    with pytest.raises(ValueError, match="has no split 'dev', it has"):
        measured(replace(settings_for(corpus), split="dev"), PeerPlace())
