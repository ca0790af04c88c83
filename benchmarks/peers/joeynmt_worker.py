"""JoeyNMT: its model, training step, loss, optimizer and beam search, on batches given as ids.

Its data loading, logging and validation are left out.
"""

import time
from types import SimpleNamespace
from typing import Any

import joeynmt
import torch
from batches import BEGIN, END, PAD, UNK, Decoding, Ids, decoded, read_batches
from joeynmt.batch import Batch
from joeynmt.builders import build_optimizer
from joeynmt.model import Model, build_model
from joeynmt.search import search
from joeynmt.training import TrainManager
from protocol import Answer, Request, need, serve
from torch import Tensor
from torch_settings import autocast_options, set_threads, tensors
from weights import EPS, Size, Weights, joeynmt_state, read_weights


class IdsOnly:
    """What JoeyNMT's model needs from a vocabulary, without the words.

    JoeyNMT's own class fixes the ids of the special tokens in a different order.
    """

    pad_index, unk_index, bos_index, eos_index, sep_index = PAD, UNK, BEGIN, END, None
    specials = ("<unk>", "<pad>", "<s>", "</s>")
    lang_tags: tuple[str, ...] = ()

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def lookup(self, token: str) -> int:
        return dict(zip(self.specials, (UNK, PAD, BEGIN, END), strict=True))[token]


def make_model(size: Size, dropout: float) -> Model:
    stack = {
        "type": "transformer",
        "num_layers": size.layers,
        "num_heads": size.heads,
        "embeddings": {"embedding_dim": size.d_model, "scale": True, "dropout": dropout},
        "hidden_size": size.d_model,
        "ff_size": size.ffn,
        "dropout": dropout,
        "layer_norm": "post",
        "activation": "relu",
    }
    vocabulary = IdsOnly(size.vocab)
    config = {"tied_embeddings": True, "tied_softmax": True, "encoder": stack, "decoder": stack}
    return build_model(config, src_vocab=vocabulary, trg_vocab=vocabulary)


def load_weights(model: Model, weights: Weights) -> None:
    table_length = model.encoder.pe.pe.shape[1]
    model.load_state_dict(tensors(joeynmt_state(weights, table_length)))
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = EPS


def make_batch(source: Ids, target_with_begin: Ids | None, is_train: bool) -> Batch:
    ids = torch.from_numpy(source)
    return Batch(
        src=ids,
        src_length=(ids != PAD).sum(dim=1),
        src_prompt_mask=None,
        trg=None if target_with_begin is None else torch.from_numpy(target_with_begin),
        trg_prompt_mask=None,
        indices=torch.arange(len(ids)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=END,
        is_train=is_train,
    )


def make_training_batches(path: str) -> list[Batch]:
    batches = []
    for batch in read_batches(path):
        begin = batch.decoder_input[:, :1]
        target = torch.cat([torch.from_numpy(begin), torch.from_numpy(batch.target)], dim=1)
        batches.append(make_batch(batch.source, target.numpy(), is_train=True))
    return batches


class Worker:
    def setup_train(self, request: Request) -> Answer:
        set_threads(request)
        torch.manual_seed(1)
        size = Size.of_request(need(request, "size"))
        self.trained = make_model(size, float(request.get("dropout", 0.1)))
        if "weights" in request:
            load_weights(self.trained, read_weights(request["weights"]))
        self.trained.loss_function = ("crossentropy", float(request.get("label_smoothing", 0.1)))
        self.optimizer = build_optimizer(
            {
                "optimizer": "adam",
                "learning_rate": float(request.get("learning_rate", 3e-4)),
                "adam_betas": (0.9, 0.98),
            },
            self.trained.parameters(),
        )
        # Everything that the training step of JoeyNMT's manager needs from the manager.
        self.manager = SimpleNamespace(
            model=self.trained,
            autocast=autocast_options(request.get("precision", "fp32")),
            args=SimpleNamespace(normalization="tokens", batch_multiplier=1),
            n_gpu=0,
            scaler=None,
        )
        self.batches = make_training_batches(need(request, "batches"))
        return {"ok": True, "about": about(self.trained)}

    def train_steps(self, request: Request) -> Answer:
        first, count = int(need(request, "first")), int(need(request, "count"))
        losses, tokens = [], 0
        start = time.perf_counter()
        for number in range(first, first + count):
            batch = self.batches[number % len(self.batches)]
            loss, _ = TrainManager._train_step(self.manager, batch)
            self.optimizer.step()
            self.trained.zero_grad()
            losses.append(loss)
            tokens += batch.ntokens
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "target_tokens": tokens, "loss": sum(losses) / count}

    def setup_decode(self, request: Request) -> Answer:
        set_threads(request)
        weights = read_weights(need(request, "model"))
        self.decoder = make_model(weights.size, dropout=0.0)
        load_weights(self.decoder, weights)
        self.decoder.eval()
        self.decoder_autocast = autocast_options(request.get("precision", "fp32"))
        return {"ok": True, "about": about(self.decoder)}

    def decode(self, request: Request) -> Answer:
        decoding = Decoding.of_request(request)
        generated: dict[int, Any] = {}
        start = time.perf_counter()
        for group in decoding.groups():
            batch = make_batch(decoding.source(group), None, is_train=False)
            back = batch.sort_by_src_length()
            hypotheses, _, _ = search(
                model=self.decoder,
                batch=batch,
                max_output_length=decoding.max_length,
                min_output_length=decoding.exact_length or 1,
                beam_size=decoding.beam,
                beam_alpha=decoding.length_penalty,
                autocast=self.decoder_autocast,
            )
            generated.update(zip(group, hypotheses[back], strict=True))
        seconds = time.perf_counter() - start
        return decoded(seconds, [generated[i].tolist() for i in range(len(generated))])


def logits(model: Model, source: Ids, decoder_input: Ids) -> Tensor:
    """Logits for check.py: [sentences, target tokens, vocab]."""
    with torch.no_grad():
        ids, inputs = torch.from_numpy(source), torch.from_numpy(decoder_input)
        outputs: Tensor
        outputs, _, _, _ = model._encode_decode(
            src=ids,
            trg_input=inputs,
            src_mask=(ids != PAD).unsqueeze(1),
            src_length=None,
            trg_mask=torch.ones_like(inputs, dtype=torch.bool).unsqueeze(1),
        )
    return outputs


def about(model: Model) -> str:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return f"JoeyNMT {joeynmt.__version__}, torch {torch.__version__}, {parameters:,} parameters"


if __name__ == "__main__":
    worker = Worker()
    serve(
        {
            "setup-train": worker.setup_train,
            "train-steps": worker.train_steps,
            "setup-decode": worker.setup_decode,
            "decode": worker.decode,
        }
    )
