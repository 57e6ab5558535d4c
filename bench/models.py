"""The models that more than one benchmark measures."""

from __future__ import annotations

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
