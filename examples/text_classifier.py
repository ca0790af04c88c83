"""A text classifier from scratch, with the attention of your choice.

It reads lines ``label<TAB>text``. Without a file, it reads functions of Python's standard library
and learns to tell from a function's body which package it is from. Prints the accuracy on held-out
texts, beside the accuracies of the most frequent label and of a linear model on the bag of words,
and how much of the attention is exactly zero, how many queries attend to nothing, and the share of
the first token.

    python examples/text_classifier.py --attention rela-g
    python examples/text_classifier.py --attention softmax --data reviews.tsv

The model is PyTorch's own `nn.TransformerEncoder`; one line changes its attention.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from attention_choices import CHOICES, attention_rates
from texts import Labelled, describe, read_labelled, train_tokenizer
from torch import Tensor, nn
from train_loop import print_progress, train

import relakit

PAD = 0  # the id of END, which no text contains
BATCH_SIZE = 16
LEARNING_RATE = 2e-3


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    attention: relakit.AttentionSpec
    vocabulary: int = 2000
    length: int = 128
    """The most tokens to read of a text: the first ones, or in training any part."""
    dim: int = 64
    heads: int = 4
    layers: int = 2
    dropout: float = 0.1


class TextClassifier(nn.Module):
    """Embeddings, positions, PyTorch's encoder, the mean over all tokens, and a linear layer."""

    def __init__(self, settings: ModelSettings, labels: int) -> None:
        super().__init__()
        dim = settings.dim
        self.embedding = nn.Embedding(settings.vocabulary, dim, padding_idx=PAD)
        self.positions = nn.Embedding(settings.length, dim)
        layer = nn.TransformerEncoderLayer(
            dim, settings.heads, 4 * dim, settings.dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, settings.layers, enable_nested_tensor=False)
        self.last_norm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, labels)
        relakit.convert_attention(self, settings.attention)

    def forward(self, tokens: Tensor) -> Tensor:
        """From token ids ``[batch, positions]`` to scores ``[batch, labels]``."""
        is_token = tokens != PAD
        x = self.embedding(tokens) + self.positions.weight[: tokens.size(1)]
        x = self.last_norm(self.encoder(x, src_key_padding_mask=~is_token))
        shares = is_token / is_token.sum(1, keepdim=True)  # [batch, positions]
        return self.output((x * shares[..., None]).sum(1))


class Task:
    """Labelled texts as numbers."""

    def __init__(
        self, training: Sequence[Labelled], held_out: Sequence[Labelled], vocabulary: int
    ) -> None:
        self.tokenizer = train_tokenizer([example.text for example in training], vocabulary)
        self.labels = sorted({example.label for example in training})
        unknown = {example.label for example in held_out} - set(self.labels)
        if unknown:
            raise ValueError(f"the label {min(unknown)!r} has no text to train on")
        self.training = self._encoded(training)
        self.held_out = self._encoded(held_out)

    def _encoded(self, examples: Sequence[Labelled]) -> list[tuple[list[int], int]]:
        encodings = self.tokenizer.encode_batch([example.text for example in examples])
        numbers = {label: n for n, label in enumerate(self.labels)}
        return [(e.ids, numbers[x.label]) for e, x in zip(encodings, examples, strict=True)]

    def training_batch(
        self, size: int, length: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Some texts, ``[size, up to length]``, and their labels."""
        examples = []
        for number in torch.randint(len(self.training), (size,), generator=generator).tolist():
            tokens, label = self.training[number]
            spare = max(0, len(tokens) - length)
            start = int(torch.randint(spare + 1, (), generator=generator))
            examples.append((tokens[start:], label))
        return pad(examples, length)


def pad(examples: Sequence[tuple[list[int], int]], length: int) -> tuple[Tensor, Tensor]:
    """Tokens, cut or padded to one length, and labels."""
    rows = [torch.tensor(tokens[:length]) for tokens, _ in examples]
    tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return tokens, torch.tensor([label for _, label in examples])


def loss_on_batches(
    model: TextClassifier, task: Task, length: int, batch_size: int, seed: int
) -> Callable[[], Tensor]:
    """For `train`: each call returns the loss on a new batch."""
    generator = torch.Generator().manual_seed(seed)

    def next_loss() -> Tensor:
        tokens, labels = task.training_batch(batch_size, length, generator)
        return F.cross_entropy(model(tokens), labels)

    return next_loss


@torch.no_grad()
def measure(model: TextClassifier, task: Task, length: int) -> dict[str, float]:
    """Accuracy and loss on the held-out texts, and the rates of `attention_rates`."""
    model.eval()
    by_length = sorted(task.held_out, key=lambda example: len(example[0]))  # to keep padding low
    scores, labels = [], []
    for start in range(0, len(by_length), 64):
        tokens, numbers = pad(by_length[start : start + 64], length)
        scores.append(model(tokens))
        labels.append(numbers)
    every, truth = torch.cat(scores), torch.cat(labels)
    tokens, _ = pad(task.held_out[:64], length)
    with relakit.capture(model) as records:
        model(tokens)
    return {
        "accuracy": (every.argmax(-1) == truth).double().mean().item(),
        "loss": F.cross_entropy(every, truth).item(),
        **attention_rates(records, tokens != PAD),
    }


def majority_accuracy(held_out: Sequence[Labelled], training: Sequence[Labelled]) -> float:
    """Accuracy of always answering with the most frequent label in training."""
    label, _ = Counter(example.label for example in training).most_common(1)[0]
    return sum(example.label == label for example in held_out) / len(held_out)


def bag_of_words_accuracy(held_out: Sequence[Labelled], training: Sequence[Labelled]) -> float:
    """Accuracy of a linear model that knows which words are in the whole text, but not where."""
    words = [set(re.findall(r"\w+|[^\w\s]", example.text)) for example in training]
    known = {
        w: n for n, (w, _) in enumerate(Counter(w for s in words for w in s).most_common(5000))
    }
    labels = {label: n for n, label in enumerate(sorted({x.label for x in training}))}

    def features(examples: Sequence[Labelled]) -> tuple[Tensor, Tensor]:
        present = torch.zeros(len(examples), len(known))
        for row, example in enumerate(examples):
            found = set(re.findall(r"\w+|[^\w\s]", example.text))
            present[row, [known[word] for word in found if word in known]] = 1.0
        return present, torch.tensor([labels[example.label] for example in examples])

    present, truth = features(training)
    linear = nn.Linear(len(known), len(labels))
    nn.init.zeros_(linear.weight)
    optimizer = torch.optim.AdamW(linear.parameters(), lr=0.01, weight_decay=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(linear(present), truth).backward()
        optimizer.step()
    present, truth = features(held_out)
    return (linear(present).argmax(-1) == truth).double().mean().item()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    model = ModelSettings
    parser.add_argument(
        "--attention",
        choices=CHOICES,
        default="rela-g",
        metavar="NAME",
        help=f"one of {', '.join(CHOICES)}",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="UTF-8, lines label<TAB>text (default: functions of the standard library)",
    )
    parser.add_argument("--vocabulary", type=int, default=model.vocabulary, help="of byte pairs")
    parser.add_argument("--length", type=int, default=model.length, help="tokens of a text")
    parser.add_argument("--steps", type=int, default=1200, help="updates")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE, help="texts of an update")
    parser.add_argument("--seed", type=int, default=1, help="of weights and batches")
    parser.add_argument("--threads", type=int, default=1, help="a model this small gains little")
    arguments = parser.parse_args()
    for name in ("length", "steps", "batch_size", "threads"):
        number = getattr(arguments, name)
        if number < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {number}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    training, held_out = read_labelled(arguments.data)
    task = Task(training, held_out, arguments.vocabulary)
    torch.manual_seed(arguments.seed)
    settings = ModelSettings(
        attention=CHOICES[arguments.attention],
        vocabulary=arguments.vocabulary,
        length=arguments.length,
    )
    model = TextClassifier(settings, len(task.labels))
    print(
        f"{arguments.attention}: {sum(p.numel() for p in model.parameters()):,} parameters, "
        f"{len(training):,} texts of {describe(arguments.data)}, {len(task.labels)} labels"
    )
    train(
        model,
        loss_on_batches(model, task, settings.length, arguments.batch_size, arguments.seed),
        steps=arguments.steps,
        learning_rate=LEARNING_RATE,
        after_step=print_progress(arguments.steps),
    )
    result = measure(model, task, settings.length)
    print(
        f"accuracy on {len(held_out):,} held-out texts: {result['accuracy']:.1%} (most frequent "
        f"label {majority_accuracy(held_out, training):.1%}, bag of words "
        f"{bag_of_words_accuracy(held_out, training):.1%})\n"
        f"attention: zeros {result['zeros']:.1%}, null queries {result['nulls']:.1%}, "
        f"on the first token {result['sink']:.1%}"
    )


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
