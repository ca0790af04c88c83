"""What a validation measures besides the loss: the outputs of attention."""

import pytest
import torch

from relakit.data.batches import pad_batch
from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.tokenizer import BEGIN, END
from relakit.decode.settings import SearchSettings
from relakit.model import ModelConfig, Transformer
from relakit.model.attention_outputs import OutputMeter
from relakit.train import validation
from relakit.train.validation import split_loss, split_scores


@pytest.fixture
def model(corpus: PreparedCorpus) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        ModelConfig(
            vocabulary=corpus.tokenizer.size,
            dim=32,
            heads=2,
            encoder_layers=1,
            decoder_layers=2,
            feed_forward=64,
            cross_attention="softmax",
        )
    )


def test_outputs_are_those_of_all_sentences(corpus: PreparedCorpus, model: Transformer) -> None:
    """Sentence by sentence, without padding, it is the same; and without dropout."""
    split = corpus.split("valid")
    found = split_loss(model, split, torch.float32).attention_outputs
    assert model.training, "it is in the mode it was in before"
    meter = OutputMeter(model.eval())
    for number in range(len(split)):
        source = torch.from_numpy(pad_batch([split.source(number)], end=END))
        target = torch.from_numpy(pad_batch([split.target(number)], begin=BEGIN))
        with torch.no_grad(), meter.watch(source, target):
            model(source, target)
    for kind, expected in meter.outputs().items():
        assert found[kind].rms == pytest.approx(expected.rms, rel=1e-4)
        assert found[kind].closed_gates == expected.closed_gates
    assert found["cross"].closed_gates is None
    assert found["encoder"].closed_gates is not None


def test_positions_that_it_grows_can_be_written_into(
    corpus: PreparedCorpus, model: Transformer
) -> None:
    """As torch does where processes exchange buffers."""
    model.embedding.positions = model.embedding.positions[:2].clone()
    split = corpus.split("valid")
    split_loss(model, split, torch.float32)
    assert model.embedding.positions.size(0) > split.longest
    assert not model.embedding.positions.is_inference()


def test_an_error_leaves_the_model_in_training(
    corpus: PreparedCorpus, model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(validation, "smoothed_loss", interrupt)
    with pytest.raises(KeyboardInterrupt):
        split_loss(model, corpus.split("valid"), torch.float32)
    assert model.training


def test_measuring_does_not_change_the_loss(
    corpus: PreparedCorpus, model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = corpus.split("valid")
    measured = split_loss(model, split, torch.float32)
    monkeypatch.setattr(validation, "OutputMeter", lambda model: OutputMeter(model, kinds=()))
    alone = split_loss(model, split, torch.float32)
    assert alone.attention_outputs == {}
    assert measured.negative_log_likelihood == pytest.approx(
        alone.negative_log_likelihood, rel=1e-6
    )


@pytest.mark.parametrize("bleu", [True, False])
def test_scores_hold_them(corpus: PreparedCorpus, model: Transformer, bleu: bool) -> None:
    split = corpus.split("valid")
    scores = split_scores(
        model, corpus.tokenizer, split, precision=torch.float32, bleu=bleu,
        search=SearchSettings(beam=1), sentences=2,
    )  # fmt: skip
    assert scores.attention_outputs == split_loss(model, split, torch.float32).attention_outputs
    assert (scores.bleu is not None) == bleu
