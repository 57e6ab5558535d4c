"""Decoders that keep their cache: tokens and their positions go in, the logits of the last token come out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from ..capturing.recording import zeros_of
from ..patches.delta_rule import functions_of_the_rule, operator_at
from .caches import parts_of
from .custom_attention import CachedCall, CacheSettings, attention_replaced, calling, define_operators
from .static_cache import PassingKeys, Shapes, StaticCache, layer_over, shapes_of

PAST = "u0"  # how many tokens are cached, where that is a size: the first number that a run reads of its data
TOKENS = 3  # of the example, distinct from the one row
Tensors = dict[str, torch.Tensor]


class KeepsCache(torch.nn.Module):
    """A model with buffers for its cache: one text at a time."""

    def __init__(self, model: Any, settings: CacheSettings, cache: Cache):
        """`cache` is one that the model has filled, for the sizes of its layers."""
        super().__init__()
        self.model, self.config, self.settings = model, model.config, settings
        self.rules = functions_of_the_rule(model)  # which a kernel can take the place of
        define_operators()
        self._takes = inspect.signature(model.forward).parameters
        self._buffers_of = [
            {name: self._register(number, name, like) for name, like in kept.items()}
            for number, kept in enumerate(shapes_of(parts_of(cache)[0]))
        ]

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

    def last_logits(self, given: Mapping[str, Any], positions: torch.Tensor, side: str = "") -> Tensors:
        """Of one call of the model. `side` is what names of the decoder's arguments begin with."""
        call = CachedCall(positions, self.settings)
        if self.settings.past_alone:
            call.read_start()
        layers = [layer_over(self._buffers_named(names), call) for names in self._buffers_of]
        kept: Any = StaticCache(layers, call)
        cache = EncoderDecoderCache(kept, Cache(layers=[PassingKeys() for _ in layers])) if side else kept
        arguments: dict[str, Any] = {**given, "past_key_values": cache, "use_cache": True}
        if f"{side}position_ids" in self._takes and f"{side}position_ids" not in given:
            arguments[f"{side}position_ids"] = positions[None]
        if "logits_to_keep" in self._takes:
            arguments["logits_to_keep"] = 1
        rules = self.rules if self.settings.custom_sdpa else []
        own = nullcontext() if self.settings.past_alone else attention_replaced(self.model)
        with own, operator_at(rules), calling(call):
            logits = self.model(**arguments).logits
        return {"logits": logits[:, -1:]}

    def _buffers_named(self, names: dict[str, list[str]]) -> Shapes:
        return {name: [getattr(self, buffer) for buffer in buffers] for name, buffers in names.items()}

    def places(self, tokens: int) -> torch.Tensor:
        """Of an example: behind one token that is in the cache, if there is room."""
        start = min(1, self.settings.length - tokens)
        return torch.arange(start, start + tokens)


class StaticDecoder(KeepsCache):
    """Tokens, [1, tokens], each at its place of `cache_position`."""

    def forward(self, input_ids: torch.Tensor, cache_position: torch.Tensor) -> Tensors:
        return self.last_logits({"input_ids": input_ids}, cache_position)

    def example(self, tokens: int = TOKENS) -> Tensors:
        tokens = min(tokens, self.settings.length)
        return {"input_ids": ids_for(self.model, tokens), "cache_position": self.places(tokens)}


class StaticCrossDecoder(KeepsCache):
    """The decoder of an encoder-decoder. Keys and values of the encoder's states are made anew in each call."""

    def __init__(self, model: Any, settings: CacheSettings, cache: Cache, encoded: type[Any], states: torch.Tensor):
        """`encoded` is the class of what the encoder gives, `states` an example of it."""
        super().__init__(model, settings, cache)
        self._encoded, self._states = encoded, states

    def forward(
        self, input_ids: torch.Tensor, encoder_hidden_states: torch.Tensor, cache_position: torch.Tensor
    ) -> Tensors:
        encoded = self._encoded(last_hidden_state=encoder_hidden_states)
        given = {"decoder_input_ids": input_ids, "encoder_outputs": encoded}
        return self.last_logits(given, cache_position, side="decoder_")

    def example(self, tokens: int = TOKENS) -> Tensors:
        tokens = min(tokens, self.settings.length)
        ids = ids_for(self.model, tokens)
        return {"input_ids": ids, "encoder_hidden_states": self._states, "cache_position": self.places(tokens)}


class StaticEmbeddingDecoder(KeepsCache):
    """The decoder of a model that sees or hears: words and features come as embeddings. `further` are values a token,
    along the last axis, that the caller gives as well, by example."""

    def __init__(self, model: Any, settings: CacheSettings, cache: Cache, further: Mapping[str, torch.Tensor]):
        super().__init__(model, settings, cache)
        self._further = dict(further)

    def forward(self, inputs_embeds: torch.Tensor, cache_position: torch.Tensor, **further: torch.Tensor) -> Tensors:
        return self.last_logits({"inputs_embeds": inputs_embeds, **further}, cache_position)

    def example(self, tokens: int = TOKENS) -> Tensors:
        tokens = min(tokens, self.settings.length)
        width = self.model.get_input_embeddings().weight.shape[1]
        embeds = torch.randn(1, tokens, width, generator=torch.Generator().manual_seed(0)).to(self.model.dtype)
        further = {name: value[..., :tokens] for name, value in self._further.items()}
        return {"inputs_embeds": embeds, **further, "cache_position": self.places(tokens)}


def ids_for(model: Any, tokens: int) -> torch.Tensor:
    return torch.arange(tokens)[None] % model.config.get_text_config(decoder=True).vocab_size


def filled_cache(model: Any, inputs: Mapping[str, Any]) -> Cache | None:
    """The cache that a call of the model leaves, with shapes alone; None where what it keeps is no cache by layers."""
    try:
        result = zeros_of(model, {**inputs, "use_cache": True})
    except Exception:  # a model that asks for values has to run
        with torch.no_grad():
            result = model(**inputs, use_cache=True)
    cache = getattr(result, "past_key_values", None)
    return cache if isinstance(cache, Cache) and any(shapes_of(parts_of(cache)[0])) else None
