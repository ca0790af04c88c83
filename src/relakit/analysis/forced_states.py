"""The hidden states of a model that is forced to write given translations."""

from dataclasses import dataclass

from torch import Tensor

from relakit.model import Memory, Transformer


@dataclass(frozen=True)
class ForcedStates:
    """The states of a padded batch of pairs; all are ``[pairs, positions, dim]``."""

    source_embedded: Tensor
    """Embedded source tokens, without positions"""
    memory: Tensor
    """The encoder's output for them"""
    target_embedded: Tensor
    """Embedded input tokens of the decoder, without positions"""
    below: Tensor
    """The input of the decoder's last layer"""
    last: Tensor
    """The output of that layer, without the norm at the end of a pre-norm stack"""

    @classmethod
    def of(
        cls, model: Transformer, source: Tensor, target: Tensor, memory: Memory
    ) -> "ForcedStates":
        """Run the decoder; ``memory`` is the encoder's output for ``source``."""
        *_, below, last = model.decoder_states(target, memory)
        return cls(
            source_embedded=model.embedding.without_positions(source, side="source"),
            memory=memory.states,
            target_embedded=model.embedding.without_positions(target, side="target"),
            below=below,
            last=last,
        )
