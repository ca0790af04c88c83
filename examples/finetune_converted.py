"""A Hugging Face language model that was trained with softmax, converted to ReLA and fine-tuned.

A small Llama, built from its config, learns the text of examples/language_model.py with softmax.
Then its attention is converted and calibrated on a few batches of the text, and training continues.
Prints the loss on held-out texts after several numbers of updates, and the loss before conversion.

    python examples/finetune_converted.py --attention rela-g
    python examples/finetune_converted.py --attention rela-i --no-calibrate

Needs the extra relakit[hf]; nothing is downloaded.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from attention_choices import CHOICES, attention_rates
from language_model import BatchSettings, Corpus, held_out_loss, next_token_loss
from texts import describe, read_texts
from torch import Tensor
from train_loop import print_progress, train
from transformers import LlamaConfig, LlamaForCausalLM

import relakit
import relakit.hf

VOCABULARY = 1024
BASE_STEPS, BASE_RATE = 600, 3e-3
STEPS, RATE = 1000, 3e-4
BASE_BATCH, BATCH = BatchSettings(rows=16), BatchSettings(rows=8)
MEASURED_AT = (0, 10, 30, 100, 300, 1000)
"""Updates after which the loss is measured."""
CALIBRATION_BATCHES = 4


def make_model(seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=4,
            num_attention_heads=4,
            max_position_embeddings=512,
            tie_word_embeddings=True,
        )
    )


def loss_on_batches(
    model: LlamaForCausalLM, corpus: Corpus, batch: BatchSettings, seed: int
) -> Callable[[], Tensor]:
    """For `train`: each call returns the loss on a new batch."""
    generator = torch.Generator().manual_seed(seed)

    def next_loss() -> Tensor:
        tokens = corpus.training_batch(batch, generator)
        return next_token_loss(model(tokens[:, :-1]).logits, tokens)

    return next_loss


def train_base(
    corpus: Corpus, seed: int, steps: int, after_step: Callable[[int, float], None]
) -> LlamaForCausalLM:
    """Train the model with softmax."""
    model = make_model(seed)
    next_loss = loss_on_batches(model, corpus, BASE_BATCH, seed)
    train(model, next_loss, steps=steps, learning_rate=BASE_RATE, after_step=after_step)
    return model


def calibration_batches(corpus: Corpus) -> list[Tensor]:
    """Some of the text that the model was trained on: 4,000 tokens are enough."""
    generator = torch.Generator().manual_seed(0)
    return [corpus.training_batch(BATCH, generator) for _ in range(CALIBRATION_BATCHES)]


def loss_of(model: LlamaForCausalLM, corpus: Corpus) -> float:
    """The loss on held-out text, in nats per token."""
    model.eval()
    rows = corpus.held_out_rows(BATCH.length, most=200)
    loss = held_out_loss(lambda tokens: model(tokens).logits, rows)
    model.train()
    return loss


def rates_of(model: LlamaForCausalLM, corpus: Corpus) -> dict[str, float]:
    """The `attention_rates` of a converted model."""
    rows = corpus.held_out_rows(BATCH.length, most=16)
    with torch.no_grad(), relakit.capture(model) as records:
        model(rows[:, :-1])
    return attention_rates(records)


def finetune(
    model: LlamaForCausalLM,
    corpus: Corpus,
    seed: int,
    steps: int,
    after_measuring: Callable[[int, float], None] = lambda step, loss: None,
) -> dict[int, float]:
    """Train further at a constant learning rate; return the held-out loss by number of updates."""
    losses: dict[int, float] = {}

    def after_step(step: int, _: float) -> None:
        if step in MEASURED_AT or step == steps:
            losses[step] = loss_of(model, corpus)
            after_measuring(step, losses[step])

    after_step(0, 0.0)
    # Different batches from those that the base was trained on.
    next_loss = loss_on_batches(model, corpus, BATCH, seed + 1000)
    train(
        model, next_loss, steps=steps, learning_rate=RATE, is_constant=True, after_step=after_step
    )
    return losses


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--attention",
        choices=CHOICES,
        default="rela-g",
        metavar="NAME",
        help=f"one of {', '.join(CHOICES)}",
    )
    parser.add_argument(
        "--no-calibrate", action="store_true", help="leave norms as conversion makes them"
    )
    parser.add_argument(
        "--text",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="UTF-8, texts apart by two blank lines (default: the standard library)",
    )
    parser.add_argument("--base-steps", type=int, default=BASE_STEPS, help="updates with softmax")
    parser.add_argument("--steps", type=int, default=STEPS, help="updates after the conversion")
    parser.add_argument("--seed", type=int, default=1, help="of weights and batches")
    parser.add_argument("--threads", type=int, default=1, help="a model this small gains little")
    arguments = parser.parse_args()
    for name in ("base_steps", "steps", "threads"):
        number = getattr(arguments, name)
        if number < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {number}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    corpus = Corpus(read_texts(arguments.text), VOCABULARY)
    print(f"with softmax, on {describe(arguments.text)}:")
    model = train_base(
        corpus, arguments.seed, arguments.base_steps, print_progress(arguments.base_steps)
    )
    print(f"held-out loss {loss_of(model, corpus):.3f}\nconverted to {arguments.attention}:")
    attention = CHOICES[arguments.attention]
    relakit.hf.convert(model, attention)
    if attention.norm != "none" and not arguments.no_calibrate:
        relakit.calibrate(model, calibration_batches(corpus))
    finetune(
        model,
        corpus,
        arguments.seed,
        arguments.steps,
        lambda step, loss: print(f"{step:5} updates: held-out loss {loss:.3f}", flush=True),
    )
    rates = rates_of(model, corpus)
    print(f"attention: zeros {rates['zeros']:.1%}, null queries {rates['nulls']:.1%}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None
