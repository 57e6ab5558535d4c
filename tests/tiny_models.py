"""Tiny models for tests: one factory, which says how small they are."""

from __future__ import annotations

from typing import Any

import torch
import transformers as t

VOCABULARY = 100
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_TEXT = {"vocab_size": VOCABULARY, **SMALL}
_DECODER = {**_TEXT, "num_key_value_heads": 2}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
_WINDOWS = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
_SIDE = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
_WHISPER = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in _SIDE.items()} | {
    "d_model": 32, "num_mel_bins": 8, "max_source_positions": 30, "max_target_positions": 64,
    "decoder_start_token_id": 2, "suppress_tokens": None, "begin_suppress_tokens": None,
}  # fmt: skip

KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert": (t.BertModel, t.BertConfig, _TEXT),
    "bert for masked words": (t.BertForMaskedLM, t.BertConfig, _TEXT),
    "vit": (t.ViTForImageClassification, t.ViTConfig, {"image_size": 32, "patch_size": 8, **SMALL}),
    "llama": (t.LlamaForCausalLM, t.LlamaConfig, _DECODER),
    "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config, {**_DECODER, "head_dim": 8}),
    "gemma3": (t.Gemma3ForCausalLM, t.Gemma3TextConfig, {**_DECODER, "head_dim": 8, **_WINDOWS}),
    "mixtral": (t.MixtralForCausalLM, t.MixtralConfig, {**_DECODER, "num_local_experts": 4}),
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config, {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4}),
    "mamba": (
        t.MambaForCausalLM,
        t.MambaConfig,
        {"vocab_size": VOCABULARY, "hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "time_step_rank": 4},
    ),
    "t5": (t.T5ForConditionalGeneration, t.T5Config, {"vocab_size": VOCABULARY, **_T5}),
    "whisper": (t.WhisperForConditionalGeneration, t.WhisperConfig, {"vocab_size": VOCABULARY, **_WHISPER}),
}


def tiny(kind: str, **changes: Any) -> Any:
    """A model of this kind, with the same weights each time; `changes` are those of its configuration."""
    model_class, config_class, sizes = KINDS[kind]
    torch.manual_seed(0)
    return model_class(config_class(**sizes | changes)).eval()


def lively(model: Any, factor: float = 5) -> Any:
    """With weights large enough that its tokens change from step to step."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(factor)
    return model
