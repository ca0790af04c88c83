"""Models and tokenizers in folders: nothing is downloaded, and none of their code runs."""

import warnings
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel

from relakit.hf.convert import convert
from relakit.hf.loading import class_to_load, from_pretrained
from relakit.hf.saved_choice import is_converted

_TOKENIZER_FILES: Final = ("tokenizer*", "vocab*", "*.model", "merges.txt")
"""Without any of these, transformers would create an empty tokenizer for some models."""


def load_model(folder: Path, *, unconverted: bool = False) -> PreTrainedModel:
    """Load a model that was converted and saved.

    Args:
        folder: what ``save_pretrained`` wrote, with safetensors.
        unconverted: also load a model that was not converted; it computes softmax, as before, and
            its attention can be recorded.

    Raises:
        ValueError: the model cannot be loaded, or was not converted.
    """
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers checks configs with errors of many kinds
        raise ValueError(f"the config of {folder} cannot be read: {_first_line(error)}") from None
    if not is_converted(config) and not unconverted:
        raise ValueError(
            f"{folder} was not converted: convert the model with relakit.hf.convert and save it, "
            "or look at it as it is, with softmax, by --unconverted"
        )
    load = from_pretrained if is_converted(config) else class_to_load(config).from_pretrained
    try:
        model, info = load(
            folder, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    except SafetensorError:
        raise ValueError(
            f"{folder} cannot be loaded: its weights (*.safetensors) are damaged or cut short"
        ) from None
    except Exception as error:  # so does a model for settings that cannot be
        raise ValueError(f"{folder} cannot be loaded: {_first_line(error)}") from None
    assert isinstance(model, PreTrainedModel)
    missing = sorted(info["missing_keys"])
    if missing:
        warnings.warn(
            f"{folder} has no weights for {len(missing)} parameters, which are random now, such as "
            f"{missing[0]}",
            stacklevel=2,
        )
    if not is_converted(config):
        convert(model, "softmax")
    return model.eval()


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer from a folder.

    Raises:
        ValueError: the folder has no tokenizer that can be read.
    """
    advice = f"save it there with tokenizer.save_pretrained({str(folder)!r})"
    if not any(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern)):
        raise ValueError(f"{folder} has no tokenizer; {advice}, or name its folder by --tokenizer")
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    # Each tokenizer raises its own errors for files that it does not understand.
    except Exception as error:
        raise ValueError(
            f"the tokenizer of {folder} cannot be read: {_first_line(error)}"
        ) from None


def _first_line(error: Exception) -> str:
    """transformers' error message without its advice to download something."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
