"""Hugging Face's MarianMTModel: a plain training loop, and ``generate``."""

import time

import torch
import torch.nn.functional as F
import transformers
from batches import BEGIN, END, PAD, Decoding, Ids, decoded, read_batches
from protocol import Answer, Request, need, serve
from torch import Tensor
from torch_settings import autocast_options, set_threads, tensors
from transformers import GenerationConfig, MarianConfig, MarianMTModel
from weights import POSITIONS, Size, Weights, marian_state, read_weights


def make_model(
    size: Size, dropout: float, attention_dropout: float, attention: str
) -> MarianMTModel:
    config = MarianConfig(
        vocab_size=size.vocab,
        decoder_vocab_size=size.vocab,
        d_model=size.d_model,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.ffn,
        decoder_ffn_dim=size.ffn,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=POSITIONS,
        dropout=dropout,
        attention_dropout=attention_dropout,
        activation_dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        forced_eos_token_id=None,
        attn_implementation=attention,
    )
    return MarianMTModel(config)


def load_weights(model: MarianMTModel, weights: Weights) -> None:
    model.load_state_dict(tensors(marian_state(weights)))


class TrainingBatch:
    def __init__(self, source: Ids, decoder_input: Ids, target: Ids) -> None:
        self.source = torch.from_numpy(source)
        self.attended = self.source != PAD
        self.decoder_input = torch.from_numpy(decoder_input)
        self.target = torch.from_numpy(target)
        self.target_tokens = int((self.target != PAD).sum())


class Worker:
    def setup_train(self, request: Request) -> Answer:
        set_threads(request)
        torch.manual_seed(1)
        dropout = float(request.get("dropout", 0.1))
        self.trained = make_model(
            Size.of_request(need(request, "size")),
            dropout=dropout,
            attention_dropout=float(request.get("attention_dropout", dropout)),
            attention=request.get("attention", "sdpa"),
        )
        if "weights" in request:
            load_weights(self.trained, read_weights(request["weights"]))
        self.trained.train()
        self.autocast = autocast_options(request.get("precision", "fp32"))
        self.label_smoothing = float(request.get("label_smoothing", 0.1))
        self.optimizer = torch.optim.Adam(
            self.trained.parameters(),
            lr=float(request.get("learning_rate", 3e-4)),
            betas=(0.9, 0.98),
        )
        self.batches = [
            TrainingBatch(batch.source, batch.decoder_input, batch.target)
            for batch in read_batches(need(request, "batches"))
        ]
        return {"ok": True, "about": about(self.trained)}

    def train_steps(self, request: Request) -> Answer:
        first, count = int(need(request, "first")), int(need(request, "count"))
        losses, tokens = [], 0
        start = time.perf_counter()
        for number in range(first, first + count):
            batch = self.batches[number % len(self.batches)]
            losses.append(self.step(batch))
            tokens += batch.target_tokens
        seconds = time.perf_counter() - start
        loss = float(torch.stack(losses).mean())
        return {"seconds": seconds, "target_tokens": tokens, "loss": loss}

    def step(self, batch: TrainingBatch) -> Tensor:
        with torch.autocast(**self.autocast):
            # The model's own loss has no label smoothing, so the model does not get the labels.
            outputs = self.trained(
                input_ids=batch.source,
                attention_mask=batch.attended,
                decoder_input_ids=batch.decoder_input,
                use_cache=False,
            )
            loss = F.cross_entropy(
                outputs.logits.flatten(0, 1),
                batch.target.flatten(),
                ignore_index=PAD,
                label_smoothing=self.label_smoothing,
            )
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def setup_decode(self, request: Request) -> Answer:
        set_threads(request)
        weights = read_weights(need(request, "model"))
        attention = request.get("attention", "sdpa")
        self.decoder = make_model(
            weights.size, dropout=0.0, attention_dropout=0.0, attention=attention
        )
        load_weights(self.decoder, weights)
        self.decoder.eval()
        self.decoder_autocast = autocast_options(request.get("precision", "fp32"))
        return {"ok": True, "about": about(self.decoder)}

    def decode(self, request: Request) -> Answer:
        decoding = Decoding.of_request(request)
        forbid_tokens(self.decoder, forbid_end=decoding.exact_length is not None)
        settings = GenerationConfig(
            num_beams=decoding.beam,
            max_new_tokens=decoding.max_length,
            length_penalty=decoding.length_penalty,
            early_stopping=decoding.beam > 1,
            do_sample=False,
            pad_token_id=PAD,
            bos_token_id=BEGIN,
            eos_token_id=END,
            decoder_start_token_id=BEGIN,
        )
        generated: dict[int, Tensor] = {}
        start = time.perf_counter()
        for group in decoding.groups():
            source = torch.from_numpy(decoding.source(group))
            with torch.autocast(**self.decoder_autocast):
                hypotheses = self.decoder.generate(
                    input_ids=source, attention_mask=source != PAD, generation_config=settings
                )
            generated.update(zip(group, hypotheses[:, 1:], strict=True))
        seconds = time.perf_counter() - start
        return decoded(seconds, [generated[i].tolist() for i in range(len(generated))])


def forbid_tokens(model: MarianMTModel, forbid_end: bool) -> None:
    """Never generate PAD and BEGIN, nor END where the length is fixed.

    This uses the bias that the model adds anyway: ``generate``'s own options for this would copy
    the scores of the whole vocabulary at every step.
    """
    model.final_logits_bias.zero_()
    model.final_logits_bias[0, [PAD, BEGIN]] = float("-inf")
    if forbid_end:
        model.final_logits_bias[0, END] = float("-inf")


def logits(model: MarianMTModel, source: Ids, decoder_input: Ids) -> Tensor:
    """Logits for check.py: [sentences, target tokens, vocab]."""
    ids = torch.from_numpy(source)
    with torch.no_grad():
        outputs = model(
            input_ids=ids,
            attention_mask=ids != PAD,
            decoder_input_ids=torch.from_numpy(decoder_input),
        )
    result: Tensor = outputs.logits
    return result


def about(model: MarianMTModel) -> str:
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return (
        f"Hugging Face Marian (transformers {transformers.__version__}), "
        f"torch {torch.__version__}, {parameters:,} parameters, "
        f"attention {model.config._attn_implementation}"
    )


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
