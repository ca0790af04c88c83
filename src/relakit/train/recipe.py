"""Recipes: everything that decides a training run, in one validated, frozen object."""

import os
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from relakit.data.generator_settings import SEED, SIZES
from relakit.data.prepared_format import (
    SMALLEST_VOCABULARY,
    LongSentences,
    PrepareSettings,
    VocabularyKind,
)
from relakit.decode.settings import PRECISION, FloatPrecision, SearchSettings, known_device
from relakit.limits import MAX_COUNT, MAX_VOCABULARY
from relakit.model.attention_setting import AttentionSetting
from relakit.model.config import Count, ModelConfig, ModelOptions, Positive, Share, sized
from relakit.model.memory import check_sizes
from relakit.nn.variants import DEFAULT_ATTENTION

NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
VocabSize = Annotated[int, Field(ge=SMALLEST_VOCABULARY, le=MAX_VOCABULARY)]
Natural = Annotated[int, Field(ge=0, le=MAX_COUNT)]
LossMean: TypeAlias = Literal["tokens", "sentences"]
"""What the loss is averaged over: all target tokens, or sentences (each the mean of its tokens)."""
SmoothingOver: TypeAlias = Literal["all", "wrong"]
"""Which tokens share the smoothed probability: the whole vocabulary, or all but the right one."""


def _expanded(path: Path | None) -> Path | None:
    """With the user's home for ``~``; a name that is no user's stays as it is."""
    return None if path is None else Path(os.path.expanduser(path))


class Section(BaseModel):
    """A part of a recipe. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class GeneratedData(Section):
    """A corpus that relakit generates itself."""

    train: Count = SIZES["train"]
    """Sentence pairs to train on."""
    valid: Count = SIZES["valid"]
    test: Count = SIZES["test"]
    seed: Natural = SEED


class DropoutSides(Section):
    """A rate for each side, in the direction of translation."""

    source: Share = 0.0
    target: Share = 0.0


class DataSection(Section):
    """Where the sentence pairs come from: exactly one of three places."""

    prepared: Path | None = None
    """A folder that ``relakit prepare`` wrote."""
    folder: Path | None = None
    """A folder with text files such as ``train.en.gz`` and ``val.de``; prepared on first use."""
    generated: GeneratedData | None = None
    """A generated corpus; prepared on first use."""
    source: str = "en"
    """The source language: how the files in ``folder`` end. A prepared corpus has its own."""
    target: str = "de"
    """The target language."""
    reverse: bool = False
    """Translate from ``target`` to ``source``, with a corpus prepared in the other direction."""
    vocab_size: VocabSize = PrepareSettings.vocab_size
    """Entries in the BPE vocabulary, or in each if there are two."""
    vocabulary: VocabularyKind = PrepareSettings.vocabulary
    """One vocabulary for both languages, or one for each; a prepared corpus has its own."""
    max_tokens: Count = PrepareSettings.max_tokens
    """Most tokens in a sentence to train on."""
    long_sentences: LongSentences = PrepareSettings.long_sentences
    """What happens to pairs with a longer sentence: left out, or truncated."""
    bpe_dropout: DropoutSides = DropoutSides()
    """How often a BPE merge is skipped in training; a single number is for both sides."""

    @field_validator("bpe_dropout", mode="before")
    @classmethod
    def _both_sides(cls, rate: object) -> object:
        return {"source": rate, "target": rate} if isinstance(rate, (int, float)) else rate

    @field_validator("prepared", "folder")
    @classmethod
    def _at_home(cls, path: Path | None) -> Path | None:
        return _expanded(path)

    @model_validator(mode="after")
    def _one_place(self) -> "DataSection":
        places = [
            name for name in ("prepared", "folder", "generated") if getattr(self, name) is not None
        ]
        if len(places) != 1:
            found = " and ".join(places) or "none of them"
            raise ValueError(
                f"exactly one of prepared, folder and generated must be set, got {found}; "
                "for example: --set data.folder=path/to/corpus"
            )
        return self


class ModelSection(ModelOptions):
    """The model's size and attention. What is not given follows from ``size`` and ``attention``."""

    start_from: Path | None = None
    """For fine-tuning: a model directory, or the folder of a run, whose weights, settings and
    tokenizer this run starts with."""
    size: Literal["tiny", "small", "base"] = "base"
    attention: AttentionSetting = DEFAULT_ATTENTION
    """For all three kinds of attention, unless one is given below: a name, or a table."""
    encoder_attention: AttentionSetting | None = None
    decoder_attention: AttentionSetting | None = None
    cross_attention: AttentionSetting | None = None
    dim: Count | None = None
    heads: Count | None = None
    encoder_layers: Count | None = None
    decoder_layers: Count | None = None
    feed_forward: Count | None = None

    def config(self, vocabulary: int, source_vocabulary: int | None = None) -> ModelConfig:
        """The model's settings for a vocabulary of this size, or for one per language.

        A source with its own vocabulary gets its own matrix, whatever ``source_embedding`` says.
        """
        given = self.model_dump(exclude={"start_from", "size", "attention"}, exclude_none=True)
        attention = {
            f"{kind}_attention": self.attention for kind in ("encoder", "decoder", "cross")
        }
        fields = {**sized(self.size), **attention, **given}
        if source_vocabulary is not None:
            fields["source_embedding"] = "separate"
        return ModelConfig(vocabulary=vocabulary, source_vocabulary=source_vocabulary, **fields)

    @field_validator("start_from")
    @classmethod
    def _at_home(cls, path: Path | None) -> Path | None:
        return _expanded(path)

    @model_validator(mode="after")
    def _possible(self) -> "ModelSection":
        check_sizes(self.config(vocabulary=1))
        return self


class TrainingSection(Section):
    """How long and how to train. The defaults are the paper's."""

    epochs: Count | None = None
    """Stop after this many passes over the data ..."""
    updates: Count | None = None
    """... or after this many updates ..."""
    minutes: Positive | None = None
    """... or after this many minutes of training, whichever comes first; validations and
    checkpoints are not counted."""
    batch_tokens: Count = 4096
    """Most padded tokens to compute at once; bounds memory."""
    update_tokens: Count = 25_000
    """Approximate target tokens per update: gradients of several batches are added up."""
    learning_rate_factor: Positive = 1.0
    """Factor on the schedule d^-0.5 * min(update^-0.5, update * warmup^-1.5)."""
    warmup: Count = 4000
    """Updates until the learning rate reaches its peak."""
    cooldown: Share = 0.0
    """Share of ``updates``, at the end, over which the learning rate also falls linearly to 0."""
    adam_betas: tuple[Share, Share] = (0.9, 0.98)
    adam_eps: Positive = 1e-8
    label_smoothing: Share = 0.1
    smoothing_over: SmoothingOver = "all"
    """Spread it over the whole vocabulary, or over all tokens but the right one."""
    loss_mean: LossMean = "tokens"
    """What the loss of an update is the mean over: its target tokens, or its sentences, each with
    the mean over its own tokens."""
    clip_norm: NotNegative = 0.0
    """Gradients with a larger norm are scaled down to it; 0 for never."""
    precision: FloatPrecision = PRECISION
    """bf16: matrix products in bfloat16; auto: where the hardware has instructions for it."""
    seed: Natural = 1
    threads: Natural = 0
    """CPU threads; 0 leaves the number to PyTorch."""
    device: str = "auto"
    """auto: a GPU if there is one."""
    checkpoint_every: Count = 1000
    """Updates between checkpoints."""
    keep: Count = 5
    """How many checkpoints to keep, and to average for the final model."""
    average: bool = True
    """Average the kept checkpoints; if false, the last one is the model."""
    give_up_after: Natural = 2000
    """A run that has learnt no more than how frequent tokens are after this many updates ends as
    failed; 0 for never."""

    @field_validator("device")
    @classmethod
    def _known_device(cls, name: str) -> str:
        return known_device(name, others=("auto",))

    @model_validator(mode="after")
    def _ends(self) -> "TrainingSection":
        if self.epochs is None and self.updates is None and self.minutes is None:
            raise ValueError("set epochs, updates or minutes, or training would never end")
        if self.cooldown and self.updates is None:
            raise ValueError(
                f"cooldown = {self.cooldown} is a share of updates, but these are not set; set "
                "them, or cooldown = 0"
            )
        return self


class ValidationSection(Section):
    """What is measured during training and at the end."""

    every: Count = 1000
    """Updates between validations; there is one more at the end."""
    bleu: bool = True
    """Translate the validation set for BLEU, in addition to computing its loss."""
    sentences: Natural = 0
    """How many sentences, from the first on, to translate during training; 0 for all."""
    beam: Count = 1
    """Beam size during training."""
    final_beam: Count = SearchSettings.beam
    """Beam size for the final scores of validation and test sets."""
    length_penalty: NotNegative = SearchSettings.length_penalty
    min_length: Natural = SearchSettings.min_length
    """Fewest tokens in a translation."""
    length_factor: NotNegative = SearchSettings.length_factor
    """Most tokens in a translation: this many times as many as in its source ..."""
    length_margin: Count = SearchSettings.length_margin
    """... plus this many."""
    wide_ends: bool = SearchSettings.wide_ends
    """Hypotheses may end among the best 2 * beam of a step, instead of the best beam."""
    patience: Natural = 0
    """Stop after this many validations without a better loss; 0 for never."""

    def search(self, beam: int) -> SearchSettings:
        """The settings to translate with this beam size."""
        return SearchSettings(
            beam=beam,
            nbest=1,
            length_penalty=self.length_penalty,
            min_length=self.min_length,
            length_factor=self.length_factor,
            length_margin=self.length_margin,
            wide_ends=self.wide_ends,
        )

    @model_validator(mode="after")
    def _possible(self) -> "ValidationSection":
        for beam in (self.beam, self.final_beam):
            self.search(beam)
        return self


class Recipe(Section):
    """A training run."""

    description: str = ""
    data: DataSection
    model: ModelSection = ModelSection()
    training: TrainingSection
    validation: ValidationSection = ValidationSection()
