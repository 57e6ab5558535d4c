"""The models that more than one benchmark measures."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM


def tiny_qwen3(layers: int = 28) -> torch.nn.Module:
    """As deep as the real one, and narrow: what is measured is the exporter, not the arithmetic."""
    torch.manual_seed(0)
    config = Qwen3Config(
        num_hidden_layers=layers,
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=1000,
    )
    return Qwen3ForCausalLM(config).eval()


def qwen3_06b_config(**settings: Any) -> Qwen3Config:
    sizes = {
        "num_hidden_layers": 28,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": True,
        "architectures": ["Qwen3ForCausalLM"],
        "dtype": torch.float32,
    }
    return Qwen3Config(**sizes | settings)
