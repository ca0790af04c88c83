"""Tiny models of transformers with random weights, one for each architecture under test."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

if "RELAKIT_REQUIRE_HF" not in os.environ:  # set where the extra is installed for sure
    pytest.importorskip("transformers", reason="the extra relakit[hf] is not installed")

import transformers as hf

VOCABULARY = 50
PAD, BEGIN, END = 0, 1, 2
TOKENS = {"pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END}
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    **TOKENS,
}
SEQ2SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "decoder_start_token_id": BEGIN,
    "forced_eos_token_id": None,
    **TOKENS,
}


@dataclass(frozen=True)
class Architecture:
    """How to make a tiny model, and what to give it."""

    kind: str
    """encoder, decoder, seq2seq, speech or vision"""
    model: str
    config: str
    settings: dict[str, Any] = field(default_factory=dict)
    modules: int = 2
    """attention modules that it has"""
    change: Callable[[Any], None] = lambda config: None

    def build(self) -> Any:
        config = getattr(hf, self.config)(**self.settings)
        self.change(config)
        torch.manual_seed(3)
        model = getattr(hf, self.model)(config).eval()
        return with_large_weights(model)

    def inputs(self, *, padded: bool = True, seed: int = 5) -> dict[str, Tensor]:
        """A batch of two; the second is shorter where there is padding."""
        generator = torch.Generator().manual_seed(seed)

        def tokens(length: int) -> Tensor:
            return torch.randint(3, VOCABULARY, (2, length), generator=generator)

        if self.kind == "vision":
            return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
        if self.kind == "speech":
            features = torch.randn(2, 8, 24, generator=generator)
            return {"input_features": features, "decoder_input_ids": tokens(7)}
        batch = {"input_ids": tokens(9)}
        if self.kind == "seq2seq":
            batch["decoder_input_ids"] = tokens(7)
        if padded:
            batch["attention_mask"] = torch.ones(2, 9, dtype=torch.long)
            batch["attention_mask"][1, 6:] = 0
            batch["input_ids"][1, 6:] = PAD
        return batch


def with_large_weights(model: Any) -> Any:
    """The usual start gives scores near 0, with nothing to see."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "embed" not in name:
                parameter.normal_(0, 0.25)
    return model


ARCHITECTURES = {
    "albert": Architecture(
        "encoder", "AlbertForMaskedLM", "AlbertConfig", {**COMMON, "embedding_size": 16}, 1
    ),
    "bert": Architecture("encoder", "BertForMaskedLM", "BertConfig", COMMON),
    "roberta": Architecture("encoder", "RobertaForMaskedLM", "RobertaConfig", COMMON),
    "distilbert": Architecture(
        "encoder",
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 40},
    ),
    "modernbert": Architecture(
        "encoder",
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        {**COMMON, "local_attention": 6, "global_attn_every_n_layers": 2},
    ),
    "gpt2": Architecture(
        "decoder",
        "GPT2LMHeadModel",
        "GPT2Config",
        {
            "vocab_size": VOCABULARY,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            **TOKENS,
        },
    ),
    "llama": Architecture(
        "decoder", "LlamaForCausalLM", "LlamaConfig", {**COMMON, "num_key_value_heads": 2}
    ),
    "mistral": Architecture(
        "decoder",
        "MistralForCausalLM",
        "MistralConfig",
        {**COMMON, "num_key_value_heads": 2, "sliding_window": 4},
    ),
    "qwen3": Architecture(
        "decoder",
        "Qwen3ForCausalLM",
        "Qwen3Config",
        {**COMMON, "num_key_value_heads": 2, "head_dim": 12},
    ),
    "gemma2": Architecture(
        "decoder",
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {
            **COMMON,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "sliding_window": 4,
            "attn_logit_softcapping": 2.0,
        },
    ),
    "deepseek-v3": Architecture(
        "decoder",
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **COMMON,
            "num_key_value_heads": 4,
            "q_lora_rank": 12,
            "kv_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 6,
            "first_k_dense_replace": 2,
            "n_routed_experts": 4,
            "n_group": 1,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
        },
    ),
    # It knows no SDPA, and all of its modules say that they are not causal.
    "nllb-moe": Architecture(
        "seq2seq",
        "NllbMoeForConditionalGeneration",
        "NllbMoeConfig",
        {**SEQ2SEQ, "num_experts": 4, "expert_capacity": 64},
        6,
    ),
    "t5": Architecture(
        "seq2seq",
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "d_kv": 6,
            "d_ff": 40,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": BEGIN,
            **TOKENS,
        },
        6,
    ),
    "bart": Architecture("seq2seq", "BartForConditionalGeneration", "BartConfig", SEQ2SEQ, 6),
    "marian": Architecture("seq2seq", "MarianMTModel", "MarianConfig", SEQ2SEQ, 6),
    "whisper": Architecture(
        "speech",
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **SEQ2SEQ,
            "num_mel_bins": 8,
            "max_source_positions": 12,
            "max_target_positions": 64,
            "begin_suppress_tokens": None,
            "suppress_tokens": None,
        },
        6,
    ),
    "vit": Architecture(
        "vision",
        "ViTForImageClassification",
        "ViTConfig",
        {
            "hidden_size": 32,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 16,
            "patch_size": 4,
        },
    ),
}

NAMES = tuple(ARCHITECTURES)


def tiny_clip() -> Any:
    """A model of two parts, each with a config inside that of the whole."""
    text = {**COMMON, "projection_dim": 16}
    vision = {
        "hidden_size": 32,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 16,
        "patch_size": 8,
    }
    torch.manual_seed(3)
    config = hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    return hf.CLIPModel(config).eval()


def clip_inputs() -> dict[str, Tensor]:
    """A text and an image."""
    generator = torch.Generator().manual_seed(5)
    return {
        "input_ids": torch.tensor([[BEGIN, 7, 9, 8, END]]),
        "pixel_values": torch.randn(1, 3, 16, 16, generator=generator),
    }


def tiny_sam() -> Any:
    """A model that chooses a class by the attention's name while it is built."""
    vision = {
        "hidden_size": 16,
        "output_channels": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
        "window_size": 2,
        "global_attn_indexes": [0],
        "mlp_dim": 24,
        "num_pos_feats": 4,
    }
    prompts = {"hidden_size": 8, "image_size": 32, "patch_size": 8, "mask_input_channels": 4}
    masks = {
        "hidden_size": 8,
        "mlp_dim": 16,
        "num_attention_heads": 2,
        "iou_head_hidden_dim": 8,
    }
    torch.manual_seed(3)
    config = hf.SamConfig(
        vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks
    )
    return with_large_weights(hf.SamModel(config).eval())


def names_of(*kinds: str) -> list[str]:
    return [name for name, architecture in ARCHITECTURES.items() if architecture.kind in kinds]


def logits_of(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    """Those of positions that are not padding, in one row each."""
    logits: Tensor = model(**inputs).logits
    mask = inputs.get("attention_mask")
    if mask is not None and mask.shape == logits.shape[:2]:
        return logits[mask.bool()]
    return logits.flatten(0, -2)


def gradients_of(model: Any, logits: Tensor) -> dict[str, Tensor]:
    """Of a sum of the logits with fixed random factors, by the name of the parameter."""
    model.zero_grad()
    factors = torch.randn(logits.shape, generator=torch.Generator().manual_seed(7))
    (logits * factors).sum().backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
