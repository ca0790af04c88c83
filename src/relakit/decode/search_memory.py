"""What a beam search keeps in memory, and batches that leave room for it.

Source tokens alone do not bound it: a wide beam, or translations that may become long, take more.
"""

from collections.abc import Iterable, Iterator, Sequence

from relakit.limits import check_memory, machine_memory
from relakit.model.config import ModelConfig
from relakit.model.memory import FLOAT_BYTES

SHARE = 4
"""A batch may take 1 / SHARE of the machine's memory."""


def sentence_bytes(config: ModelConfig, beam: int, limit: int) -> int:
    """Memory for one sentence with the longest translation, mostly its keys and values."""
    row = 2 * config.dim * config.decoder_layers * FLOAT_BYTES
    ancestors = beam  # a byte for each beam and row
    scores = config.vocabulary * FLOAT_BYTES
    return beam * ((limit + 1) * (row + ancestors) + scores)


def check_search_memory(configs: Sequence[ModelConfig], beam: int, limit: int) -> int:
    """The memory for one sentence in bytes; ValueError if the machine has not that much."""
    needed = sum(sentence_bytes(config, beam, limit) for config in configs)
    check_memory(
        f"a search with a beam of {beam:,} for a translation of up to {limit:,} tokens",
        needed,
        advice="choose a smaller beam, or a smaller maximum length",
    )
    return needed


def within_memory(
    batches: Iterable[Sequence[int]],
    configs: Sequence[ModelConfig],
    *,
    beam: int,
    limits: Sequence[int],
) -> Iterator[Sequence[int]]:
    """The batches, split where they might not fit into memory; the translations stay the same.

    Args:
        batches: indices of sentences.
        configs: settings of the models that translate together.
        beam: hypotheses of a sentence that are followed at once.
        limits: most tokens in each sentence's translation.

    Raises:
        ValueError: a single sentence might not fit.
    """
    memory = machine_memory()
    for batch in batches:
        limit = max(limits[index] for index in batch)
        needed = check_search_memory(configs, beam, limit)
        most = max(1, memory // SHARE // needed)
        for start in range(0, len(batch), most):
            yield batch[start : start + most]
