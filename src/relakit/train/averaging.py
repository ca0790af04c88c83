"""A model from checkpoints: the mean of their weights, in a model directory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from relakit.data.prepared_reader import PreparedCorpus
from relakit.data.tokenizer import Tokenizer
from relakit.data.tokenizer_pair import (
    TOKENIZER_FILE,
    Tokenizers,
    load_tokenizers,
)
from relakit.model.description import ModelAbout, check_model_folder
from relakit.model.weight_shapes import Shapes, read_shapes
from relakit.train.checkpoint import (
    CHECKPOINT_NAMES,
    WEIGHTS,
    Checkpoint,
    find_checkpoints,
    open_checkpoint,
)
from relakit.train.corpus import languages, learn_languages
from relakit.train.recipe import Recipe, TrainingSection
from relakit.train.result import read_verdict
from relakit.train.resume import read_recipe
from relakit.train.run_folder import CHECKPOINTS, CORPUS, MODEL, RECIPE, RESULT

if TYPE_CHECKING:  # wrong names and folders are reported before torch is loaded
    from torch import Tensor

    from relakit.model.transformer import Transformer

EMBEDDING: Final = "embedding.weight"
"""The weight with one row per vocabulary entry."""


@dataclass(frozen=True)
class AveragedModel:
    """A model directory and the checkpoints it was made from."""

    folder: Path
    checkpoints: tuple[Checkpoint, ...]


def average_weights(checkpoints: Sequence[Checkpoint]) -> "dict[str, Tensor]":
    """The mean of the checkpoints' weights, summed in double precision.

    Raises:
        ValueError: there are no checkpoints, one is damaged, or they belong to different models.
    """
    if not checkpoints:
        raise ValueError("there are no checkpoints to average")
    sums: dict[str, Tensor] = {}
    for checkpoint in checkpoints:
        weights = checkpoint.weights()
        if sums:
            _check_alike(checkpoints[0], _shapes(sums), checkpoint, _shapes(weights))
        for name, tensor in weights.items():
            wide = tensor.double()
            sums[name] = sums[name] + wide if name in sums else wide
    return {name: (total / len(checkpoints)).float() for name, total in sums.items()}


def checkpoints_of_model(
    folder: Path, training: TrainingSection, *, is_finished: bool
) -> list[Checkpoint]:
    """The checkpoints that make a run's model: the last few, or without averaging the last one.

    Before the run is finished, a checkpoint that a signal asked for counts too. If there are fewer
    than the recipe averages, only the last one is used: those of the first updates do not help.
    """
    found = find_checkpoints(folder, interrupted=not is_finished)
    wanted = training.keep if training.average else 1
    return found[-wanted:] if is_finished or len(found) >= wanted else found[-1:]


def average_run(
    run: Path,
    out: Path,
    *,
    names: Sequence[str] = (),
    last: int | None = None,
    tokenizer: Path | None = None,
    replace: bool = False,
) -> AveragedModel:
    """Write a model directory with the mean of a run's checkpoints, finished or not.

    Args:
        run: the run's folder.
        out: the model directory.
        names: which checkpoints: names or numbers of updates in the run's folder, or paths.
        last: how many of the last checkpoints, instead of ``names``. Without either, the ones that
            the run's own model would be made from.
        tokenizer: the run's tokenizer, if relakit cannot find it.
        replace: replace an existing model directory.

    Raises:
        ValueError: ``run`` is not a run, lacks the checkpoints, or they do not fit together.
        OSError: ``out`` holds something else, or cannot be written.
    """
    recipe = read_recipe(run)
    if recipe is None:
        raise ValueError(f"{run} is no training run: it has no {RECIPE}")
    check_model_folder(out, replace=replace)
    checkpoints = _choose(run, recipe, names, last)
    corpus = _corpus(run, recipe, checkpoints[-1])
    tokenizer_file, tokenizers = _tokenizers(run, recipe, corpus, tokenizer)
    shapes = [read_shapes(checkpoint.folder / WEIGHTS) for checkpoint in checkpoints]
    for checkpoint, others in zip(checkpoints[1:], shapes[1:], strict=True):
        _check_alike(checkpoints[0], shapes[0], checkpoint, others)
    _check_vocabulary(shapes[0], tokenizer_file, tokenizers)
    model = _empty_model(recipe, shapes[0], run, tokenizers)
    weights = average_weights(checkpoints)
    source, target = languages(recipe.data, corpus)
    about = ModelAbout(
        source_language=source,
        target_language=target,
        longest_sentence=None if corpus is None else corpus.train.longest,
        training={
            "updates": checkpoints[-1].update,
            "averaged_checkpoints": len(checkpoints),
            "checkpoints": [checkpoint.folder.name for checkpoint in checkpoints],
            "relakit": version("relakit"),
        },
    )
    from relakit.model.directory import save_model

    learned = None if corpus is None else learn_languages(corpus)
    save_model(out, model, tokenizers, about, weights=weights, languages=learned)
    return AveragedModel(out, tuple(checkpoints))


def _choose(run: Path, recipe: Recipe, names: Sequence[str], last: int | None) -> list[Checkpoint]:
    if names and last is not None:
        raise ValueError("name the checkpoints or say how many of the last; not both")
    found = find_checkpoints(run / CHECKPOINTS, interrupted=True)
    if names:
        chosen = {checkpoint.folder: checkpoint for checkpoint in
                  (_named(name, run, found) for name in names)}  # fmt: skip
        return sorted(chosen.values(), key=lambda checkpoint: checkpoint.update)
    if not found:
        raise ValueError(f"{run} has no checkpoints yet; name some, or let it train")
    if last is None:
        is_finished = read_verdict(run / RESULT) == "finished"
        return checkpoints_of_model(run / CHECKPOINTS, recipe.training, is_finished=is_finished)
    if not 1 <= last <= len(found):
        raise ValueError(
            f"{run} has {len(found)} checkpoints, so the last {last} cannot be taken; take fewer"
        )
    return found[-last:]


def _named(name: str, run: Path, found: Sequence[Checkpoint]) -> Checkpoint:
    """The checkpoint with this name, update number or path."""
    for checkpoint in found:
        is_number = name.isdecimal() and int(name) == checkpoint.update
        if is_number or name == checkpoint.folder.name:
            return checkpoint
    if Path(name).is_dir():
        return open_checkpoint(Path(name))
    known = ", ".join(checkpoint.folder.name for checkpoint in found) or "none"
    raise ValueError(
        f"there is no checkpoint {name!r}, neither in {run / CHECKPOINTS} nor as a folder "
        f"({CHECKPOINT_NAMES}); there are: {known}"
    )


def _tokenizers(
    run: Path, recipe: Recipe, corpus: PreparedCorpus | None, given: Path | None
) -> tuple[Path, Tokenizers]:
    """The file of a run's target tokenizer, and the run's tokenizers."""
    if given is not None:
        if recipe.data.vocabulary == "separate":
            raise ValueError(
                f"--tokenizer {given} is one tokenizer, and {run} has one for each language; put "
                f"its corpus back into {_corpus_folder(run, recipe)}"
            )
        return given, Tokenizer.load(given)
    if corpus is not None:
        return corpus.folder / TOKENIZER_FILE, corpus.tokenizers
    path = run / MODEL / TOKENIZER_FILE
    if path.is_file():
        return path, load_tokenizers(path.parent)
    expected = _corpus_folder(run, recipe) / TOKENIZER_FILE
    if recipe.data.vocabulary == "separate":
        advice = f"put the corpus that it was trained on back into {expected.parent}"
    else:
        advice = "name the run's tokenizer with --tokenizer"
    if expected.is_file():
        raise ValueError(f"{expected} is of another corpus than {run} was trained on; {advice}")
    raise ValueError(f"the tokenizer of {run} is not where it was, in {expected}; {advice}")


def _corpus_folder(run: Path, recipe: Recipe) -> Path:
    return recipe.data.prepared or run / CORPUS


def _corpus(run: Path, recipe: Recipe, checkpoint: Checkpoint) -> PreparedCorpus | None:
    """The corpus that a checkpoint was trained on, if it is still there.

    Raises:
        ValueError: the checkpoint is damaged.
    """
    trained_on = checkpoint.state().corpus
    try:
        found = PreparedCorpus.load(_corpus_folder(run, recipe), reverse=recipe.data.reverse)
        return found if found.fingerprint == trained_on else None
    except (OSError, ValueError):
        return None


def _check_vocabulary(shapes: Shapes, tokenizer_file: Path, tokenizers: Tokenizers) -> None:
    vocabulary, _ = tokenizers.sizes
    rows = (shapes.get(EMBEDDING) or (0,))[0]
    if rows != vocabulary:
        raise ValueError(
            f"{tokenizer_file} has {vocabulary:,} tokens, the checkpoints are of a model with "
            f"{rows:,}: it is not their tokenizer; name that with --tokenizer"
        )


def _empty_model(
    recipe: Recipe, shapes: Shapes, run: Path, tokenizers: Tokenizers
) -> "Transformer":
    """The model that the weights belong to, without weights of its own."""
    import torch

    from relakit.model.transformer import Transformer

    vocabulary, source_vocabulary = tokenizers.sizes
    with torch.device("meta"):
        model = Transformer(recipe.model.config(vocabulary, source_vocabulary))
    different = _first_difference(shapes, _shapes(model.state_dict()))
    if different is not None:
        name, found, expected = different
        raise ValueError(
            f"the checkpoints are not of the model in {run / RECIPE}: {name} has shape {found} in "
            f"them, and {expected} in that model; put back the recipe that was there"
        )
    return model


def _check_alike(
    first: Checkpoint, shapes: Shapes, other: Checkpoint, other_shapes: Shapes
) -> None:
    different = _first_difference(shapes, other_shapes)
    if different is not None:
        name, one, another = different
        raise ValueError(
            f"{first.folder} and {other.folder} are of different models: {name} has shape {one} in "
            f"one, {another} in the other"
        )


def _shapes(tensors: Mapping[str, "Tensor"]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _first_difference(one: Shapes, other: Shapes) -> tuple[str, str, str] | None:
    """The first tensor whose shapes differ, with both shapes; None if all match."""
    for name in sorted({*one, *other}):
        shapes = [str(shapes.get(name, "none")) for shapes in (one, other)]
        if shapes[0] != shapes[1]:
            return name, shapes[0], shapes[1]
    return None
