"""One run: train the model of an example, and measure it."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from relakit.bench.machine import describe_machine
from relakit.files.writing import whole_folder
from task_grid.plan import BASE, Places, Task, TaskResult, TaskRun

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import language_model as lm
import text_classifier as classifier
import texts
from attention_choices import CHOICES
from train_loop import train

Numbers = dict[str, float]
Curve = dict[str, float]
NextLoss = Callable[[], Tensor]


def run_task(run: TaskRun, places: Places) -> TaskResult:
    """Train and measure."""
    torch.set_num_threads(1)
    source: Path | Sequence[Path] | None = places.text
    work = _language_model
    if run.task == "classifier":
        source, work = places.labelled, _classifier
        _task(places.labelled)  # reading is not part of what is measured
    else:
        work = _language_model if run.task == "language-model" else _fine_tuning
        _corpus(places.text)
    start = time.process_time()
    numbers, curve = work(run, places)
    return TaskResult(
        run=run,
        data=texts.describe(source),
        machine=describe_machine(),
        cpu_seconds=time.process_time() - start,
        numbers=numbers,
        curve=curve,
    )


def model_and_loss(
    task: Task, attention: str, seed: int, places: Places
) -> tuple[nn.Module, NextLoss]:
    """A new model, and its loss on one batch after another."""
    if task == "classifier":
        return _new_classifier(attention, seed, places)
    return _new_language_model(attention, seed, places)


@cache
def _corpus(paths: tuple[Path, ...]) -> lm.Corpus:
    return lm.Corpus(texts.read_texts(paths), lm.ModelSettings.vocabulary)


@cache
def _task(path: Path | None) -> tuple[classifier.Task, Numbers]:
    """The texts, and the accuracies to compare with."""
    training, held_out = texts.read_labelled(path)
    references = {
        "most_frequent_label": classifier.majority_accuracy(held_out, training),
        "bag_of_words": classifier.bag_of_words_accuracy(held_out, training),
    }
    task = classifier.Task(training, held_out, classifier.ModelSettings.vocabulary)
    return task, references


def _new_language_model(
    attention: str, seed: int, places: Places
) -> tuple[lm.LanguageModel, NextLoss]:
    torch.manual_seed(seed)
    model = lm.LanguageModel(lm.ModelSettings(attention=CHOICES[attention]))
    return model, lm.loss_on_batches(model, _corpus(places.text), lm.BatchSettings(), seed)


def _new_classifier(
    attention: str, seed: int, places: Places
) -> tuple[classifier.TextClassifier, NextLoss]:
    task, _ = _task(places.labelled)
    torch.manual_seed(seed)
    settings = classifier.ModelSettings(attention=CHOICES[attention])
    model = classifier.TextClassifier(settings, len(task.labels))
    batch_size = classifier.BATCH_SIZE
    return model, classifier.loss_on_batches(model, task, settings.length, batch_size, seed)


def _language_model(run: TaskRun, places: Places) -> tuple[Numbers, Curve]:
    model, next_loss = _new_language_model(run.attention, run.seed, places)
    train(model, next_loss, steps=run.steps, learning_rate=lm.LEARNING_RATE)
    return lm.measure(model, _corpus(places.text), lm.BatchSettings.length), {}


def _classifier(run: TaskRun, places: Places) -> tuple[Numbers, Curve]:
    model, next_loss = _new_classifier(run.attention, run.seed, places)
    train(model, next_loss, steps=run.steps, learning_rate=classifier.LEARNING_RATE)
    task, references = _task(places.labelled)
    return classifier.measure(model, task, classifier.ModelSettings.length) | references, {}


def _fine_tuning(run: TaskRun, places: Places) -> tuple[Numbers, Curve]:
    import finetune_converted as tuning  # transformers is an optional extra
    from transformers import LlamaForCausalLM

    from task_grid.starts import converted

    corpus = _corpus(places.text)
    steps = run.base_steps or run.steps
    folder = places.models / f"base-seed{run.seed}-{steps}"
    if run.start == BASE or not folder.exists():  # results may come from elsewhere, without models
        base = tuning.train_base(corpus, run.seed, steps, lambda step, loss: None)
        with whole_folder(folder) as unfinished:
            base.save_pretrained(unfinished)
    base = LlamaForCausalLM.from_pretrained(folder)
    if run.start == BASE:
        return {"loss": tuning.loss_of(base, corpus)}, {}
    assert run.start is not None
    torch.manual_seed(run.seed)  # for the parameters that conversion adds
    model = converted(base, CHOICES[run.attention], run.start, tuning.calibration_batches(corpus))
    losses = tuning.finetune(model, corpus, run.seed, run.steps)
    rates = tuning.rates_of(model, corpus)
    return {"loss": losses[run.steps], **rates}, {str(n): loss for n, loss in losses.items()}
