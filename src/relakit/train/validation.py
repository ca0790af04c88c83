"""How good a model is on a split: its loss, its attention, and the BLEU of its translations."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from relakit.data.batches import collate, make_batches
from relakit.data.prepared_reader import EncodedSplit
from relakit.data.tokenizer import END, PAD
from relakit.data.tokenizer_pair import Tokenizers
from relakit.decode.settings import SearchSettings
from relakit.decode.translator import Translator
from relakit.metrics.bleu import bleu_score
from relakit.model import Transformer
from relakit.model.attention_outputs import ModelOutputs, OutputMeter
from relakit.model.evaluation import inference
from relakit.train.loss import smoothed_loss
from relakit.train.result import Scores
from relakit.train.step import autocast

VALIDATION_TOKENS = 4096
"""Padded tokens at a time; the result does not depend on it."""


class SplitLoss(NamedTuple):
    """What a model computes on a split when it is forced to produce the references."""

    negative_log_likelihood: float
    """Per target token"""
    attention_outputs: ModelOutputs


def split_loss(model: Transformer, split: EncodedSplit, precision: torch.dtype) -> SplitLoss:
    """The loss without dropout and, from the same pass, the attention outputs."""
    device = model.embedding.weight.device
    batches = make_batches(
        split.source_lengths, split.target_lengths, batch_tokens=VALIDATION_TOKENS, seed=0, epoch=0
    )
    total, tokens = 0.0, 0
    meter = OutputMeter(model)
    # One more position: the token that begins or ends a sentence.
    with inference(model, positions=split.longest + 1):
        for indices in batches:
            batch = collate(split, indices)
            source, target, expected = (
                torch.from_numpy(array).to(device)
                for array in (batch.source, batch.target_in, batch.target_out)
            )
            with autocast(device, precision), meter.watch(source, target):
                loss = smoothed_loss(
                    model(source, target),
                    model.embedding.weight,
                    expected,
                    smoothing=0.0,
                    padding=PAD,
                )
            total += float(loss.negative_log_likelihood)
            tokens += loss.tokens
    return SplitLoss(total / tokens, meter.outputs())


def split_scores(
    model: Transformer,
    tokenizer: Tokenizers,
    split: EncodedSplit,
    *,
    precision: torch.dtype,
    bleu: bool,
    search: SearchSettings,
    sentences: int = 0,
) -> Scores:
    """Loss and, if wanted, the BLEU of the first ``sentences`` translations (0 for all)."""
    loss, attention_outputs = split_loss(model, split, precision)
    if not bleu or not math.isfinite(loss):
        return Scores(loss, attention_outputs=attention_outputs)
    count = min(sentences or len(split), len(split))
    translator = Translator(model, tokenizer)
    found = translator.search([split.source(i).tolist() for i in range(count)], search)
    outputs = tokenizer.target.decode_batch([hypotheses[0].tokens for hypotheses in found])
    references = tokenizer.target.decode_batch([split.target(i).tolist() for i in range(count)])
    score = bleu_score(outputs, references)
    return Scores(loss, score.score, score.signature, attention_outputs)


def frequency_loss(train: EncodedSplit, measured: EncodedSplit, vocabulary: int) -> float:
    """The loss of a model that only knows how often each token occurs.

    It predicts every target token by its frequency in (the first part of) the training data. A
    model that is no better after thousands of updates has not begun to translate.
    """
    counts = _token_counts(train, vocabulary) + 1.0
    shares = counts / counts.sum()
    tokens = _token_counts(measured, vocabulary)
    return float(-(tokens * np.log(shares)).sum() / tokens.sum())


def _token_counts(split: EncodedSplit, vocabulary: int) -> npt.NDArray[np.float64]:
    sentences = min(len(split), 50_000)
    ids = np.concatenate([split.target(i) for i in range(sentences)])
    counts = np.bincount(ids.astype(np.int64), minlength=vocabulary).astype(np.float64)
    counts[END] += sentences
    return counts
