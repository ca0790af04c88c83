"""Whether a run can work at all: memory for its model, and a corpus that fits its recipe."""

import logging
from typing import TYPE_CHECKING

from relakit.amounts import number_with_noun
from relakit.data.prepared_format import SMALLEST_VOCABULARY
from relakit.data.prepared_reader import EncodedSplit, PreparedCorpus
from relakit.decode.search_memory import check_search_memory
from relakit.limits import check_memory
from relakit.model.memory import training_bytes
from relakit.train.recipe import DataSection, Recipe, TrainingSection

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


def check_model(
    recipe: Recipe,
    device: "torch.device | None",
    vocabulary: int = SMALLEST_VOCABULARY,
    source_vocabulary: int | None = None,
) -> None:
    """Raise ValueError, with both sizes, for a model that cannot be trained in this memory.

    Before the corpus is prepared, its vocabulary is not known, but has at least all bytes. Without
    a device, the machine's own memory counts.
    """
    config = recipe.model.config(vocabulary, source_vocabulary)
    check_memory(
        f"training this model (model.dim = {config.dim:,}, model.feed_forward = "
        f"{config.feed_forward:,}, {config.encoder_layers:,} + {config.decoder_layers:,} layers, "
        f"at least {vocabulary:,} tokens)",
        training_bytes(config),
        available=_device_memory(device),
        advice="make it smaller",
    )


def check_batch_tokens(recipe: Recipe, split: EncodedSplit) -> None:
    """Raise ValueError if some pair does not fit into ``training.batch_tokens``."""
    batch_tokens, longest = recipe.training.batch_tokens, split.longest + 1
    if batch_tokens < longest:
        raise ValueError(
            f"training.batch_tokens = {batch_tokens:,}, but the longest sentence of "
            f"{split.name} has {longest:,} tokens with its end: give at least that many, or "
            "prepare the corpus with a smaller max_tokens"
        )


def check_batches(
    recipe: Recipe,
    split: EncodedSplit,
    device: "torch.device | None",
    vocabulary: int,
    source_vocabulary: int | None = None,
) -> None:
    """Raise ValueError if ``training.batch_tokens`` is too low for a pair, too high for memory."""
    check_batch_tokens(recipe, split)
    batch_tokens = recipe.training.batch_tokens
    all_tokens = int(max(split.source_side.offsets[-1], split.target_side.offsets[-1]))
    tokens = min(batch_tokens, all_tokens + len(split))
    check_memory(
        f"training with batches of {tokens:,} tokens",
        training_bytes(recipe.model.config(vocabulary, source_vocabulary), tokens),
        available=_device_memory(device),
        advice="set training.batch_tokens to less",
    )


def check_corpus(recipe: Recipe, corpus: PreparedCorpus, device: "torch.device | None") -> None:
    """Run `check_model`, `check_batches` and `check_searches`, now that there is a corpus."""
    check_model(recipe, device, *corpus.tokenizers.sizes)
    check_batches(recipe, corpus.train, device, *corpus.tokenizers.sizes)
    check_searches(recipe, corpus)


def check_searches(recipe: Recipe, corpus: PreparedCorpus) -> None:
    """Raise ValueError for searches of validation and test that cannot fit into memory."""
    config = recipe.model.config(*corpus.tokenizers.sizes)
    validation = recipe.validation
    for name in corpus.splits:
        if name == "train" or not validation.bleu:
            continue
        longest = int(corpus.split(name).source_lengths.max(initial=0))
        for beam in (validation.beam, validation.final_beam):
            check_search_memory([config], beam, validation.search(beam).limit(longest))


def warn_of_short_run(training: TrainingSection, updates: int | None) -> None:
    """Warn of a run that ends before its learning rate falls.

    ``updates`` is the total, approximate if epochs are counted; None if only time ends the run.
    """
    if updates is None or updates > training.warmup:
        return
    logger.warning(
        "the run has %s, all within the warm-up (training.warmup = %s), so it ends before the "
        "learning rate falls; for little data set training.update_tokens and training.warmup to "
        "less, or train for longer",
        number_with_noun(updates, "update"),
        f"{training.warmup:,}",
    )


def _device_memory(device: "torch.device | None") -> int | None:
    """The memory of a GPU in bytes; None for the machine's own memory."""
    if device is None or device.type != "cuda":
        return None
    import torch

    return int(torch.cuda.get_device_properties(device).total_memory)


def with_own_matrix(recipe: Recipe) -> Recipe:
    """The recipe with an embedding matrix per language, if each has its own vocabulary.

    Raises:
        ValueError: the recipe itself says that they share a matrix.
    """
    model = recipe.model
    if recipe.data.vocabulary != "separate" or model.source_embedding == "separate":
        return recipe
    if "source_embedding" in model.model_fields_set:
        raise ValueError(
            "with data.vocabulary = 'separate' each language has its own matrix, but the recipe "
            f"says model.source_embedding = {model.source_embedding!r}; leave one of them out"
        )
    own = model.model_copy(update={"source_embedding": "separate"})
    return recipe.model_copy(update={"model": own})


def with_settings_of_corpus(data: DataSection) -> DataSection:
    """The data settings, with the languages and the vocabulary kind of a prepared corpus.

    Raises:
        ValueError: the recipe itself gives different ones.
    """
    if data.prepared is None:
        return data
    corpus = PreparedCorpus.load(data.prepared)
    kind = corpus.settings.vocabulary
    if "vocabulary" in data.model_fields_set and data.vocabulary != kind:
        raise ValueError(
            f"{data.prepared} was prepared with the vocabulary {kind!r}, but the recipe says "
            f"data.vocabulary = {data.vocabulary!r}; change the recipe, or prepare the corpus so"
        )
    prepared = {"source": corpus.source_language, "target": corpus.target_language}
    known = {key: language for key, language in prepared.items() if language is not None}
    given = {key: getattr(data, key) for key in known if key in data.model_fields_set}
    if any(known[key] != language for key, language in given.items()):
        said = ", ".join(f"data.{key} = {language!r}" for key, language in given.items())
        raise ValueError(
            f"{data.prepared} was prepared for {prepared['source']} to {prepared['target']}, but "
            f"the recipe says {said}; change the recipe, or prepare the corpus for these languages"
        )
    if any(getattr(data, key) != language for key, language in known.items()):
        logger.warning(
            "%s was prepared for %s to %s, and so is this run: the recipe names no languages",
            data.prepared,
            prepared["source"],
            prepared["target"],
        )
    return data.model_copy(update={**known, "vocabulary": kind})
