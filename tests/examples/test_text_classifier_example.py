"""examples/text_classifier.py."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import text_classifier as classifier
import torch
from attention_choices import CHOICES
from texts import Labelled, read_labelled


@pytest.mark.parametrize("attention", ["rela-g", "sigmoid"])
def test_it_learns_a_word(
    attention: str, run_example: Callable[..., str], labelled_file: Path
) -> None:
    printed = run_example(
        "text_classifier.py", "--attention", attention, "--data", labelled_file, "--steps", "60",
        "--vocabulary", "300",
    )  # fmt: skip
    accuracy = float(re.search(r"held-out texts: ([0-9.]+)%", printed)[1])
    assert accuracy > 90
    assert "bag of words 100.0%" in printed
    assert ("zeros 0.0%" in printed) == (attention == "sigmoid")


@torch.no_grad()
def test_padding_changes_nothing(labelled_file: Path) -> None:
    task = classifier.Task(*read_labelled(labelled_file), 300)
    settings = classifier.ModelSettings(attention=CHOICES["rela-g"], vocabulary=300)
    model = classifier.TextClassifier(settings, 2).eval()
    tokens, labels = classifier.pad(task.held_out[:4], settings.length)
    assert labels.tolist() == [label for _, label in task.held_out[:4]]
    padded = torch.nn.functional.pad(tokens, (0, 5), value=classifier.PAD)
    torch.testing.assert_close(model(padded), model(tokens), rtol=1e-4, atol=1e-5)


def test_batches_show_any_part_of_a_long_text() -> None:
    long = Labelled("a", " ".join(f"w{n}" for n in range(50)))
    task = classifier.Task([long, Labelled("b", "short")], [long], 300)
    generator = torch.Generator().manual_seed(1)
    starts = {
        tuple(row[:2].tolist())
        for _ in range(20)
        for row in task.training_batch(4, 10, generator)[0]
        if row[-1] != classifier.PAD
    }
    assert len(starts) > 5


def test_a_label_without_training() -> None:
    with pytest.raises(ValueError, match="the label 'c' has no text to train on"):
        classifier.Task([Labelled("a", "x"), Labelled("b", "y")], [Labelled("c", "z")], 300)


def test_references() -> None:
    training = [Labelled("a", "dog x"), Labelled("a", "dog y"), Labelled("b", "cat x")]
    held_out = [Labelled("a", "a dog"), Labelled("b", "a cat")]
    assert classifier.majority_accuracy(held_out, training) == 0.5
    assert classifier.bag_of_words_accuracy(held_out, training) == 1.0


def test_a_missing_file_is_one_line(run_example: Callable[..., str]) -> None:
    with pytest.raises(SystemExit, match=r"^error: .*missing\.tsv"):
        run_example("text_classifier.py", "--data", "missing.tsv")
