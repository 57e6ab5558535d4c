"""A decoder that keeps its cache itself: tokens and their positions go in, the logits of the last token come out."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers.cache_utils import Cache

from ..capturing.recording import zeros_of
from .custom_attention import CachedCall, CacheSettings, attention_replaced, calling
from .static_cache import Shapes, StaticCache, layer_over, shapes_of

_TOKENS = 3  # of the example, distinct from the one row


class StaticDecoder(torch.nn.Module):
    """One row of tokens at a time, [1, tokens], each at its place of `cache_position`."""

    def __init__(self, model: Any, settings: CacheSettings):
        super().__init__()
        self.model, self.config, self.settings = model, model.config, settings
        self._takes = inspect.signature(model.forward).parameters
        self._buffers_of: list[dict[str, list[str]]] = []
        cache = _cache_of(model)
        assert cache is not None
        for number, kept in enumerate(shapes_of(cache)):
            self._buffers_of.append({name: self._register(number, name, like) for name, like in kept.items()})

    def _register(self, layer: int, name: str, like: list[torch.Tensor]) -> list[str]:
        names = []
        for index, tensor in enumerate(like):
            shape = list(tensor.shape)
            if name in ("keys", "values"):
                _, heads, _, width = shape
                length = self.settings.length
                shape = [1, length, heads, width] if self.settings.length_first else [1, heads, length, width]
            kind = {"keys": "key_cache", "values": "value_cache"}.get(name, name.removesuffix("s"))
            names.append(f"{kind}_{layer}" + (f"_{index}" if index else ""))
            self.register_buffer(names[-1], torch.zeros(shape, dtype=tensor.dtype))
        return names

    def forward(self, input_ids: torch.Tensor, cache_position: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self._logits({"input_ids": input_ids}, cache_position)}

    def _logits(self, tokens: dict[str, torch.Tensor], positions: torch.Tensor) -> torch.Tensor:
        call = CachedCall(positions, self.settings)
        layers = [layer_over(self._buffers_named(names), call) for names in self._buffers_of]
        given: dict[str, Any] = {**tokens, "past_key_values": StaticCache(layers, call), "use_cache": True}
        if "position_ids" in self._takes:
            given["position_ids"] = positions[None]
        if "logits_to_keep" in self._takes:
            given["logits_to_keep"] = 1
        with attention_replaced(self.model, self.settings), calling(call):
            logits = self.model(**given).logits
        return logits[:, -1:]

    def _buffers_named(self, names: dict[str, list[str]]) -> Shapes:
        return {name: [getattr(self, buffer) for buffer in buffers] for name, buffers in names.items()}

    def example(self, tokens: int = _TOKENS) -> dict[str, torch.Tensor]:
        """Tokens behind one that is in the cache, or as many as fit."""
        tokens = min(tokens, self.settings.length)
        start = min(1, self.settings.length - tokens)
        return {"input_ids": _ids(self.model, tokens), "cache_position": torch.arange(start, start + tokens)}


class WholeDecoder(torch.nn.Module):
    """A decoder without a cache: it reads the whole text for each token."""

    def __init__(self, model: Any):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.model(input_ids=input_ids, use_cache=False).logits[:, -1:]}

    def example(self) -> dict[str, torch.Tensor]:
        return {"input_ids": _ids(self.model, _TOKENS)}


def _ids(model: Any, tokens: int) -> torch.Tensor:
    return torch.arange(tokens)[None] % model.config.get_text_config(decoder=True).vocab_size


def keeps_a_cache(model: Any) -> bool:
    """Whether what the model keeps from token to token is in a cache of transformers, by layers."""
    return _cache_of(model) is not None


def _cache_of(model: Any) -> Cache | None:
    result = zeros_of(model, {"input_ids": torch.zeros(1, 2, dtype=torch.int64), "use_cache": True})
    cache = getattr(result, "past_key_values", None)
    return cache if isinstance(cache, Cache) and any(shapes_of(cache)) else None
