"""A decoder as people write them by hand: a bias for each distance, and scores that are filled in to hide keys."""

from __future__ import annotations

from typing import Any

import torch
import transformers as t
from torch import nn
from transformers.modeling_outputs import CausalLMOutputWithPast

_DISTANCES = 64


class OwnConfig(t.PreTrainedConfig):
    model_type = "modelport_own_attention"

    def __init__(
        self, vocab_size: int = 100, hidden_size: int = 64, num_hidden_layers: int = 2, num_attention_heads: int = 4,
        **more: Any,
    ) -> None:  # fmt: skip
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.num_hidden_layers, self.num_attention_heads = num_hidden_layers, num_attention_heads
        super().__init__(**more)


class _Attention(nn.Module):
    def __init__(self, config: OwnConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.heads = layer, config.num_attention_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)
        self.distances = nn.Embedding(_DISTANCES, self.heads)

    def forward(self, x: torch.Tensor, seen: torch.Tensor, distance: torch.Tensor, cache: Any) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        key, value = cache.update(key, value, self.layer)
        scores = (query @ key.transpose(-2, -1) + self.distances(distance).permute(2, 0, 1)) / 4.0
        scores = scores.masked_fill(seen == 0, float("-inf"))
        y = scores.softmax(-1) @ value
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


class OwnModel(t.PreTrainedModel, t.GenerationMixin):
    config_class = OwnConfig

    def __init__(self, config: OwnConfig) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden_size) for _ in range(config.num_hidden_layers))
        self.layers = nn.ModuleList(_Attention(config, i) for i in range(config.num_hidden_layers))
        self.head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = True,
        **_options: Any,
    ) -> CausalLMOutputWithPast:
        cache = past_key_values if past_key_values is not None else t.DynamicCache()
        past, tokens = cache.get_seq_length(), input_ids.shape[1]
        queries = torch.arange(past, past + tokens)[:, None]
        keys = torch.arange(past + tokens)
        seen = (keys <= queries)[None, None]
        if attention_mask is not None:
            # Padding sees itself: a row of nothing but minus infinity has no softmax.
            seen = seen & (attention_mask[:, None, None, :].bool() | (keys == queries)[None, None])
        distance = (queries - keys).clamp(0, _DISTANCES - 1)
        x = self.embed(input_ids)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x), seen, distance, cache)
        return CausalLMOutputWithPast(logits=self.head(x), past_key_values=cache if use_cache else None)


t.AutoConfig.register(OwnConfig.model_type, OwnConfig)
t.AutoModelForCausalLM.register(OwnConfig, OwnModel)
