"""What goes through a model that is made to write given translations."""

from dataclasses import dataclass

from torch import Tensor

from relakit.model import Memory, Transformer


@dataclass(frozen=True)
class ForcedStates:
    """Of some pairs, padded; all are ``[pairs, positions, dim]``."""

    source_embedded: Tensor
    """Source tokens without their positions"""
    memory: Tensor
    """What the encoder made of them"""
    target_embedded: Tensor
    """Input tokens of the decoder without their positions"""
    below: Tensor
    """What the decoder's last layer read"""
    last: Tensor
    """What it wrote; the norm at the end of a pre-norm stack is left out"""

    @classmethod
    def of(
        cls, model: Transformer, source: Tensor, target: Tensor, memory: Memory
    ) -> "ForcedStates":
        """Run the decoder; ``memory`` is what the encoder made of ``source``."""
        *_, below, last = model.decoder_states(target, memory)
        return cls(
            source_embedded=model.embedding.without_positions(source, side="source"),
            memory=memory.states,
            target_embedded=model.embedding.without_positions(target, side="target"),
            below=below,
            last=last,
        )
