"""A Hugging Face language model with ReLA: convert, train, generate, look inside, save and load.

A small Llama, built from its config, learns generated English sentences word by word, once with
softmax and once with ReLA-g. Prints the loss on held-out sentences and how sparse the attention is.
With --report, writes a page that shows the attention of both models, head by head.

    python examples/hf_language_model.py --steps 300 --report report

Needs the extra relakit[hf]; nothing is downloaded.
"""

import argparse
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import relakit.hf
from relakit.data.generated import generate_pairs, join_words

HELD_OUT = 200
SHOWN = 20
"""Held-out sentences in the report"""
LENGTH = 24
"""The most tokens in a sentence; longer ones are cut."""


def make_tokenizer(sentences: list[str]) -> PreTrainedTokenizerFast:
    """One token per word, between begin and end tokens."""
    split = pre_tokenizers.Whitespace()
    words = sorted({word for s in sentences for word, _ in split.pre_tokenize_str(s)})
    vocabulary = {token: n for n, token in enumerate(["<pad>", "<s>", "</s>", "<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = split
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )


def make_model(vocabulary: int, attention: str) -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config)
    relakit.hf.convert(model, attention)  # before the optimizer is built
    return model


def loss_on(model: LlamaForCausalLM, batch: dict[str, Tensor]) -> Tensor:
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return model(**batch, labels=labels).loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300, help="updates (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--report", metavar="DIR", help="where to write a page about both models")
    arguments = parser.parse_args()
    if min(arguments.steps, arguments.batch_size) < 1:
        parser.error("--steps and --batch-size must be at least 1")

    torch.set_num_threads(1)  # a model this small is slower with more
    count = HELD_OUT + arguments.steps * arguments.batch_size
    sentences = [join_words(pair.source) for pair in generate_pairs(count, seed=1)]
    tokenizer = make_tokenizer(sentences)

    def encode(texts: list[str]) -> dict[str, Tensor]:
        options = {"padding": True, "truncation": True, "max_length": LENGTH}
        return dict(tokenizer(texts, return_tensors="pt", **options))

    held_out, training = sentences[:HELD_OUT], sentences[HELD_OUT:]
    trained = {}
    for attention in ("softmax", "rela-g"):
        model = make_model(len(tokenizer), attention)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        model.train()
        for step in range(arguments.steps):
            start = step * arguments.batch_size
            loss = loss_on(model, encode(training[start : start + arguments.batch_size]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            held_out_loss = loss_on(model, encode(held_out)).item()
        result = relakit.hf.analyze(model, tokenizer, held_out[:50]).result
        zeros = torch.tensor(result.sparsity).mean().item()
        nulls = torch.tensor(result.null_rate).mean().item()
        print(
            f"{attention:8} loss {held_out_loss:.3f}  zeros {zeros:.0%}  null queries {nulls:.0%}"
        )
        trained[attention] = model

    prompt = tokenizer("The", return_tensors="pt")["input_ids"][:, :-1]  # without the end token
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = relakit.hf.from_pretrained(folder).eval()
    written = loaded.generate(prompt, max_new_tokens=20, do_sample=False)
    print("it writes:", tokenizer.decode(written[0], skip_special_tokens=True))
    if arguments.report is not None:
        shown = {"ReLA-g": trained["rela-g"], "softmax": trained["softmax"]}
        report = relakit.hf.report(shown, tokenizer, held_out[:SHOWN], arguments.report)
        print("the report:", report.page)


if __name__ == "__main__":
    main()
