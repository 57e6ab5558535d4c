"""Tiny decoders as ExecuTorch programs that generate, and what eager PyTorch generates with them."""

from __future__ import annotations

from typing import Any

import torch
from executorch_runner import BOS, EOS, VOCABULARY, ids_of
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.6,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}
PROMPT, TOKENS = "helloWorld7", 20
# A layer with keys after three with linear attention.
LINEAR = {
    "num_hidden_layers": 4,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
}

# Each row of its state decays by itself.
CHANNELWISE = {
    "linear_head_dim": 8,
    "linear_num_heads": 2,
    "layer_types": ["linear_attention", "full_attention"],
    "mlp_layer_types": ["dense", "sparse"],
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}


def tiny(kind: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **{**SIZES, **settings})).eval()


def generated(model: Any, tokens: int = TOKENS) -> list[int]:
    ids = torch.tensor([ids_of(PROMPT)])
    return model.generate(ids, max_new_tokens=tokens, do_sample=False, pad_token_id=EOS)[0, ids.shape[1] :].tolist()
