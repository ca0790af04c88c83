"""A softmax model's weights, named as all peers read them (`benchmarks/peers/weights.py`)."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from relakit.model import ATTENTION_KINDS, ModelConfig, Transformer

_ATTENTIONS = {
    "encoder": {"self": "attention"},
    "decoder": {"self": "attention", "cross": "cross_attention"},
}


def why_no_peer_has_it(config: ModelConfig) -> str | None:
    """The reason why the peers cannot load a model, if any."""
    for kind in ATTENTION_KINDS:
        if config.attention(kind) != "softmax":
            return f"the peers have softmax attention only, not {config.attention(kind)}"
    if config.norm_first:
        return "the peers' models are post-norm"
    for name in ("norm_eps", "source_embedding", "embedding_bias", "first_input", "timescales"):
        theirs, ours = ModelConfig.model_fields[name].default, getattr(config, name)
        if ours != theirs:
            return f"the peers' models have {name} = {theirs!r}, not {ours!r}"
    if config.encoder_layers != config.decoder_layers:
        return (
            f"the peers' models have as many layers in the encoder ({config.encoder_layers}) as "
            f"in the decoder ({config.decoder_layers})"
        )
    return None


def peer_arrays(model: Transformer) -> dict[str, Tensor]:
    """The weights by their names in the peers' files; the joint key-value matrix is split."""
    problem = why_no_peer_has_it(model.config)
    if problem is not None:
        raise ValueError(problem)
    state = model.state_dict()
    arrays = {"embedding": state["embedding.weight"]}
    for stack, attentions in _ATTENTIONS.items():
        for number in range(model.config.encoder_layers):
            ours, theirs = f"{stack}.layers.{number}", f"{stack}.{number}"
            for their_name, our_name in attentions.items():
                attention = _attention(state, f"{ours}.{our_name}")
                arrays |= {f"{theirs}.{their_name}.{n}": x for n, x in attention.items()}
            for kind in ("weight", "bias"):
                for part in ("inner", "outer"):
                    found = state[f"{ours}.feed_forward.{part}.{kind}"]
                    arrays[f"{theirs}.feedforward.{part}.{kind}"] = found
                norm = state[f"{ours}.feed_forward_residual.norm.{kind}"]
                arrays[f"{theirs}.feedforward.norm.{kind}"] = norm
    return {name: x.detach().float().contiguous() for name, x in arrays.items()}


def write_peer_weights(path: Path, model: Transformer) -> None:
    """Write a file of weights for the peers."""
    # Parts of one matrix share its memory, which the format does not allow.
    arrays = {name: x.clone() for name, x in peer_arrays(model).items()}
    save_file(arrays, path, metadata={"heads": str(model.config.heads)})


def _attention(state: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    arrays: dict[str, Tensor] = {}
    for kind in ("weight", "bias"):
        key, value = state[f"{name}.key_value.{kind}"].chunk(2)
        arrays |= {f"key.{kind}": key, f"value.{kind}": value}
        for part in ("query", "output"):
            arrays[f"{part}.{kind}"] = state[f"{name}.{part}.{kind}"]
        arrays[f"norm.{kind}"] = state[f"{name}_residual.norm.{kind}"]
    return arrays
