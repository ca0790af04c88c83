"""Try `relakit.hf.convert` on every architecture of transformers, as a tiny model from its config.

    python benchmarks/hf_architectures.py --out docs/huggingface.csv [bert llama ...]

For each one: is it converted, does softmax through our function match its eager attention, and does
ReLA-g give numbers and gradients? Sizes and inputs are made up from the names in the config. Where
that fails, the table says so: it is then a fact about this script, not about the model.
"""

import argparse
import collections
import copy
import csv
import io
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
import transformers
from torch import Tensor
from transformers import AutoConfig, AutoModel
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

import relakit.hf
from relakit.files.writing import write_whole
from relakit.hf.interface_modules import interface_modules

NAMES_BY_SIZE: Final = {
    1: "n_group topk_group",
    2: "encoder_layers decoder_layers num_encoder_layers num_decoder_layers num_key_value_heads "
    "depth num_experts_per_tok",
    4: "num_hidden_layers num_layers n_layer n_layers num_attention_heads num_heads n_head n_heads "
    "encoder_attention_heads decoder_attention_heads num_experts num_local_experts "
    "n_routed_experts qk_rope_head_dim",
    8: "head_dim d_kv patch_size kv_lora_rank q_lora_rank qk_nope_head_dim v_head_dim",
    16: "moe_intermediate_size shared_expert_intermediate_size",
    32: "hidden_size d_model dim n_embd embed_dim embedding_size encoder_embed_dim image_size "
    "encoder_hidden_size decoder_hidden_size attention_hidden_size",
    48: "hidden_dim intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim",
    64: "max_position_embeddings",
    99: "vocab_size",
}
SIZES: Final = {name: size for size, names in NAMES_BY_SIZE.items() for name in names.split()}
LAYERS: Final = 4
LARGEST: Final = 60_000_000
"""A model with more parameters is converted, but not run."""
SECONDS: Final = 25
TOLERANCE: Final = 1e-4


class Outcome(NamedTuple):
    """The outcome for one architecture."""

    answer: str
    detail: str = ""


class _TooLongError(Exception):
    """The architecture took more than SECONDS."""


def try_architecture(name: str) -> Outcome:
    """One row of the table."""
    try:
        config = AutoConfig.for_model(name)
        _shrink(config)
        with torch.device("meta"):
            sketch = AutoModel.from_config(config)
        parameters = sum(p.numel() for p in sketch.parameters())
        modules = interface_modules(sketch)
        model = sketch if parameters > LARGEST else AutoModel.from_config(config).eval()
    except _TooLongError:
        raise
    except Exception as error:
        return Outcome("not tried: no tiny config", _first_line(error))
    try:
        names = relakit.hf.convert(model)
    except ValueError as error:
        return Outcome("refused", _first_line(error))
    classes = ", ".join(sorted({type(module).__name__ for module in modules}))
    if parameters > LARGEST:
        return Outcome("converted, not run: too large", classes)
    return _run(model, config, f"{classes}: {len(names)} modules")


def _run(model: Any, config: Any, classes: str) -> Outcome:
    inputs = _inputs_for(model)
    try:
        eager = AutoModel.from_config(copy.deepcopy(config), attn_implementation="eager").eval()
        eager.load_state_dict(_without_parts(model.state_dict()))
        expected = _output_of(eager, inputs)
    except _TooLongError:
        raise
    except Exception:
        return Outcome("converted, not run: no fitting input", classes)
    try:
        relakit.hf.convert(model, "softmax")
        difference = (_output_of(model, inputs) - expected).abs().max() / expected.abs().max()
        relakit.hf.convert(model)
        output = _output_of(model, inputs)
        torch.autograd.backward(output.square().sum())
    except _TooLongError:
        raise
    except Exception as error:
        refused = any(x in str(error) for x in ("cannot use the attention", "passes no mask"))
        return Outcome("refused at the first call" if refused else "fails", _first_line(error))
    added = [p for name, p in model.named_parameters() if ".rela." in name and p.grad is not None]
    if not float(difference) < TOLERANCE:
        if _sdpa_differs_as_much(eager, inputs, expected, float(difference)):
            return Outcome("works", f"as SDPA does; eager attention differs from both: {classes}")
        return Outcome("differs", f"softmax by {float(difference):.1e}: {classes}")
    if not (added and all(bool(p.grad.isfinite().all()) for p in added)):
        return Outcome("fails", f"no gradients: {classes}")
    return Outcome("works", classes)


def _without_parts(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if ".rela." not in f".{name}"}


def _sdpa_differs_as_much(
    eager: Any, inputs: dict[str, Tensor], expected: Tensor, difference: float
) -> bool:
    """Whether transformers' own SDPA differs from its eager attention by as much."""
    with suppress(Exception):
        eager.set_attn_implementation("sdpa")
        theirs = (_output_of(eager, inputs) - expected).abs().max() / expected.abs().max()
        return abs(float(theirs) - difference) < TOLERANCE
    return False


def _shrink(config: Any) -> None:
    """Shrink every size that has a known name, and cut lists of layers accordingly."""
    counts = ("num_hidden_layers", "num_layers", "n_layer", "encoder_layers")
    layers = next((n for name in counts if isinstance(n := getattr(config, name, None), int)), None)
    for name, size in SIZES.items():
        old = getattr(config, name, None)
        if isinstance(old, int) and not isinstance(old, bool) and old > size:
            with suppress(Exception):  # some of these are properties
                setattr(config, name, size)
    for name, value in list(vars(config).items()):
        if name == "vocab_size" and value is None:
            config.vocab_size = SIZES[name]
        elif isinstance(value, list) and layers is not None and len(value) == layers:
            setattr(config, name, value[:LAYERS])
        elif name.endswith("token_id") and isinstance(value, int):
            setattr(config, name, min(value, 2))
    for name in config.sub_configs:
        part = getattr(config, name, None)
        if part is not None:
            _shrink(part)


def _inputs_for(model: Any) -> dict[str, Tensor]:
    torch.manual_seed(0)
    config, name = model.config, model.main_input_name
    inputs = {"input_ids": torch.randint(3, 90, (2, 9))}
    if name == "pixel_values":
        size = getattr(config, "image_size", 32)
        width = size if isinstance(size, int) else size[0]
        channels = getattr(config, "num_channels", 3)
        inputs = {name: torch.randn(2, channels, width, width)}
    elif name == "input_features":
        frames = 2 * getattr(config, "max_source_positions", 100)
        inputs = {name: torch.randn(2, getattr(config, "num_mel_bins", 80), frames)}
    elif name == "input_values":
        inputs = {name: torch.randn(2, 4000)}
    if getattr(config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = torch.randint(3, 90, (2, 7))
    return inputs


def _output_of(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    torch.manual_seed(1)
    outputs = model(**inputs)
    last: Tensor | None = getattr(outputs, "last_hidden_state", None)
    if last is not None:
        return last
    floats = [x for x in outputs.values() if isinstance(x, Tensor) and x.is_floating_point()]
    return floats[0]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    without_paths = re.sub(r" from '/[^']*'", "", lines[0])
    return f"{type(error).__name__}: {without_paths[:160]}"


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="model types of transformers; all if none")
    parser.add_argument("--out", type=Path, help="write the table there, as CSV")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("architecture", "answer", "detail"))
    counts: collections.Counter[str] = collections.Counter()
    for name in arguments.names or MODEL_MAPPING_NAMES:
        try:
            with _time_limit():
                outcome = try_architecture(name)
        except _TooLongError:
            outcome = Outcome("not tried: no tiny config", f"more than {SECONDS} seconds")
        counts[outcome.answer] += 1
        writer.writerow((name, *outcome))
        print(name, *outcome, sep="\t", flush=True)
    if arguments.out is not None:
        write_whole(arguments.out, table.getvalue().encode())
    for answer, count in counts.most_common():
        print(f"{count:4}  {answer}")


if __name__ == "__main__":
    main()
